"""A function of others in a process of its own: whatever it does there, the caller goes on.

The process is a copy of the caller's, behind the walls of docs/plugins.md. What it sends back is
numbers and text, never objects.
"""
from __future__ import annotations

import contextlib
import importlib.machinery
import json
import math
import os
import pickle
import resource
import socket
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlab import _core
from ringlab._callable import RESULTS, VerifiedCallable

LENGTH = struct.Struct("<Q")
DTYPES = ("float64", "float32", "float16", "uint16")
NAMES = RESULTS[5]
TEXTS = {"raised", "ran_out", "unsupported", "missing"}
CHUNK_BYTES = 1 << 16
MOST_HEADER_BYTES = 1 << 20
MOST_EXTRA_BYTES = 1 << 26
GRACE = 10.0  # calls under way at the end may take so many times as long as the longest so far
LEAST_GRACE_S = 1.0
LEAST_LOST_S = 10.0
DEADLINES_TO_LOSE = 3
COMPUTING = 0.2  # processor time by time of a process that is slow, and does not hang
START_S = 30.0  # for a copy of a process on a busy machine
MOST_WAIT_S = 1e6  # more milliseconds fit no int
WALLS = ("\nBehind walls no files of others can be read, and no sockets with names be made, which the forkserver "
         "and managers of multiprocessing are: fork and spawn work, else isolate=False (docs/plugins.md)")


def why_not_isolated() -> str:
    """The reason why a copy of this process cannot compute; "" where there is none.

    A device's context belongs to the process that made it, and JAX's threads are not copied."""
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith(("/dev/nvidia", "/dev/kfd")):
            return "this process uses a GPU already"
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and getattr(bridge, "_backends", True):
        return "JAX has started its threads in this process"
    return ""


class Ended(Exception):
    """The process is gone."""


class NotStarted(Exception):
    """The machine does not give the process."""


