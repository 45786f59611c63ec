"""Ranks as processes give the same bits as ranks as threads, and each reads and writes its rows."""
import unittest

from mpi_job import JobTest, skip_without_mpi


class MpiTest(JobTest):
    def compare(self, ranks, *words, tokens=37, suffix=".safetensors"):
        source = self.tensors(tokens=tokens)
        by_threads = self.folder / f"threads{suffix}"
        by_processes = self.folder / f"processes{suffix}"
        self.succeeds("run", "optimized", "--ranks", ranks, "--input", source, *words, "--output",
                      by_threads)
        job = self.job(ranks, "--input", source, *words, "--output", by_processes)
        self.assertEqual(job.code, 0, job.said())
        self.assertEqual(self.contents(by_processes), self.contents(by_threads), (ranks, words))

    @staticmethod
    def contents(path):
        if path.is_dir():
            return {file.name: file.read_bytes() for file in path.iterdir()}
        return path.read_bytes()

    def test_any_number_of_processes_writes_the_bytes_that_threads_write(self):
        for ranks in (1, 2, 3, 4, 7):
            for layout in ("contiguous", "striped", "zigzag"):
                with self.subTest(ranks=ranks, layout=layout):
                    self.compare(ranks, "--mask", "causal", "--layout", layout)

    def test_more_ranks_than_tokens_leave_some_ranks_without_rows(self):
        self.compare(7, "--mask", "causal", tokens=3)

    def test_a_folder_of_npy_files_is_the_same_too(self):
        self.compare(3, "--mask", "causal", suffix="")

    def test_half_precision_and_double_are_written_as_threads_write_them(self):
        for dtype in ("f64", "bf16", "f16"):
            with self.subTest(dtype=dtype):
                self.compare(2, "--dtype", dtype)

    def test_gradients_are_the_same_bits(self):
        for ranks in (1, 2, 3, 4, 7):
            with self.subTest(ranks=ranks):
                self.compare(ranks, "--mask", "causal", "--backward")

    def test_every_rank_checks_its_rows_against_the_reference(self):
        job = self.job(3, "--input", self.tensors(), "--mask", "causal", "--check")
        self.assertEqual(job.code, 0, job.said())
        self.assertIn("check  ok", job.out)

    def test_shards_can_stay_apart_with_their_positions(self):
        job = self.job(2, "--input", self.tensors(), "--output-shards", "apart", "--output",
                       self.folder / "o.safetensors")
        self.assertEqual(job.code, 0, job.said())
        for rank in (0, 1):
            self.assertIn(b'"q_positions"', (self.folder / f"o.rank-{rank}.safetensors").read_bytes())
        self.assertFalse((self.folder / "o.safetensors").exists())

    def test_a_wrong_number_of_ranks_is_said_once(self):
        job = self.job(3, "--input", self.tensors(), "--ranks", "2")
        self.assertEqual(job.code, 2, job.said())  # mpirun may end the others once one has ended
        self.assertIn("--ranks: expected 3, the size of the job, found 2", job.errs[0])
        self.assertEqual(job.errs[1:], ["", ""])

    def test_a_bad_value_in_one_shard_ends_all_ranks_and_leaves_no_file(self):
        source = self.tensors(tokens=4)
        data = bytearray(source.read_bytes())
        do_bytes = 4 * 4 * 8 * 4  # heads, tokens, channels, bytes: the last tensor of the file
        data[-do_bytes - 4:-do_bytes] = b"\x00\x00\xc0\x7f"  # NaN in v of the last token
        source.write_bytes(data)
        job = self.job(2, "--input", source, "--timeout", "5", "--output", self.folder / "o")
        self.assertEqual(job.codes, ["4", "3"], job.said())
        self.assertIn("rank 1 failed", job.errs[0])
        self.assertFalse((self.folder / "o").exists())


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
