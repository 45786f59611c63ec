"""Runs of the program that pages show."""
import functools
import json
import os
import pathlib
import shlex
import subprocess

from ladder import ROOT

PROGRAM = os.environ.get("RINGLAB_PROGRAM", str(ROOT / "build/bin/ringlab"))


def said(*words) -> str:
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300,
                          cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"ringlab {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


@functools.cache
def asked(words: str) -> dict:
    """The JSON of `ringlab WORDS`."""
    return json.loads(said(*shlex.split(words), "--json", "-"))


def commands() -> list[str]:
    """The commands that `ringlab --help` lists."""
    listed = said("--help").split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.splitlines()]


class Runs:
    """Keeps the pictures of runs in a folder of the site."""

    def __init__(self, html: pathlib.Path):
        self.folder = html / "pictures"
        self.folder.mkdir(parents=True, exist_ok=True)

    def of(self, stage: str) -> tuple[dict, str]:
        """The JSON of a run, and the picture of its lanes."""
        trace, lanes = self.folder / "trace.json", self.folder / f"stage_{stage}_lanes.svg"
        run = said("run", stage, "--random", "--tokens", 64, "--ranks", 4, "--mask", "causal", "--json", "-")
        said("run", stage, "--random", "--ranks", 4, "--mask", "causal", "--trace", trace)
        said("trace", trace, "--svg", lanes)
        trace.unlink()
        return json.loads(run), f"pictures/{lanes.name}"
