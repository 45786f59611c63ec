"""The layer between the verification engine and the function it verifies."""
from __future__ import annotations

import errno
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlab._arrays import Exchanged, as_arrays
from ringlab._errors import InputError
from ringlab._mask import Mask

INPUTS = ("q", "k", "v", "dout")
RAN_OUT = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC)
MODIFIERS = ("softcap", "alibi_slopes", "sinks", "dropout", "dropout_seed")
# The names of the arrays in a tuple of so many.
RESULTS = {1: ("o",), 2: ("o", "lse"), 4: ("o", "dq", "dk", "dv"), 5: ("o", "lse", "dq", "dk", "dv")}


DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}


class Misbehaved(Exception):
    """The function returned, but what it did cannot be compared with anything."""


def is_of_machine(error: BaseException) -> bool:
    """True when memory, threads or descriptors have run out, which says nothing about the function."""
    return (isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
            or isinstance(error, OSError) and error.errno in RAN_OUT
            or isinstance(error, RuntimeError) and str(error) == "can't start new thread")


def results_of(returned: Any, has_gradients: bool) -> dict[str, Any]:
    """The results of the function, by name; lse may be None."""
    parts = returned if isinstance(returned, tuple) else (returned,)
    names = RESULTS.get(len(parts))
    expected = "(o, lse, dq, dk, dv) or (o, dq, dk, dv)" if has_gradients else "o or (o, lse)"
    if names is None or ("dq" in names) != has_gradients:
        raise Misbehaved(f"it returned {len(parts)} arrays, expected {expected}")
    results = {name: part for name, part in zip(names, parts) if part is not None or name != "lse"}
    for name, part in results.items():
        if part is None:
            raise Misbehaved(f"it returned None for {name}, expected {expected}")
    return results


def check_dtype(name: str, array: Any, dtype: str) -> None:
    """Whatever is not lse comes back in the dtype of the inputs; bits of bfloat16 are one."""
    returned = str(getattr(array, "dtype", "no dtype")).rpartition(".")[2]
    if returned == DTYPES[dtype] or (dtype == "bf16" and returned == "uint16"):
        return
    raise Misbehaved(f"it returned {name} as {returned}, expected {DTYPES[dtype]}, as q, k and v are")


class VerifiedCallable:
    """Called by the compiled half with one problem; returns its results, or what went wrong."""

    def __init__(self, function: Callable[..., Any],
                 library: str | Callable[[np.ndarray], Any]) -> None:
        self.gives_lse: bool | None = None  #: None: not known yet
        self._function = function
        self._library = library

    def close(self) -> None:
        """Nothing is to be ended here."""

    def __call__(self, call: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._answer(call)
        except NotImplementedError as error:
            return {"unsupported": str(error) or "NotImplementedError"}
        except Misbehaved as error:
            return {"raised": str(error)}
        except SystemExit as error:
            return {"raised": f"it raised SystemExit({error.code!r})"}
        except Exception as error:  # KeyboardInterrupt ends the verification
            if is_of_machine(error):
                return {"ran_out": f"{type(error).__name__}: {error}"}
            frames = error.__traceback__
            while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
                frames = frames.tb_next
            error = error.with_traceback(frames)
            return {"raised": "".join(traceback.format_exception(error)).rstrip()}

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        given = {name: call[name] for name in INPUTS if name in call}
        before = {name: array.tobytes() for name, array in given.items()}
        returned = self._call(call)
        for name, array in given.items():
            if array.tobytes() != before[name]:
                raise Misbehaved(f"it changed its input {name}")
        results = results_of(returned, "dout" in call)
        if self.gives_lse is False:
            results.pop("lse", None)
        elif self.gives_lse and "lse" not in results:
            raise Misbehaved("it returned no lse, as it did when it was first called")
        return {name: self._result(name, array, call["dtype"]) for name, array in results.items()}

    def _call(self, call: dict[str, Any]) -> Any:
        tensors = {name: self._array(call[name], call["dtype"]) for name in INPUTS if name in call}
        more = {name: call[name] for name in MODIFIERS if name in call}
        if "dout" in tensors:
            more["dout"] = tensors["dout"]
        return self._function(tensors["q"], tensors["k"], tensors["v"], mask=self._mask(call),
                              scale=call["scale"], **more)

    def _array(self, array: np.ndarray, dtype: str) -> Any:
        if callable(self._library):
            return self._library(as_arrays("numpy", array, dtype))
        return as_arrays(self._library, array, dtype)

    def _mask(self, call: dict[str, Any]) -> Mask:
        shape = (call["q"].shape[2], call["k"].shape[2])
        matrices = tuple(np.frombuffer(bits, np.uint8).reshape(shape) for bits in call["matrices"])
        library = "torch" if self._library == "torch" else "numpy"
        return Mask(call["mask"], *shape, matrices, library)

    def _result(self, name: str, array: Any, dtype: str) -> Any:
        """(batch, heads, tokens) for an lse is (batch, heads, tokens, 1), of any dtype."""
        if not hasattr(array, "ndim") or not hasattr(array, "shape"):
            raise Misbehaved(f"it returned {type(array).__name__} for {name}, expected an array")
        if name == "lse":
            array = array[..., None] if array.ndim == 3 else array
        else:
            check_dtype(name, array, dtype)
        try:
            return Exchanged(name, array).data
        except InputError as error:
            raise Misbehaved(str(error)) from None
