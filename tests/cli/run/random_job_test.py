"""--random and --check-rows where the ranks are processes: each makes its rows alone."""
import json
import unittest

from mpi_job import JobTest, skip_without_mpi

SIZES = ["--tokens", "96", "--heads", "4", "--kv-heads", "2", "--head-dim", "16"]


class RandomJobTest(JobTest):
    def test_every_process_makes_its_own_rows_and_checks_some_of_them(self):
        path = self.folder / "run.json"
        for ranks, tokens, rows in ((3, 96, 10), (4, 2, 2)):
            job = self.job(ranks, "--random", "--tokens", tokens, "--layout", "zigzag", "--mask",
                           "causal", "--check-rows", rows, "--json", path)
            self.assertEqual(job.code, 0, job.said())
            document = json.loads(path.read_text())
            self.assertTrue(document["passed"])
            self.assertEqual(len(document["checked_rows"]), rows)
            self.assertEqual(sum(rank["compared"] for rank in document["ranks"]),
                             rows * 4 * (32 + 1))

    def test_processes_write_the_bytes_that_threads_write(self):
        threads, processes = self.folder / "t.safetensors", self.folder / "p.safetensors"
        self.succeeds("run", "optimized", "--random", *SIZES, "--ranks", 3, "--backward", "--output",
                      threads)
        job = self.job(3, "--random", *SIZES, "--backward", "--output", processes)
        self.assertEqual(job.code, 0, job.said())
        self.assertEqual(processes.read_bytes(), threads.read_bytes())

    def test_rows_of_a_file_can_be_checked_by_processes(self):
        job = self.job(3, "--input", self.tensors(), "--mask", "causal", "--check-rows", 8)
        self.assertEqual(job.code, 0, job.said())
        self.assertIn("check  ok", job.out)

    def test_a_flipped_bit_of_the_values_is_found_in_some_rows(self):
        # Message 4 of rank 1, after two of the agreement, is V; the last bits of it are an exponent.
        job = self.job(3, "--random", *SIZES, "--check-rows", 12,
                       fault="1:4:before_send:flip=-2")
        self.assertIn("check  WRONG", job.out, job.said())
        self.ended_with(job, 1)

    def test_gradients_are_checked_by_sums_that_are_those_of_threads(self):
        path, sizes = self.folder / "run.json", [*SIZES, "--mask", "causal", "--backward"]
        job = self.job(3, "--random", *sizes, "--check-rows", 4, "--json", path)
        self.assertEqual(job.code, 0, job.said())
        self.assertIn("gradients by sums over all tokens", job.out)
        of_processes = json.loads(path.read_text())["identities"]
        self.succeeds("run", "optimized", "--random", *sizes, "--ranks", 3, "--check-rows", 4,
                      "--json", path)
        of_threads = json.loads(path.read_text())["identities"]
        self.assertEqual([one["law"] for one in of_processes], ["P40", "P42", "P43"])
        for one, other in zip(of_processes, of_threads, strict=True):
            self.assertTrue(one["holds"])
            # Sums of doubles in another order.
            self.assertAlmostEqual(one["off_over_likely"], other["off_over_likely"], 4)

    def test_a_flipped_bit_of_a_gradient_is_found_in_the_sums(self):
        path = self.folder / "run.json"
        # Message 16 of rank 1 is dV, which o and lse do not see.
        job = self.job(3, "--random", *SIZES, "--backward", "--check-rows", 4, "--json", path,
                       fault="1:16:before_send:flip=-2")
        self.ended_with(job, 1)
        document = json.loads(path.read_text())
        self.assertFalse(document["passed"])
        self.assertEqual({one["law"]: one["holds"] for one in document["identities"]},
                         {"P40": False, "P42": True, "P43": False})
        self.assertTrue(all(rank["worst_ratio"] <= 1 for rank in document["ranks"]))


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
