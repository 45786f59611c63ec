"""Arrays of whatever library as the compiled half reads them, and back.

NumPy knows bfloat16 only with ml_dtypes, and hands it on by no protocol: its bits travel as uint16.
PyTorch, JAX and others go through DLPack.
"""
from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import numpy as np

from ringlab._errors import UsageError, input_error, usage_error

FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
READ = "float64, float32, float16 or bfloat16"
READ_NAMES = ("float64", "float32", "float16", "bfloat16", "uint16")  # the last for bits of bfloat16


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
            _check_memory(name, array)
            if is_bfloat16(array):
                self.data, self.is_bits = array.view(np.uint16), True
        elif not hasattr(array, "__dlpack__"):
            raise input_error(name, "a NumPy array, or one that can be read through DLPack",
                              type(array).__name__)
        else:
            if is_tensor(array):
                _check_tensor(name, array)
            if getattr(array, "requires_grad", False):
                self.data = self.data.detach()
            if hasattr(array, "is_neg"):  # PyTorch's memory may hold the negative of what it shows
                self.data = self.data.resolve_neg()


def is_tensor(array: Any) -> bool:
    """True for a tensor of PyTorch, which is not imported for that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def _check_memory(name: str, array: np.ndarray) -> None:
    """Raises for what NumPy hands on by no protocol."""
    if array.dtype.name not in READ_NAMES:
        raise input_error(name, READ, array.dtype)
    if not array.dtype.isnative:
        raise input_error(name, "the byte order of this machine", array.dtype)
    size = array.itemsize
    for stride, extent in zip(array.strides, array.shape):
        if array.size and extent > 1 and stride % size:
            raise input_error(name, f"strides that are multiples of {size} bytes", stride, "Copy it.")


def _check_tensor(name: str, tensor: Any) -> None:
    """Raises for tensors that have no memory as DLPack describes it."""
    layout = str(tensor.layout).removeprefix("torch.")
    if tensor.is_nested or layout != "strided":
        kind = "nested" if tensor.is_nested else "sparse" if "sparse" in layout else layout
        raise input_error(name, "a dense tensor", f"a {kind} tensor")
    if tensor.device.type != "cpu":
        raise input_error(name, "an array on the CPU", f"a tensor on device {tensor.device}",
                          "" if tensor.is_meta else "Copy it to the CPU first.")
    if tensor.is_quantized:
        raise input_error(name, READ, tensor.dtype)
    try:
        tensor.data_ptr()
    except RuntimeError:
        raise input_error(name, "a tensor with numbers in memory",
                          "one without, as torch.func and torch.compile make them") from None


def exchange(arrays: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The arrays by name, and whether 16-bit integers among them are the bits of bfloat16."""
    exchanged = {name: Exchanged(name, array) for name, array in arrays.items()}
    bits = {name: one.is_bits for name, one in exchanged.items()}
    for name, array in arrays.items():
        if any(bits.values()) and isinstance(array, np.ndarray) and not bits[name]:
            raise input_error(name, "the dtype of the others, bfloat16", array.dtype)
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
