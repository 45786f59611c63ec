"""The program that comes with the package, asked from Python."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any

from ringlab._errors import RunError, UsageError

PROGRAM = pathlib.Path(__file__).parent / "bin" / "ringlab"


def ask(*words: Any) -> dict[str, Any]:
    """The JSON of a command of the program: `ask("simulate", "--tokens", 131072, "--ranks", 8)`.

    `run`, `compare`, `simulate`, `plan`, `verify`, `trace`, `doctor` and `list` have JSON (docs/formats.md):
    `--json` is added. A verdict "wrong" is an answer. Raises UsageError or RunError with what the program
    said."""
    said = _output([*map(str, words), "--json", "-"])
    try:
        return json.loads(said)
    except json.JSONDecodeError:
        raise UsageError(f"ringlab {' '.join(map(str, words))}: expected a command with JSON, found text") from None


class Trace(list[dict[str, Any]]):
    """Events of a run, a dictionary each. A notebook shows their lanes, as `ringlab trace` draws them."""

    def __init__(self, text: str):
        super().__init__(event for event in json.loads(text)["traceEvents"] if event["ph"] == "X")
        self._text = text

    def _repr_html_(self) -> str:
        with tempfile.TemporaryDirectory(prefix="ringlab-") as folder:
            file, picture = pathlib.Path(folder) / "trace.json", pathlib.Path(folder) / "lanes.svg"
            file.write_text(self._text)
            _output(["trace", str(file), "--svg", str(picture)])
            return picture.read_text()


def trace(*words: Any) -> Trace:
    """The events of a `run` or `simulate`: what each rank did, and when (docs/traces.md). Each has
    `cat` (compute, send, receive, wait, add), `ts` and `dur` in microseconds, and `args` with rank,
    step, owner, peer and bytes."""
    with tempfile.TemporaryDirectory(prefix="ringlab-") as folder:
        file = pathlib.Path(folder) / "trace.json"
        _output([*map(str, words), "--trace", str(file)])
        return Trace(file.read_text())


def _output(words: list[str]) -> str:
    if not os.access(PROGRAM, os.X_OK):
        raise RunError(f"ringlab: expected the program at {PROGRAM}, found none. Install the package "
                       "again")
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
        kind = UsageError if done.returncode == 2 else RunError
        raise kind(done.stderr.strip().splitlines()[-1] if done.stderr else
                   f"ringlab {' '.join(words)}: exit code {done.returncode}")
    return done.stdout
