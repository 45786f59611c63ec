"""Masks that differ from head to head: every head is a problem of its own."""
from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlab._errors import input_error, usage_error


def head_by_head(compute: Callable[..., Any], wishes: dict[str, Any], q: Any, k: Any, v: Any, *,
                 dout: Any = None, return_lse: bool = False) -> Any:
    """The results of `compute(wishes, q, k, v, …)` for every batch and query head, put together."""
    for name, array in (("q", q), ("k", k), ("v", v), ("dout", q if dout is None else dout)):
        if len(array.shape) != 4:
            raise input_error(name, "4 dimensions: (batch, heads, tokens, head_dim)", len(array.shape))
    masks = _per_head(wishes["per_head"], q, k)
    if wishes["dropout"] or wishes["alibi"] == "default":
        raise usage_error("mask", "one for all heads beside dropout and default slopes", "one per head")
    group = max(1, q.shape[1] // max(1, k.shape[1]))
    if group > 1 and (dout is not None or wishes.get("differentiable")):
        raise usage_error("mask", "one for all heads beside gradients of grouped heads",
                          "one per head", "Repeat k and v for every query head")
    parts = []
    for batch, head in np.ndindex(masks.shape[:2]):
        one = (slice(batch, batch + 1), slice(head, head + 1))
        shared = (one[0], slice(head // group, head // group + 1))
        parts.append(compute(_wishes_of(head, wishes, masks[batch, head]), q[one], k[shared],
                             v[shared], dout=None if dout is None else dout[one],
                             return_lse=return_lse))
    if not parts:
        return compute(wishes | {"per_head": None}, q, k, v, dout=dout, return_lse=return_lse)
    return _together(parts, q.shape[:2])


def _per_head(masks: np.ndarray, q: Any, k: Any) -> np.ndarray:
    """(batch, q_heads, q_tokens, kv_tokens)"""
    shape = (*q.shape[:3], k.shape[2])
    if masks.shape[2:] != shape[2:] or any(has not in (1, wanted)
                                           for has, wanted in zip(masks.shape, shape)):
        raise usage_error("mask", f"{shape}, with 1 for what is the same in all", masks.shape)
    return np.broadcast_to(masks, shape)


def _wishes_of(head: int, wishes: dict[str, Any], pairs: np.ndarray) -> dict[str, Any]:
    matrices = wishes["matrices"]
    mine = {"per_head": None, "mask": f"{wishes['mask']}+file:matrix{len(matrices)}",
            "matrices": [*matrices, np.ascontiguousarray(pairs).view(np.uint8)]}
    for name in ("alibi", "sinks"):
        numbers = wishes[name]
        if numbers is not None and len(numbers) > 1:
            mine[name] = numbers[head:head + 1]
    return wishes | mine


def _together(parts: list[Any], leading: tuple[int, int]) -> Any:
    """Results of one head each, in the order of batches and heads, as one."""
    first = parts[0]
    if dataclasses.is_dataclass(first):
        names = [field.name for field in dataclasses.fields(first)]
        return type(first)(**{name: _joined([getattr(part, name) for part in parts], leading)
                              for name in names})
    if isinstance(first, tuple):
        joined = [_joined(list(field), leading) for field in zip(*parts)]
        return type(first)(*joined) if hasattr(first, "_fields") else tuple(joined)
    return _joined(parts, leading)


def _joined(arrays: list[Any], leading: tuple[int, int]) -> Any:
    if arrays[0] is None:
        return None
    if isinstance(arrays[0], np.ndarray):
        whole = np.concatenate(arrays, axis=1)
    elif type(arrays[0]).__module__ == "torch":
        import torch
        whole = torch.cat(arrays, 1)
    else:
        whole = arrays[0].__array_namespace__().concat(arrays, axis=1)
    return whole.reshape(*leading, *whole.shape[2:])
