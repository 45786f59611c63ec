"""`ringlab.attention`: attention on arrays, by the exact reference, the engine or a stage."""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ringlab import _core
from ringlab._arrays import as_library, exchange, namespace_of
from ringlab._autograd import differentiable, refuse_tangents, refuse_tracked, tracked
from ringlab._errors import usage_error
from ringlab._heads import head_by_head
from ringlab._mask import mask_wishes, split_heads


class Gradients(NamedTuple):
    """The results of `attention` where `dout` was given: o, lse, and the gradients of <dout, o>."""

    o: Any
    lse: Any
    dq: Any
    dk: Any
    dv: Any


@dataclasses.dataclass(frozen=True)
class Exact:
    """The results of `attention(..., with_error=True)`. All arrays are float64; |o - the true value|
    <= o_error, element by element, and so on. Gradients are None unless dout was given."""

    o: Any
    lse: Any
    o_error: Any
    lse_error: Any
    dq: Any = None
    dk: Any = None
    dv: Any = None
    dq_error: Any = None
    dk_error: Any = None
    dv_error: Any = None


@dataclasses.dataclass(frozen=True)
class Subject:
    """A stage or an engine that computes attention, and what it takes."""

    name: str
    title: str
    dtypes: tuple[str, ...]
    ranks: bool  #: on several ranks: `ranks`, `layout`
    backward: bool  #: gradients: `dout`
    schedules: bool  #: `schedule`, `wire`
    slots: bool  #: `slots`
    threads: bool  #: `threads`
    modifiers: bool  #: `softcap`, `alibi`, `sinks`, `dropout`
    bounds_its_error: bool  #: `with_error`


def subjects() -> list[Subject]:
    """Everything that `attention` can compute with: the reference, every stage, the engine."""
    return [Subject(**one) for one in _core.subjects()]


def attention(q: Any, k: Any, v: Any, *, mask: Any = "full", is_causal: bool = False,
              scale: float | None = None, dout: Any = None, softcap: float | None = None,
              alibi: str | Sequence[float] | None = None, sinks: Sequence[float] | None = None,
              dropout: float | None = None, dropout_seed: int | None = None,
              subject: str = "reference", return_lse: bool = False, with_error: bool = False,
              exact: bool = False, ranks: int | None = None, layout: str | None = None,
              schedule: str | None = None, slots: int | None = None, wire: str | None = None,
              threads: int | None = None, timeout_s: float | None = None,
              auto: str | None = None) -> Any:
    """softmax(scale · q kᵀ, masked) v, per batch and head.

    q is (batch, q_heads, q_tokens, head_dim), k (batch, kv_heads, kv_tokens, head_dim), v (batch,
    kv_heads, kv_tokens, v_dim): NumPy arrays, or others on the CPU that speak DLPack (PyTorch, JAX),
    all float64, float32, float16 or bfloat16 (for NumPy that of ml_dtypes). Strides are free. q_heads
    is a multiple of kv_heads: query head h reads K/V head h // (q_heads // kv_heads).

    Returns o (batch, q_heads, q_tokens, v_dim), in the dtype and the library of q; with `return_lse`
    (o, lse), lse (batch, q_heads, q_tokens), the natural logarithm, float32 (float64 for float64);
    with `dout`, the gradient of a loss by o, `Gradients(o, lse, dq, dk, dv)`; with `with_error`
    `Exact`. A query that sees no key gets o = 0 and lse = -inf.

    mask: "full", "causal", "window:L,R", "documents:LEN,LEN,…", "prefix:N", joined with "+" for their
    intersection; booleans (q_tokens, kv_tokens), True where the query sees the key; 0 and -inf as
    they are added to scores; either with (q_heads, …) or (batch, q_heads, …) in front, one mask per
    head, each 1 for all; or a tuple of such. Causal masks are aligned at the bottom right: the last
    query sees all keys. is_causal is "causal", too, for as many queries as keys, where PyTorch means
    the same by it.
    scale: 1/sqrt(head_dim) by default. softcap: scores become softcap · tanh(score / softcap). alibi:
    slopes, one per query head or one for all, or "default"; slope · distance is taken off each score.
    sinks: a score without a value in every row's softmax, likewise. dropout: this share of the
    weights is dropped, the same for any number of ranks; dropout_seed (1) says which.

    subject: "reference" computes in float64 with compensated sums and bounds its own error; with
    `exact` it rounds every element of o and lse correctly (slowly, and not with softcap);
    "optimized" is the ring engine, in the dtype of q with float32 sums (float64 for float64); others
    are stages (`subjects()`). ranks, layout ("contiguous", "striped", "zigzag"), schedule ("ring",
    "bidirectional", "double:W", "allgather", "broadcast"), slots, wire ("exact", "f32", "bf16",
    "fp8") and timeout_s are those of the command line; ranks are threads of this process, which share
    `threads` (all cores by default). auto: layout, schedule and slots as `ringlab plan` chooses them for
    a machine: a name, or the file of `ringlab doctor --measure`.

    Tensors of PyTorch that require gradients get them: autograd calls the subject again with dout.
    Gradients are those of o by q, k and v; a loss of lse, and a mask, a scale, sinks and the like that
    require some, are refused, and so are tangents of forward mode, and grouped heads with one mask per
    head. What is computed with dout has none.

    A RuntimeWarning says where q and k are so large that scores may overflow.

    The GIL is released while it computes. Raises UsageError and InputError (both ValueError), RunError
    (a RuntimeError) when a rank fails, MemoryError.
    """
    arrays = {"q": q, "k": k, "v": v} | ({} if dout is None else {"dout": dout})
    settings = {"mask": mask, "scale": scale, "softcap": softcap, "alibi": alibi, "sinks": sinks,
                "dropout": dropout}
    refuse_tangents(arrays | settings)
    exchange(arrays)  # refuses what is no array
    if dout is None:
        _refuse_tracked_settings(settings)
    if is_causal:
        mask = (*(mask if isinstance(mask, tuple) else (mask,)), _causal(q, k))
    mask, per_head = split_heads(mask)
    text, matrices = mask_wishes(mask)
    wishes = {
        "mask": text, "matrices": matrices, "scale": scale, "softcap": softcap,
        "alibi": alibi if isinstance(alibi, str) else _numbers("alibi", alibi),
        "sinks": _numbers("sinks", sinks), "dropout": dropout,
        "dropout_seed": dropout_seed, "subject": subject, "with_error": with_error, "exact": exact,
        "ranks": ranks, "layout": layout, "schedule": schedule, "slots": slots, "wire": wire,
        "threads": threads, "timeout_s": timeout_s, "auto": auto, "per_head": per_head}
    if dout is not None or not tracked((q, k, v)):
        return _computed(wishes, q, k, v, dout=dout, return_lse=return_lse)
    if with_error:
        refuse_tracked("with_error")
    compute = functools.partial(_computed, wishes | {"differentiable": True})
    o, lse = differentiable(compute, q, k, v)
    return (o, lse) if return_lse else o


