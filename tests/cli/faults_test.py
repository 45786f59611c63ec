"""One rank dies, stops, or lies: every survivor ends in time, with exit code 4, naming it.

RINGLAB_FAULTS=all tries every rank and event for up to 4 ranks; otherwise 3 ranks, fewer events.
"""
import math
import os
import time
import unittest

from mpi_job import JobTest, skip_without_mpi

PHASES = ("before_send", "after_receive", "in_compute")
TIMEOUT = 1.5  # seconds a rank waits
# Grace per question, the stay of failed ranks, mpirun's own second before SIGKILL, start and end.
ENDING = 12
# Left alone, mpirun kills the survivors a second after a death, with or without their last word;
# it then waits that long itself.
PATIENT = ("--mca", "odls_base_sigkill_timeout", "3")
RECOVERING = ("--enable-recovery",)
FULL = os.environ.get("RINGLAB_FAULTS") == "all"


class FaultsTest(JobTest):
    def places(self):
        if not FULL:
            for rank in range(3):
                for number, phase in enumerate(PHASES):
                    yield 3, rank, 3 * ((rank + number) % 2), phase
            return
        for ranks in (2, 3, 4):
            for rank in range(ranks):
                events = math.ceil(math.log2(ranks)) + 3 * (ranks - 1)  # agreement, then hops
                for count in range(events):
                    for phase in PHASES:
                        yield ranks, rank, count, phase

    def run_with(self, ranks, fault, launcher=()):
        begin = time.monotonic()
        # A full mask: every rank sends and receives at every step, so that every fault comes about.
        job = self.job(ranks, "--input", self.source, "--timeout", TIMEOUT, "--output",
                       self.folder / "o.safetensors", fault=fault, launcher=launcher)
        self.assertLess(time.monotonic() - begin, TIMEOUT + ENDING, f"{fault}\n{job.said()}")
        return job

    def setUp(self):
        super().setUp()
        self.source = self.tensors(tokens=24)

    def check_survivors(self, job, victim, fault):
        for rank, (code, said) in enumerate(zip(job.codes, job.errs)):
            if rank == victim:
                continue
            self.assertEqual(code, "4", f"{fault}\n{job.said()}")
            self.assertIn(f"rank {victim}", said, f"{fault}\n{job.said()}")
            self.assertIn(f"Suspect: rank {victim}", said, f"{fault}\n{job.said()}")
        left = [path.name for path in self.folder.iterdir() if path.name.startswith("o.")]
        self.assertEqual(left, [], "a failed run leaves no result")

    def test_a_killed_rank_is_named_by_all_others(self):
        for number, (ranks, rank, count, phase) in enumerate(self.places()):
            for launcher in (RECOVERING, PATIENT) if FULL or number % 4 == 0 else (RECOVERING,):
                fault = f"{rank}:{count}:{phase}:kill"
                with self.subTest(ranks=ranks, fault=fault, launcher=launcher):
                    self.check_survivors(self.run_with(ranks, fault, launcher), rank, fault)

    def test_a_rank_that_stops_for_a_moment_does_no_harm(self):
        for ranks, rank, count, phase in self.places():
            fault = f"{rank}:{count}:{phase}:stop=0.2"
            with self.subTest(ranks=ranks, fault=fault):
                job = self.run_with(ranks, fault)
                self.assertEqual(job.codes, ["0"] * ranks, job.said())
                (self.folder / "o.safetensors").unlink()

    def test_a_rank_that_stops_for_long_is_named_by_all_others(self):
        for ranks, rank, count, phase in self.places():
            fault = f"{rank}:{count}:{phase}:stop=8"
            with self.subTest(ranks=ranks, fault=fault):
                self.check_survivors(self.run_with(ranks, fault), rank, fault)

    def test_a_rank_that_never_comes_is_named(self):
        fault = "1:0:before_send:delay=8"
        self.check_survivors(self.run_with(3, fault), 1, fault)

    def test_a_rank_out_of_memory_says_so_and_is_named(self):
        for ranks, rank, count, phase in self.places():
            fault = f"{rank}:{count}:{phase}:memory"
            with self.subTest(fault=fault):
                job = self.run_with(ranks, fault)
                self.check_survivors(job, rank, fault)
                self.assertIn("out of memory", job.errs[rank], job.said())

    def test_a_fault_plan_that_makes_no_sense_is_a_usage_error(self):
        for fault in ("1", "1:2:3:kill", "1:0:before_send:explode", "0:0:after_receive:flip=1"):
            job = self.job(2, "--input", self.source, fault=fault)
            self.assertEqual(job.code, 2, job.said())
            self.assertIn("RINGLAB_FAULT: expected", job.errs[0], job.said())


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
