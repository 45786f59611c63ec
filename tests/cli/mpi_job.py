"""Starts the program as an MPI job and keeps each rank's exit code and messages apart."""
import itertools
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

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


# Two mpiruns that begin at once make the same folder of sessions, and one of them fails: each process has its own.
SESSIONS = tempfile.TemporaryDirectory(prefix="ringlab-mpi-", ignore_cleanup_errors=True)


def environment(**more):
    """Variables for mpirun."""
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_orte_tmpdir_base": SESSIONS.name, **more}


class Job:
    """One mpirun, ended. `words` are what every rank is given, `each` what one rank is given more;
    the rank `absent` fails before it has joined. `before` stands in front of mpirun, `wrap` in
    front of the program, by rank. mpirun is killed when each rank has worked for `launcher_lives`
    seconds of processor time."""

    def __init__(self, folder, ranks, *words, each=None, absent=None, wrap=None, fault="",
                 launcher=(), before=(), timeout=600, launcher_lives=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        wrapper = self.folder / "rank"
        wrapper.write_text(WRAPPER)
        wrapper.chmod(0o755)
        begin = time.monotonic()
        run = subprocess.Popen(
            [*before, "mpirun", "--oversubscribe", *launcher,
             *self._programs(ranks, wrapper, [*map(str, words)], each, absent, wrap or {})],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(RINGLAB_JOB=str(self.folder), RINGLAB_FAULT=fault))
        if launcher_lives is not None:
            self._wait_for_work(run, ranks, launcher_lives)
            run.kill()
        try:
            out, err = run.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            run.kill()
            raise
        self.seconds = time.monotonic() - begin
        self.code = run.returncode
        self.out = out.decode("utf-8", "replace")
        self.launcher_err = err.decode("utf-8", "replace")
        if launcher_lives is not None:
            self.left_running(patience=200)
        self.errs = [self._read(self.folder / f"err.{rank}") for rank in range(ranks)]
        self.codes = [self._read(self.folder / f"code.{rank}").strip() for rank in range(ranks)]

    @staticmethod
    def _programs(ranks, wrapper, words, each, absent, wrap):
        if each is None and absent is None and not wrap:
            return ["-n", str(ranks), wrapper, PROGRAM, *words]
        programs = [["-n", "1", wrapper, *wrap.get(rank, ()), PROGRAM, *words,
                     *map(str, (each or {}).get(rank, ()))]
                    if rank != absent else ["-n", "1", "false"] for rank in range(ranks)]
        return [word for program in programs for word in [*program, ":"]][:-1]

    @staticmethod
    def _read(path):
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def _wait_for_work(self, run, ranks, seconds):
        ticks = seconds * os.sysconf("SC_CLK_TCK")
        while run.poll() is None and sum(used >= ticks for used in self._ticks_of_ranks()) < ranks:
            time.sleep(0.05)

    def _ticks_of_ranks(self):
        """Processor time of each process of the program."""
        for process in self._of_this_job():
            try:
                if os.path.samefile(process / "exe", PROGRAM):
                    fields = (process / "stat").read_text().rpartition(")")[2].split()
                    yield int(fields[11]) + int(fields[12])  # in user and system mode
            except OSError:  # it has ended
                pass

    def left_running(self, patience=20):
        """Processes of this job that are still there after `patience` seconds, as command lines."""
        end = time.monotonic() + patience
        while (left := self._processes()) and time.monotonic() < end:
            time.sleep(0.05)
        return left

    def _of_this_job(self):
        mark = f"RINGLAB_JOB={self.folder}\0".encode()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    yield process
            except OSError:  # it ended, or is somebody else's
                pass

    def _processes(self):
        left = []
        for process in self._of_this_job():
            try:
                left.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:  # it has ended
                pass
        return left

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

    def setUp(self):
        super().setUp()
        self.numbers = itertools.count(1)

    def job(self, ranks, *words, **options):
        return Job(self.new_folder(), ranks, "run", "optimized", "--transport", "mpi", *words,
                   **options)

    def new_folder(self):
        folder = self.folder / f"job{next(self.numbers)}"
        folder.mkdir()
        return folder

    def ended_with(self, job, code):
        """The job and its ranks ended with this code. Once one rank has ended with an error, mpirun
        may end the others by SIGTERM, which a rank that waits in MPI_Finalize says (4), and after a
        second those that wait for their turn to speak by SIGKILL, with the shell that would have
        noted their code."""
        self.assertEqual(job.code, code, job.said())
        ended = [found for found, err in zip(job.codes, job.errs)
                 if not (found == "4" and "was asked to end (SIGTERM)" in err)]
        self.assertLessEqual(set(ended), {str(code), "143", ""}, job.said())
        self.assertIn(str(code), job.codes, job.said())

    def refused_once(self, ranks, code, message, *words, **options):
        """The job ends with this code, and the first rank alone says why, in one line."""
        job = self.job(ranks, *words, "--timeout", "200", **options)
        self.ended_with(job, code)
        said = [err.replace("Terminated\n", "") for err in job.errs]  # as the shell remarks
        self.assertIn(message, said[0])
        self.assertEqual(said[0].count("\n"), 1, job.said())
        self.assertEqual(said[1:], [""] * (ranks - 1), job.said())
