"""Ranks started with different command lines find out before any data moves, and say so."""
import struct
import unittest

from mpi_job import JobTest, skip_without_mpi
from program import safetensors

RANKS = 3
ODD = 1
TIMEOUT = 20  # seconds; nobody may need them


def tensors_of(tokens, heads=2, dim=8):
    values = [(i * 7919 % 1000 - 500) / 250 for i in range(heads * tokens * dim)]
    tensor = ("F32", (1, heads, tokens, dim), struct.pack(f"<{len(values)}f", *values))
    return safetensors({name: tensor for name in ("q", "k", "v")})


class MpiAgreementTest(JobTest):
    def setUp(self):
        super().setUp()
        self.source = self.file("in.safetensors", tensors_of(64))
        self.longer = self.file("longer.safetensors", tensors_of(65))

    def start(self, *odd, common=()):
        """The rank ODD is given other words than the others."""
        folder = self.new_folder()
        words = ("--timeout", TIMEOUT, "--output", folder / "o.safetensors", "--input")
        each = {rank: (self.source, *common) for rank in range(RANKS)}
        each[ODD] = odd
        job = self.job(RANKS, *words, each=each, launcher=("--enable-recovery",))
        self.assertLess(job.seconds, TIMEOUT, job.said())
        self.assertEqual(list(folder.iterdir()), [], "no output")
        self.assertEqual(job.left_running(), [], job.said())
        return job

    def check(self, job):
        self.assertEqual(job.codes, ["4"] * RANKS, job.said())
        for rank, message in enumerate(job.errs):
            # Found by itself, or heard from one that was faster. No step: no K and V have moved.
            self.assertTrue(message.startswith(f"ringlab: rank {rank}: expected to"), job.said())
            self.assertIn("given different shapes, masks or options", message)
            self.assertNotIn("step", message)
            self.assertRegex(message, rf"ranks ({ODD} and \d|\d and {ODD}) were", job.said())

    def test_another_length(self):
        self.check(self.start(self.longer))

    def test_another_option_of_any_kind(self):
        for words in (("--mask", "causal"), ("--dtype", "bf16"), ("--layout", "zigzag"),
                      ("--slots", "3"), ("--schedule", "bidirectional")):
            with self.subTest(words=words):
                self.check(self.start(self.source, *words))

    def test_only_one_rank_wants_gradients(self):
        self.source = self.tensors(tokens=64)
        self.check(self.start(self.source, "--backward"))

    def test_a_word_that_only_one_rank_cannot_read_is_said(self):
        job = self.start(self.source, "--mask", "nonsense")
        self.assertNotIn("0", job.codes, job.said())
        self.assertIn(f"rank {ODD}: mask: expected full, causal", "".join(job.errs), job.said())
        self.assertIn("nonsense", "".join(job.errs), job.said())

    def test_the_same_command_lines_agree(self):
        folder = self.new_folder()
        each = {rank: ("--input", self.source) for rank in range(RANKS)}
        job = self.job(RANKS, "--output", folder / "o.safetensors", each=each)
        self.assertEqual(job.codes, ["0"] * RANKS, job.said())
        self.assertTrue((folder / "o.safetensors").exists())


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
