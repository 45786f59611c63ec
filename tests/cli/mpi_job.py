"""Starts the program as an MPI job and keeps each rank's exit code and messages apart."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys

from program import PROGRAM, SKIPPED, ProgramTest, safetensors

# Each rank records how it ended: mpirun itself reports only one of them, and ends the others.
WRAPPER = """#!/bin/sh
trap : TERM
"$@" 2> "$RINGLAB_JOB/err.$OMPI_COMM_WORLD_RANK"
echo $? > "$RINGLAB_JOB/code.$OMPI_COMM_WORLD_RANK"
exit $(cat "$RINGLAB_JOB/code.$OMPI_COMM_WORLD_RANK")
"""


def skip_without_mpi():
    """Ends the program as skipped when there is no mpirun or no MPI in this build."""
    reason = None
    if not shutil.which("mpirun"):
        reason = "mpirun is not installed (openmpi-bin)"
    elif b"built without MPI" in subprocess.run(
            [PROGRAM, "run", "optimized", "--transport", "mpi", "--text", __file__],
            capture_output=True, env=environment()).stderr:
        reason = "the program is built without MPI"
    if reason:
        print("SKIPPED:", reason)
        sys.exit(SKIPPED)


def environment(**more):
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            **more}


class Job:
    def __init__(self, folder, ranks, *words, fault="", launcher=(), timeout=60):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        wrapper = folder / "rank"
        wrapper.write_text(WRAPPER)
        wrapper.chmod(0o755)
        done = subprocess.run(
            ["mpirun", "--oversubscribe", *launcher, "-n", str(ranks), wrapper, PROGRAM,
             *map(str, words)],
            capture_output=True, timeout=timeout,
            env=environment(RINGLAB_JOB=str(folder), RINGLAB_FAULT=fault))
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.launcher_err = done.stderr.decode("utf-8", "replace")
        self.errs = [self._read(folder / f"err.{rank}") for rank in range(ranks)]
        self.codes = [self._read(folder / f"code.{rank}").strip() for rank in range(ranks)]

    @staticmethod
    def _read(path):
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def said(self):
        return f"mpirun {self.code}, ranks {self.codes}\n{self.errs}\n{self.launcher_err}"


class JobTest(ProgramTest):
    def tensors(self, batch=1, heads=4, kv_heads=2, tokens=37, dim=8):
        """A .safetensors file of q, k, v, do with values that differ."""
        def one(count, seed):
            values = [((i * 7919 + seed * 104729) % 1000 - 500) / 250 for i in
                      range(batch * count * tokens * dim)]
            return ("F32", (batch, count, tokens, dim),
                    struct.pack(f"<{len(values)}f", *values))
        return self.file("in.safetensors", safetensors({
            "q": one(heads, 1), "k": one(kv_heads, 2),
            "v": one(kv_heads, 3), "do": one(heads, 4)}))

    def job(self, ranks, *words, **options):
        self.jobs = getattr(self, "jobs", 0) + 1
        return Job(self.folder / f"job{self.jobs}", ranks, "run", "optimized", "--transport", "mpi",
                   *words, **options)
