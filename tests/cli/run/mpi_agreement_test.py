"""Ranks started with different command lines find out before any data moves, and say so."""
import pathlib
import struct
import unittest

from mpi_job import Job, JobTest, skip_without_mpi
from program import PROGRAM, safetensors

RANKS = 3
ODD = 1
TIMEOUT = 200  # seconds; nobody may need them


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
        return self.start_each({rank: ("--input", self.source, *common) for rank in range(RANKS)}
                               | {ODD: ("--input", *odd)})

    def start_each(self, each, wrap=None):
        folder = self.new_folder()
        words = ("--timeout", TIMEOUT, "--output", folder / "o.safetensors")
        job = self.job(RANKS, *words, each=each, wrap=wrap, launcher=("--enable-recovery",))
        self.assertLess(job.seconds, TIMEOUT, job.said())
        self.assertEqual(list(folder.iterdir()), [], "no output")
        self.assertEqual(job.left_running(), [], job.said())
        return job

    def check(self, job, *said):
        self.assertEqual(job.codes, ["4"] * RANKS, job.said())
        for rank, message in enumerate(job.errs):
            # Not heard of the end of one that was faster. No step: no K and V have moved.
            self.assertTrue(message.startswith(f"ringlab: rank {rank}: expected to agree"), job.said())
            for part in said:
                self.assertRegex(message, part, job.said())
            self.assertNotIn("step", message)
            self.assertRegex(message, rf"on ranks 0, 2 and \S.* on rank {ODD}", job.said())
            self.assertIn(f"Suspect: rank {ODD}", message, job.said())

    def test_another_length(self):
        self.check(self.start(self.longer), r"q is \(1, 2, 64, 8\) on ranks 0, 2 and \(1, 2, 65, 8\)")

    def test_another_option_of_any_kind(self):
        for said, *words in (
                ("mask is full on ranks 0, 2 and causal on rank 1", "--mask", "causal"),
                ("dtype is f32 on ranks 0, 2 and bf16", "--dtype", "bf16"),
                ("layout of queries is contiguous on", "--layout", "zigzag"),
                ("slots is 2 on ranks 0, 2 and 3 on", "--slots", "3"),
                ("schedule is ring on", "--schedule", "bidirectional"),
                ("direction is next on", "--direction", "previous"),
                ("tile-queries is", "--tile-queries", "16"),
                ("scale is", "--scale", "1"),
                ("modifiers is", "--softcap", "20")):
            with self.subTest(words=words):
                self.check(self.start(self.source, *words), said)

    def test_what_is_checked_or_written_on_one_rank_only(self):
        for said, *words in (
                ("--check is not given on ranks 0, 2 and given on rank 1", "--check"),
                ("--check-rows is not given on ranks 0, 2 and 5 on", "--check-rows", "5"),
                ("--trace is not given on", "--trace", self.folder / "trace.json"),
                ("--json is not given on", "--json", self.folder / "run.json"),
                ("--output-shards is not given on", "--output-shards", "apart")):
            with self.subTest(words=words):
                self.check(self.start(self.source, *words), said)

    def test_another_place_to_write_to(self):
        words = ("run", "optimized", "--transport", "mpi", "--input", self.source)
        places = {rank: ("--output", self.folder / ("a" if rank != ODD else "b"))
                  for rank in range(RANKS)}
        job = Job(self.new_folder(), RANKS, *words, each=places, launcher=("--enable-recovery",))
        self.check(job, "--output is .*/a on ranks 0, 2 and .*/b on rank 1")
        self.assertEqual([path.name for path in self.folder.glob("[ab]")], [])

    def test_only_one_rank_wants_gradients(self):
        self.source = self.tensors(tokens=64)
        self.check(self.start(self.source, "--backward"), "gradients is not wanted on ranks 0, 2 and")

    def test_another_seed(self):
        each = {rank: ("--random", "--tokens", 64, "--seed", 1 + (rank == ODD))
                for rank in range(RANKS)}
        self.check(self.start_each(each), "seed is 1 on ranks 0, 2 and 2 on rank 1")

    def test_random_numbers_and_a_text(self):
        text = self.file("a.txt", "one token a byte" * 4)
        made = ("--heads", 2, "--kv-heads", 2, "--head-dim", 8, "--tokens", 64)
        each = {rank: ("--random", *made) if rank != ODD else ("--text", text, *made)
                for rank in range(RANKS)}
        self.check(self.start_each(each), "input is random rows on ranks 0, 2 and a text that makes")

    def test_texts_of_equal_length(self):
        texts = [self.file(f"{name}.txt", name * 64) for name in "ab"]
        each = {rank: ("--text", texts[rank == ODD]) for rank in range(RANKS)}
        self.check(self.start_each(each), "input is a text that makes [0-9a-f]{16} on ranks 0, 2 and")

    def test_files_of_equal_shapes(self):
        other = bytearray(self.source.read_bytes())
        other[-5] ^= 1  # v of the last token, which the odd rank does not even read
        other = self.file("other.safetensors", bytes(other))
        self.check(self.start(other), "input is a file of bytes [0-9a-f]{16} on ranks 0, 2 and a file")

    def test_other_vectors(self):
        each = {rank: ("--input", self.source) for rank in range(RANKS)}
        job = self.start_each(each, {ODD: ("env", "RINGLAB_VECTORS=scalar")})
        if "0" in job.codes:
            self.skipTest("this processor has no other vectors")
        self.check(job, "vectors is .* on ranks 0, 2 and scalar on rank 1")

    def test_another_build(self):
        # A program of other sources: the linker has noted another sum of them.
        program = pathlib.Path(PROGRAM).read_bytes()
        note = program.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
        folder = self.new_folder()
        other = folder / pathlib.Path(PROGRAM).name
        other.write_bytes(program[:note] + bytes(20) + program[note + 20:])
        other.chmod(0o755)
        each = {rank: ("--input", self.source) for rank in range(RANKS)}
        job = self.start_each(each, {ODD: ("sh", "-c", 'shift; exec "$0" "$@"', other)})
        self.check(job, f"build-id is {program[note:note + 20].hex()} on ranks 0, 2 and {'00' * 20} on")

    def test_copies_of_a_file_are_one_input(self):
        each = {rank: ("--input", self.file(f"copy{rank}.safetensors", tensors_of(64)))
                for rank in range(RANKS)}
        job = self.job(RANKS, each=each)
        self.assertEqual(job.codes, ["0"] * RANKS, job.said())

    def test_defaults_may_be_said_by_some(self):
        each = {rank: ("--input", self.source) for rank in range(RANKS)}
        each[ODD] += ("--mask", "full", "--schedule", "ring", "--threads", 2)
        job = self.job(RANKS, each=each)
        self.assertEqual(job.codes, ["0"] * RANKS, job.said())

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
