"""Gradients for PyTorch: `attention` as a function that autograd knows."""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ringlab._errors import usage_error


def tracked(arrays: Sequence[Any]) -> bool:
    """True when PyTorch would want the gradients of what is computed from these."""
    if not any(getattr(array, "requires_grad", False) for array in arrays):
        return False
    import torch
    return torch.is_grad_enabled()


def refuse_tracked(what: str) -> None:
    """Raises: these results are no function that autograd could follow."""
    raise usage_error(what, "tensors that require no gradients", "some that do",
                      "Call it under torch.no_grad(), or on tensor.detach()")


def refuse_tangents(given: dict[str, Any]) -> None:
    """Raises for tensors with tangents of PyTorch's forward mode, which would be dropped."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    unpack = torch.autograd.forward_ad.unpack_dual  # looks no further outside of a dual_level
    for name, value in given.items():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(one, torch.Tensor) and unpack(one).tangent is not None:
                raise usage_error(name, "tensors without tangents of forward mode", "some with them",
                                  "Gradients come from backward(); forward_ad.unpack_dual(tensor).primal "
                                  "has no tangent")


@functools.cache
def _function() -> Any:
    import torch

    class OnceOnly(torch.autograd.Function):
        """Passes a gradient on, and refuses to be differentiated itself."""

        @staticmethod
        def forward(ctx: Any, gradient: Any, *sources: Any) -> Any:
            return gradient.view_as(gradient)

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            raise usage_error("gradients", "to be differentiated once", "a second time",
                              "Leave create_graph=True out, or use PyTorch's own attention there")

    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, v: Any, compute: Callable[..., Any]) -> Any:
            ctx.save_for_backward(q, k, v)
            ctx.compute = compute
            ctx.set_materialize_grads(False)
            return compute(q, k, v, return_lse=True)

        @staticmethod
        def backward(ctx: Any, dout: Any, dlse: Any) -> Any:
            if dlse is not None:
                raise usage_error("lse", "a loss of o alone", "one of lse, too",
                                  "Only o has gradients: use lse.detach()")
            if dout is None:
                return None, None, None, None
            with torch.no_grad():
                results = ctx.compute(*ctx.saved_tensors, dout=dout)
            gradients = (results.dq, results.dk, results.dv)
            if torch.is_grad_enabled():  # with create_graph=True
                sources = (*ctx.saved_tensors, dout)
                gradients = tuple(OnceOnly.apply(gradient, *sources) for gradient in gradients)
            needed = zip(gradients, ctx.needs_input_grad)
            return *(gradient if is_needed else None for gradient, is_needed in needed), None

    return Attention


def differentiable(compute: Callable[..., Any], q: Any, k: Any, v: Any) -> tuple[Any, Any]:
    """(o, lse) of `compute(q, k, v, return_lse=True)`, with the gradients of q, k and v that
    `compute(q, k, v, dout=dout)` gives."""
    return _function().apply(q, k, v, compute)
