"""Arrays of whatever library as the compiled half reads them, and back.

NumPy knows bfloat16 only with ml_dtypes, and hands it on by no protocol: its bits travel as uint16.
PyTorch, JAX and others go through DLPack.
"""
from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

from ringlab._errors import InputError, UsageError, usage_error

FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16}


@functools.cache
def bfloat16() -> np.dtype:
    """NumPy's bfloat16. UsageError without ml_dtypes."""
    try:
        import ml_dtypes
    except ImportError:
        raise usage_error("bf16", "ml_dtypes, which gives NumPy a bfloat16", "none",
                          "pip install ml_dtypes, or use PyTorch tensors") from None
    return np.dtype(ml_dtypes.bfloat16)


def is_bfloat16(array: Any) -> bool:
    """True for a NumPy array of bfloat16."""
    return array.dtype.name == "bfloat16"


class Exchanged:
    """One array on its way to the compiled half."""

    def __init__(self, name: str, array: Any) -> None:
        self.is_bits = False
        self.data = array
        if isinstance(array, np.ndarray):
            if array.dtype.hasobject or array.dtype.itemsize > 8:
                raise InputError(f"{name}: expected float64, float32, float16 or bfloat16, found "
                                 f"{array.dtype}", where=name)
            if not array.dtype.isnative:
                raise InputError(f"{name}: expected the byte order of this machine, found "
                                 f"{array.dtype}", where=name)
            if is_bfloat16(array):
                self.data, self.is_bits = array.view(np.uint16), True
        elif not hasattr(array, "__dlpack__"):
            raise InputError(f"{name}: expected a NumPy array, or one that can be read through DLPack, "
                             f"found {type(array).__name__}", where=name)
        else:
            if getattr(array, "requires_grad", False):
                self.data = self.data.detach()
            if hasattr(array, "is_neg"):  # PyTorch's memory may hold the negative of what it shows
                self.data = self.data.resolve_neg()


def exchange(arrays: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The arrays by name, and whether 16-bit integers among them are the bits of bfloat16."""
    exchanged = {name: Exchanged(name, array) for name, array in arrays.items()}
    bits = {name: one.is_bits for name, one in exchanged.items()}
    for name, array in arrays.items():
        if any(bits.values()) and isinstance(array, np.ndarray) and not bits[name]:
            raise InputError(f"{name}: expected the dtype of the others, bfloat16, found "
                             f"{array.dtype}", where=name)
    return {name: one.data for name, one in exchanged.items()}, any(bits.values())


def namespace_of(array: Any) -> ModuleType | None:
    """The library that the results for this array are made with: None is NumPy."""
    if isinstance(array, np.ndarray):
        return None
    root = type(array).__module__.partition(".")[0]
    if root == "torch":
        import torch
        return torch
    if root in ("jax", "jaxlib"):
        import jax
        return jax.dlpack
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    raise UsageError(f"results: expected an array of a library with from_dlpack, found "
                     f"{type(array).__name__}", where="results")


def as_library(namespace: ModuleType | None, array: Any, is_bits: bool) -> Any:
    """A result of the compiled half as an array of that library, without a copy."""
    if namespace is not None:
        return namespace.from_dlpack(array)
    return array.view(bfloat16()) if is_bits and array.dtype == np.uint16 else array


def numpy_bfloat16(bits: np.ndarray) -> np.ndarray:
    return bits.view(bfloat16())


def as_arrays(library: str, array: np.ndarray, dtype: str) -> Any:
    """A NumPy array (bf16: its bits) as one of `library`, "numpy" or "torch", in the same memory."""
    if library == "numpy":
        return numpy_bfloat16(array) if dtype == "bf16" else array
    import torch
    if dtype == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
