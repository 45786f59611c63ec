"""One rank dies, stops, or lies: every survivor ends in time, with exit code 4, naming it.

By default 3 ranks and a few places. RINGLAB_FAULTS=all tries every (rank, event, phase) of 2, 3 and
4 ranks, RINGLAB_FAULTS=2,3 those of 2 and 3; RINGLAB_FAULTS_REPEAT=20 each place that many times.
"""
import concurrent.futures
import math
import os
import re
import signal
import unittest

from mpi_job import JobTest, skip_without_mpi

PHASES = ("before_send", "after_receive", "in_compute")
TIMEOUT = 3  # seconds a rank waits
AWAY = 5  # seconds a rank stays away, of which the others wait a tenth
# Grace per question, the stay of failed ranks, mpirun's own second before SIGKILL, start and end:
# 12 s are enough where nothing else runs.
ENDING = 120
# Left alone, mpirun kills the survivors a second after a death, with or without their last word;
# it then waits that long itself.
PATIENT = ("--mca", "odls_base_sigkill_timeout", "5")
RECOVERING = ("--enable-recovery",)
GRID = os.environ.get("RINGLAB_FAULTS", "").replace("all", "2,3,4")
REPEAT = int(os.environ.get("RINGLAB_FAULTS_REPEAT", "1"))
# Jobs at one time: they mostly wait for their deadlines.
JOBS = int(os.environ.get("RINGLAB_FAULTS_JOBS", "3"))
RANKS = 3
JOINING = 15  # seconds, where a rank is missed within the timeout
REFUSALS = os.environ.get("RINGLAB_REFUSALS", "")
# A step of some seconds, with a timeout that allows it.
LONG = ("--tokens", 16384, "--heads", 4, "--kv-heads", 4, "--head-dim", 64, "--timeout", 1000)


def messages(ranks):
    """Of a rank: the rounds of the agreement, then header, K and V of every hop."""
    return math.ceil(math.log2(ranks)) + 3 * (ranks - 1)


def places(shift):
    """(ranks, rank, count, phase). The samples of three successive shifts have every (rank, phase)
    and none twice."""
    if GRID:
        return [(ranks, rank, count, phase)
                for ranks in map(int, GRID.split(",")) for rank in range(ranks)
                for count in range(messages(ranks)) for phase in PHASES] * REPEAT
    counts = (0, 3, messages(RANKS) - 1)
    return [(RANKS, rank, counts[(rank + 2 * shift) % 3], PHASES[(rank + shift) % 3])
            for rank in range(RANKS)] * REPEAT