def _computed(wishes: dict[str, Any], q: Any, k: Any, v: Any, *, dout: Any = None,
              return_lse: bool = False) -> Any:
    """The results in the library of q."""
    if wishes["per_head"] is not None:
        return head_by_head(_computed, wishes, q, k, v, dout=dout, return_lse=return_lse)
    named = {"q": q, "k": k, "v": v} | ({} if dout is None else {"dout": dout})
    arrays, is_bits = exchange(named)
    namespace = namespace_of(q)
    results = _core.attention(arrays, wishes | {"bf16": is_bits, "numpy": namespace is None})
    made = {name: as_library(namespace, array, is_bits) for name, array in results.items()}
    for name in made.keys() & {"lse", "lse_error"}:
        made[name] = made[name][..., 0]
    if wishes["with_error"]:
        return Exact(**made)
    if dout is not None:
        return Gradients(**made)
    return (made["o"], made["lse"]) if return_lse else made["o"]


def _causal(q: Any, k: Any) -> str:
    if q.shape[2:3] != k.shape[2:3]:
        raise usage_error("is_causal", "as many queries as keys", f"{q.shape} and {k.shape}",
                          'PyTorch begins at the top left then; mask="causal" ends at the bottom right')
    return "causal"


def _numbers(name: str, given: Any) -> list[float] | None:
    """One number, or several; None where none is given."""
    if given is None:
        return None
    numbers = given.tolist() if hasattr(given, "tolist") else given
    try:
        return [float(number) for number in (
            (numbers,) if isinstance(numbers, (int, float)) else numbers)]
    except (TypeError, ValueError):
        raise usage_error(name, "a number, or one per query head", repr(given)) from None


def _refuse_tracked_settings(settings: dict[str, Any]) -> None:
    """Raises for what would silently get no gradient."""
    for name, given in settings.items():
        if tracked(given if isinstance(given, (tuple, list)) else (given,)):
            refuse_tracked(name)