class IsolatedCallable:
    """Calls the function as a VerifiedCallable does, in a copy of this process."""

    def __init__(self, function: Callable[..., Any], library: str | Callable[[np.ndarray], Any],
                 timeout: float) -> None:
        self.gives_lse: bool | None = None
        self.until = math.inf  #: the end of the verification
        self.missing = ""  #: walls that this machine does not give
        self._callee = VerifiedCallable(function, library)
        self._timeout = timeout
        self._child: _core.Child | None = None
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._longest = self._lost = 0.0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._child is not None:
            self._child.end()
        self._child = self._socket = None

    def __call__(self, call: dict[str, Any]) -> dict[str, Any]:
        if self._lost > max(LEAST_LOST_S, DEADLINES_TO_LOSE * self._timeout):
            return {"given_up":
                    f"is no longer called: its crashes and hangs have taken {self._lost:.0f} s"}
        began = time.monotonic()
        allowed = min(self._timeout,
                      max(self.until - began, GRACE * self._longest, LEAST_GRACE_S))
        try:
            if self._child is None:
                self._start()
                began = time.monotonic()
            answer = self._exchange(call, began + allowed)
        except NotStarted as error:
            return {"ran_out": str(error)}
        except TimeoutError:
            return self._lose(f"it gave no answer within {allowed:.3g} s", began)
        except (Ended, OSError):
            return self._lose(None, began)
        except BaseException:  # KeyboardInterrupt: an answer may be on its way
            self.close()
            raise
        self._longest = max(self._longest, time.monotonic() - began)
        if "raised" in answer and "PermissionError" in answer["raised"] + self._child.last_lines():
            answer["raised"] += WALLS
        return answer

    def _lose(self, what: str | None, began: float) -> dict[str, Any]:
        child, before = self._child, processor_seconds()
        ended = child.end()
        computed = processor_seconds() - before
        self.close()
        took = time.monotonic() - began
        self._lost += took
        lines = child.last_lines()
        text = (what or ended) + (f". Its last words: {lines}" if lines else "")
        if self._longest == 0 and what:
            text += ". If it answers outside of ringlab.verify, " + (
                f"it is slow: it computed for {computed:.3g} s, with what it imports: timeout="
                if computed > COMPUTING * took else
                "a library in it cannot be copied with its process: isolate=False")
        return {"raised": text + WALLS * ("PermissionError" in lines)}

    def _start(self) -> None:
        """Starts the copy; NotStarted where its walls do not stand, before the function is called."""
        self._child = _core.Child()
        if not self._child.is_parent:
            serve(self._callee)
        self._socket = socket.socket(fileno=os.dup(self._child.socket))
        self._received = bytearray()
        try:
            header = self._receive(time.monotonic() + max(self._timeout, START_S), 0)
        except (Ended, OSError):
            ended, lines = self._child.end(), self._child.last_lines()
            self.close()
            raise NotStarted(f"no process of its own behind walls: {ended}"
                             + (f". Its last words: {lines}" if lines else "")) from None
        self.missing = header.get("missing", "")
        if self.missing:
            warnings.warn(f"ringlab.verify: functions run without {self.missing}, which this machine "
                          "does not give", stacklevel=2)

    def _exchange(self, call: dict[str, Any], until: float) -> dict[str, Any]:
        self._child.clear_lines()
        given = sum(array.nbytes for array in call.values() if isinstance(array, np.ndarray))
        message = pickle.dumps((call, self.gives_lse), pickle.HIGHEST_PROTOCOL)
        self._wait_until(until)
        self._socket.sendall(LENGTH.pack(len(message)) + message)
        answer = self._receive(until, MOST_EXTRA_BYTES + 16 * given)
        expected = {"o"} | ({"lse"} if self.gives_lse else set())
        expected |= {"dq", "dk", "dv"} if "dout" in call else set()
        if not (TEXTS & answer.keys() or expected <= answer.keys()):
            raise Ended
        return answer

    def _wait_until(self, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(min(left, MOST_WAIT_S))

    def _receive(self, until: float, most_bytes: int) -> dict[str, Any]:
        """The answer; nothing in it is believed before it is checked."""
        length, = LENGTH.unpack(self._take(LENGTH.size, until))
        if length > MOST_HEADER_BYTES:
            raise Ended
        try:
            header = json.loads(self._take(length, until))
            arrays = [(NAMES[NAMES.index(name)], DTYPES.index(dtype), [int(extent) for extent in shape])
                      for name, dtype, shape in header.pop("arrays", [])]
            answer = {name: str(text) for name, text in header.items() if name in TEXTS}
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            raise Ended from None
        sizes = [math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize for _, dtype, shape in arrays]
        if any(extent < 0 for _, _, shape in arrays for extent in shape) or sum(sizes) > most_bytes:
            return {"raised": f"it returned more than {most_bytes} bytes"}
        for (name, dtype, shape), size in zip(arrays, sizes):
            answer[name] = np.frombuffer(self._take(size, until), DTYPES[dtype]).reshape(shape)
        return answer

    def _take(self, count: int, until: float) -> bytearray:
        while len(self._received) < count:
            self._wait_until(until)
            some = self._socket.recv(max(count - len(self._received), CHUNK_BYTES))
            if not some:
                raise Ended
            self._received += some
        taken, self._received = self._received[:count], self._received[count:]
        return taken


def processor_seconds() -> float:
    """Processor time of processes that have ended and were waited for, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def private_bytes() -> int:
    """A limit of memory in bytes: what this process has already, and half of the machine's memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    with open("/proc/self/statm") as file:
        data = int(file.read().split()[5])
    return page * (data + os.sysconf("SC_PHYS_PAGES") // 2)


def files_of_modules() -> tuple[list[str], list[str]]:
    """Files and folders from which Python imports, and folders in which it looks for them.

    All of an installation and of packages can be read; in other folders modules alone."""
    prefixes = {os.path.abspath(prefix) for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)}
    files = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
    files = {os.path.abspath(file) for file in files if isinstance(file, str)}
    listed = {*map(os.path.abspath, filter(os.path.isdir, sys.path)), *map(os.path.dirname, files)}
    listed = {folder for folder in listed
              if not any(f"{folder}/".startswith(f"{prefix}/") for prefix in prefixes)}
    readable = prefixes | {file for file in files if os.path.dirname(file) in listed}
    suffixes = tuple(importlib.machinery.all_suffixes())
    for folder in listed:
        if os.path.exists(f"{folder}/__init__.py"):
            readable.add(folder)
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                # A link may lead to any file.
                target = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                if entry.name.endswith(suffixes) and target.endswith(suffixes) or \
                        os.path.exists(f"{entry.path}/__init__.py"):
                    readable.add(target)
    return sorted(readable), sorted(listed)


def serve(callee: VerifiedCallable) -> None:
    """Answers calls in the copy until nobody asks any more. Never returns."""
    try:
        for name in _core.clear_environment():
            os.environ.pop(name, None)
        missing, changed = _core.confine(private_bytes(), *files_of_modules())
        os.environ.update(changed)  # from here on this is yet another process
        tempfile.tempdir = None
        sys.stdout = open(1, "w", buffering=1, closefd=False, errors="replace")
        sys.stderr = open(2, "w", buffering=1, closefd=False, errors="replace")
        if "torch" in sys.modules:  # a pool of OpenMP's threads that was used before is not copied
            sys.modules["torch"].set_num_threads(1)
        stream = socket.socket(fileno=_core.CHILD_SOCKET).makefile("rwb")
        send(stream, {"missing": missing}, [])
        while length := stream.read(LENGTH.size):
            call, callee.gives_lse = pickle.loads(stream.read(*LENGTH.unpack(length)))
            answer(stream, callee, call)
    finally:
        os._exit(0)


def answer(stream: Any, callee: VerifiedCallable, call: dict[str, Any]) -> None:
    texts: dict[str, str] = {}
    arrays: list[tuple[str, np.ndarray]] = []
    try:
        for name, result in callee(call).items():
            if isinstance(result, str):
                texts[name] = result[-MOST_HEADER_BYTES // 8:]
            else:
                arrays.append((name, _core.as_numpy(name, result)))
    except BaseException as error:
        texts, arrays = {"raised": f"{error}" or type(error).__name__}, []
    sys.stdout.flush()
    send(stream, texts, arrays)


def send(stream: Any, texts: dict[str, str], arrays: list[tuple[str, np.ndarray]]) -> None:
    header = json.dumps(texts | {"arrays": [[name, array.dtype.name, array.shape]
                                            for name, array in arrays]}).encode()
    stream.write(LENGTH.pack(len(header)) + header)
    for _, array in arrays:
        stream.write(array.data.cast("B") if array.size else b"")
    stream.flush()