class FaultsTest(JobTest):
    def setUp(self):
        super().setUp()
        self.source = self.tensors(tokens=24)

    def run_one(self, ranks, fault, *words, launcher=RECOVERING, source=None, waits=TIMEOUT,
                **options):
        folder = self.new_folder()
        # A full mask: every rank sends and receives at every step, so that every fault comes about.
        job = self.job(ranks, *(source or ("--input", self.source, "--timeout", waits)),
                       "--output", folder / "o.safetensors", *words, fault=fault,
                       launcher=launcher, **options)
        job.outputs = folder
        job.fault = fault
        return job

    @staticmethod
    def run_all(starts):
        """The jobs, in order; some of them at the same time."""
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            return list(pool.map(lambda start: start(), starts))

    def run_at(self, shift, kind, **options):
        """(rank, job) of every place."""
        chosen = places(shift)
        starts = [lambda ranks=ranks, fault=f"{rank}:{count}:{phase}:{kind}": self.run_one(
            ranks, fault, **options) for ranks, rank, count, phase in chosen]
        return zip((rank for _, rank, _, _ in chosen), self.run_all(starts))

    def check_end(self, job):
        said = f"{job.fault}\n{job.said()}"
        self.assertLess(job.seconds, TIMEOUT + ENDING, said)
        self.assertEqual(job.left_running(), [], f"processes are left\n{said}")

    def check_survivors(self, job, victim, codes=("4",)):
        self.check_end(job)
        said = f"{job.fault}\n{job.said()}"
        for rank, (code, message) in enumerate(zip(job.codes, job.errs)):
            if rank == victim:  # others may have given up on it and be gone: they are not to blame
                self.assertNotRegex(message, rf"Suspect: rank (?!{victim}\n)", said)
                continue
            self.assertIn(code, codes, said)
            self.assertIn(f"Suspect: rank {victim}\n", message, said)
        self.assertEqual(list(job.outputs.iterdir()), [], f"a failed run leaves no result\n{said}")

    def check_all(self, jobs, codes=("4",)):
        for victim, job in jobs:
            with self.subTest(fault=job.fault):
                self.check_survivors(job, victim, codes)

    def test_a_killed_rank_is_named_by_all_others(self):
        self.check_all(self.run_at(0, "kill"))

    def test_a_killed_rank_is_named_before_the_launcher_ends_the_others(self):
        # The launcher's SIGTERM may come between a survivor's message and its end.
        self.check_all(self.run_at(1, "kill", launcher=PATIENT), codes=("4", "143"))

    def test_a_killed_rank_is_named_in_the_middle_of_long_steps(self):
        # The launcher leaves a second between SIGTERM and SIGKILL; a step takes longer.
        job = self.run_one(RANKS, f"1:{messages(RANKS) - 1}:after_receive:kill", *LONG,
                           launcher=(), source=("--random",))
        self.check_survivors(job, 1, codes=("4", "143", "137", ""))

    def test_a_rank_that_is_asked_to_end_says_so_and_nobody_else_is_named(self):
        # Of a step that is long enough for a look at what has come: every 5 ms, on a busy machine.
        jobs = self.run_all([lambda victim=victim, phase=phase: self.run_one(
            RANKS, f"{victim}:2:{phase}:term", *LONG, source=("--random",))
            for victim, phase in enumerate(PHASES)])
        for victim, job in enumerate(jobs):
            with self.subTest(fault=job.fault):
                self.check_survivors(job, victim)
                self.assertEqual(job.codes[victim], "4", job.said())
                for message in job.errs:
                    self.assertIn(f"rank {victim} was asked to end (SIGTERM)", message, job.said())
                self.assertNotIn("Suspect", job.errs[victim], job.said())

    def test_a_rank_that_stops_for_long_is_named_by_all_others(self):
        self.check_all(self.run_at(2, f"stop={AWAY}", waits=AWAY / 10))

    def test_a_rank_that_stops_for_a_moment_does_no_harm(self):
        for _, job in self.run_at(1, "stop=0.2"):
            with self.subTest(fault=job.fault):
                self.check_end(job)
                self.assertEqual(set(job.codes), {"0"}, job.said())
                self.assertTrue((job.outputs / "o.safetensors").exists())

    def test_a_rank_that_never_sends_a_message_is_named(self):
        job = self.run_one(3, f"1:0:before_send:delay={AWAY}", waits=AWAY / 10)
        self.check_survivors(job, 1)

    def test_a_rank_that_fails_before_it_joins_ends_the_job(self):
        # The others sit in MPI_Init: the launcher ends them.
        job = self.run_one(RANKS, "", launcher=(), absent=1)
        self.check_end(job)
        self.assertNotEqual(job.code, 0, job.said())
        self.assertEqual(list(job.outputs.iterdir()), [], job.said())

    def test_a_rank_that_dies_before_it_joins_keeps_nobody_in_MPI_Init(self):
        job = self.run_one(RANKS, "", launcher=RECOVERING, absent=1)
        self.assertEqual([job.codes[0], job.codes[2]], ["4", "4"], job.said())
        self.assertLess(job.seconds, JOINING, job.said())
        for rank in (0, 2):
            self.assertIn("MPI_Init", job.errs[rank], job.said())
            self.assertIn("Suspect: rank 1\n", job.errs[rank], job.said())
        self.assertEqual(list(job.outputs.iterdir()), [], job.said())

    @unittest.skipUnless(REFUSALS, "no library that kills")
    def test_a_rank_that_dies_before_results_get_their_names_leaves_nothing(self):
        # All ranks have agreed that the results are complete.
        for names in ((), ("--output-shards", "apart")):
            for count in (0, 1):
                with self.subTest(names=names, count=count):
                    kill = ("env", f"LD_PRELOAD={REFUSALS}", f"RINGLAB_KILL={int(signal.SIGKILL)}",
                            f"RINGLAB_REFUSE=rename:{count}:1:ringlab")
                    job = self.run_one(RANKS, "", *names, wrap={0: kill})
                    self.check_end(job)
                    self.assertEqual(job.codes, ["137", "4", "4"], job.said())
                    for message in job.errs[1:]:
                        self.assertIn("Suspect: rank 0\n", message, job.said())
                    self.assertEqual([path.name for path in job.outputs.iterdir()
                                      if ".rank-0." in path.name or path.name.startswith(".")], [])

    @unittest.skipUnless(REFUSALS, "no library that stops")
    def test_a_rank_that_stops_before_results_get_their_names_is_named_within_the_timeout_and_a_second(self):
        stop = ("sh", "-c", f'(sleep {4 * TIMEOUT}; kill -CONT $$) & LD_PRELOAD={REFUSALS} RINGLAB_KILL='
                f'{int(signal.SIGSTOP)} RINGLAB_REFUSE=rename:0:1:ringlab exec "$@"', "sh")
        job = self.run_one(RANKS, "", wrap={0: stop})
        self.check_survivors(job, 0)
        for message in job.errs[1:]:
            self.assertIn("rank 0 is stopped", message)
            self.assertLess(float(re.search(r"after ([\d.]+) s", message)[1]), TIMEOUT + 2, job.said())

    def test_a_launcher_that_is_killed_is_missed_by_every_rank(self):
        # The job would take much longer than its launcher lives, on a fast machine too.
        job = self.run_one(RANKS, "", *LONG[2:], launcher=(), launcher_lives=1,
                           source=("--random", "--tokens", 131072))
        self.check_end(job)
        self.assertEqual(job.codes, ["4"] * RANKS, job.said())
        for message in job.errs:
            self.assertRegex(message, "the process that started (rank .|this one) has ended")
        self.assertEqual(list(job.outputs.iterdir()), [], job.said())

    def test_a_rank_out_of_memory_says_so_and_is_named(self):
        for victim, job in self.run_at(2, "memory"):
            with self.subTest(fault=job.fault):
                self.check_survivors(job, victim)
                self.assertIn("out of memory", job.errs[victim], job.said())

    def test_messages_that_are_wrong_are_found_where_they_arrive(self):
        header, values = messages(RANKS) - 3, messages(RANKS) - 1  # of the last hop
        lies = [(1, 0, "flip=0", "a damaged message"),  # of the agreement
                (0, header, "flip=9", "wrong magic number"),
                (1, header, "flip=200", "a damaged header"),
                (2, header, "replay", "the chunk of rank"),
                (1, header, "half", "disagree about the size"),
                (0, values, "half", "disagree about the size"),
                (2, values, "flip=-1", "damaged data"),
                (1, values, "replay", "damaged data")]
        jobs = self.run_all([lambda liar=liar, count=count, kind=kind: self.run_one(
            RANKS, f"{liar}:{count}:before_send:{kind}", "--integrity", "full")
            for liar, count, kind, _ in lies])
        for (liar, _, _, found), job in zip(lies, jobs):
            with self.subTest(fault=job.fault):
                self.check_end(job)
                self.assertEqual(job.codes, ["4"] * RANKS, job.said())
                self.assertIn(found, job.errs[(liar + 1) % RANKS], job.said())
                for message in job.errs:
                    self.assertIn(f"rank {liar}", message, job.said())
                self.assertEqual(list(job.outputs.iterdir()), [], job.said())

    def test_a_fault_plan_that_makes_no_sense_is_a_usage_error(self):
        for fault in ("1:0:before_send:explode", "0:0:after_receive:flip=1"):
            self.refused_once(2, 2, "RINGLAB_FAULT: expected", "--input", self.source, fault=fault)


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
