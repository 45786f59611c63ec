"""Ranks as processes give the same bits as ranks as threads, and each reads and writes its rows."""
import json
import struct
import unittest

from mpi_job import Job, JobTest, skip_without_mpi


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
        for words in ([], ["--backward"]):
            job = self.job(3, "--input", self.tensors(), "--mask", "causal", "--check", *words)
            self.assertEqual(job.code, 0, job.said())
            self.assertIn("check  ok", job.out)

    def test_the_check_says_how_many_values_have_no_bound(self):
        path = self.folder / "run.json"
        words = ["--random", "--tokens", 40, "--heads", 1, "--head-dim", 4, "--scale", "3e5",
                 "--check", "--json", path]
        self.succeeds("run", "optimized", "--ranks", 2, *words)
        open_ones = sum(tensor["unbounded"]
                        for tensor in json.loads(path.read_text())["check"]["tensors"])
        self.assertGreater(open_ones, 0)
        job = self.job(2, *words)
        self.assertEqual(job.code, 0, job.said())
        self.assertIn(f"check  ok, {open_ones} have bounds as wide as the answer", job.out)
        document = json.loads(path.read_text())
        self.assertEqual(document["unbounded"], open_ones)
        nothing = self.job(2, "--random", "--tokens", 40, "--scale", "1e12", "--check")
        self.assertEqual(nothing.code, 1, nothing.said())

    def test_the_check_compares_every_value_of_every_tensor_once(self):
        path = self.folder / "run.json"
        heads, kv_heads, dim = 4, 2, 8  # of the tensors
        for ranks, tokens in [(2, 37), (5, 3)]:
            for words in ([], ["--backward"]):
                job = self.job(ranks, "--input", self.tensors(tokens=tokens), "--check", "--json",
                               path, *words)
                self.assertEqual(job.code, 0, job.said())
                document = json.loads(path.read_text())
                self.assertTrue(document["passed"])
                values = heads * tokens * (dim + 1)
                if words:
                    values += (heads + 2 * kv_heads) * tokens * dim
                self.assertEqual(sum(rank["compared"] for rank in document["ranks"]), values)

    def test_json_has_the_figures_that_threads_have_whatever_the_ranks(self):
        for ranks, tokens in [(1, 37), (2, 37), (7, 37), (7, 3)]:
            with self.subTest(ranks=ranks, tokens=tokens):
                source = self.tensors(tokens=tokens)
                words = ["--input", source, "--mask", "causal", "--backward", "--layout", "striped",
                         "--check", "--json"]
                paths = [self.folder / "threads.json", self.folder / "processes.json"]
                self.succeeds("run", "optimized", "--ranks", ranks, *words, paths[0])
                job = self.job(ranks, *words, paths[1])
                self.assertEqual(job.code, 0, job.said())
                threads, processes = (json.loads(path.read_text()) for path in paths)
                for one in (threads, processes):
                    self.assertTrue(one["passed"])
                    self.assertTrue(one["as_expected"])
                self.assertEqual(processes["wire"], threads["wire"])
                self.assertEqual(len(processes["ranks"]), ranks)
                for mine, theirs in zip(processes["ranks"], threads["ranks"]):
                    for name in mine:
                        if "bytes" in name or "messages" in name:
                            self.assertEqual(mine[name], theirs[name], name)

    def test_shards_can_stay_apart_with_their_positions(self):
        for ranks, tokens in [(2, 37), (7, 37), (7, 3)]:
            with self.subTest(ranks=ranks, tokens=tokens):
                target = self.folder / f"o{ranks}-{tokens}.safetensors"
                job = self.job(ranks, "--input", self.tensors(tokens=tokens), "--layout", "zigzag",
                               "--output-shards", "apart", "--output", target)
                self.assertEqual(job.code, 0, job.said())
                held = []
                for rank in range(ranks):
                    part = target.with_suffix(f".rank-{rank}.safetensors")
                    held += self.positions(part.read_bytes())
                self.assertEqual(sorted(held), list(range(tokens)))
                self.assertFalse(target.exists())
                first, last = (target.with_suffix(f".rank-{r}.safetensors") for r in (0, ranks - 1))
                self.assertIn(f"wrote {first} … {last}", job.out)

    @staticmethod
    def positions(content):
        length, = struct.unpack_from("<Q", content)
        entry = json.loads(content[8:8 + length])["q_positions"]
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        return [int(x) for x in struct.unpack(f"<{(end - begin) // 8}d", content[begin:end])]

    def test_a_trace_has_the_events_that_threads_have(self):
        for schedule in ("ring", "double:2", "allgather"):
            with self.subTest(schedule=schedule):
                words = ["--input", self.tensors(), "--mask", "causal", "--layout", "zigzag",
                         "--backward", "--schedule", schedule, "--trace"]
                paths = [self.folder / "threads.json", self.folder / "processes.json"]
                self.succeeds("run", "optimized", "--ranks", 4, *words, paths[0])
                job = self.job(4, *words, paths[1])
                self.assertEqual(job.code, 0, job.said())
                self.assertIn("the clocks of the ranks agree", job.out)
                threads, processes = map(self.happened, paths)
                self.assertEqual(processes, threads)
                self.assertTrue(any(processes))
                self.succeeds("trace", paths[1], "--svg", self.folder / "trace.svg")

    @staticmethod
    def happened(path):
        """What each rank did, in order, without the times."""
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
        ranks = 1 + max(e["args"]["rank"] for e in events)
        return [[(e["cat"], e["args"]) for e in events if e["args"]["rank"] == rank]
                for rank in range(ranks)]

    def test_no_receive_ends_before_its_send_began_as_far_as_clocks_are_known(self):
        path, report = self.folder / "trace.json", self.folder / "run.json"
        job = self.job(4, "--input", self.tensors(), "--backward", "--trace", path, "--json", report)
        self.assertEqual(job.code, 0, job.said())
        uncertainty = json.loads(report.read_text())["clock_uncertainty_s"]
        self.assertGreater(uncertainty, 0)
        begins, ends = {}, {}
        for e in json.loads(path.read_text())["traceEvents"]:
            if e["cat" if "cat" in e else "ph"] not in ("send", "receive"):
                continue
            self.assertGreaterEqual(e["ts"], 0)
            a = e["args"]
            link = (a["rank"], a["peer"]) if e["cat"] == "send" else (a["peer"], a["rank"])
            key = (*link, a["owner"], a["gradient"], a["pass"])
            (begins if e["cat"] == "send" else ends)[key] = e["ts"] + (
                0 if e["cat"] == "send" else e["dur"])
        self.assertEqual(set(begins), set(ends))
        for key, begin in begins.items():
            # Each of the two ranks may be off by that much; times are microseconds, cut to 1 ns.
            self.assertGreaterEqual(ends[key] + 2 * uncertainty * 1e6 + 0.002, begin, key)

    def test_rounds_write_what_one_run_writes(self):
        self.compare(3, "--mask", "causal", "--rounds", "2")

    def test_what_is_wrong_with_the_command_line_is_said_once(self):
        source = self.tensors()
        for message, *words in [
                ("--ranks: expected 3, the size of the job, found 2", "--ranks", "2"),
                ("Did you mean --ranks?", "--rnks", "3"),
                ("--wire: expected one of", "--wire", "int4"),
                ("--slots", "--slots", "0"),
                ("double:9", "--schedule", "double:9"),
                ("--output-shards", "--output-shards", "apart"),
                ("another place than", "--trace", source)]:
            with self.subTest(words=words):
                self.refused_once(3, 2, message, "--input", source, *words)

    def test_more_ranks_than_the_job_has_are_refused(self):
        self.refused_once(2, 2, "--ranks: expected 2, the size of the job, found 3", "--input",
                          self.tensors(), "--ranks", "3")

    def test_what_is_wrong_with_the_input_is_said_once(self):
        self.refused_once(3, 3, "nowhere.safetensors", "--input", self.folder / "nowhere.safetensors")
        self.refused_once(3, 3, "garbled", "--input", self.file("garbled.safetensors", "x" * 99))

    def test_an_option_that_one_rank_alone_does_not_know_is_said_by_it(self):
        job = self.job(2, "--input", self.tensors(), each={1: ("--rnks", "3")})
        self.assertEqual(job.code, 2, job.said())
        self.assertIn("ringlab: rank 1: --rnks: expected an option", job.errs[1], job.said())

    def files_of_a_failure(self, *words, ranks=2):
        """What is left of a job whose JSON cannot be written."""
        target = self.folder / "results"
        target.mkdir()
        job = self.job(ranks, "--input", self.tensors(), "--json", "/dev/full", "--trace",
                       target / "trace.json", *words)
        self.ended_with(job, 4)
        self.assertIn("rank 0: /dev/full", job.errs[0], job.said())
        left = sorted(str(path.relative_to(target)) for path in target.rglob("*"))
        for path in left:
            (target / path).unlink()
        target.rmdir()
        return left

    def test_results_json_and_trace_are_there_together_or_not_at_all(self):
        target = self.folder / "results"
        for shards in ("merged", "apart"):
            for name in ("o.safetensors", "folder"):
                with self.subTest(shards=shards, name=name):
                    self.assertEqual(self.files_of_a_failure(
                        "--output", target / name, "--output-shards", shards), [])

    def test_results_follow_links_and_keep_permissions(self):
        link, target = self.folder / "link.safetensors", self.folder / "target.safetensors"
        link.symlink_to(target.name)
        target.write_bytes(b"old")
        target.chmod(0o640)
        job = self.job(2, "--input", self.tensors(), "--output", link)
        self.assertEqual(job.code, 0, job.said())
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.stat().st_mode & 0o777, 0o640)
        self.assertGreater(target.stat().st_size, 100)

    def test_what_only_the_first_rank_writes_is_checked_before_the_run(self):
        for option in ("--json", "--trace"):
            self.refused_once(2, 4, f"rank 0: {option}", "--input", self.tensors(), option,
                              self.folder / "nowhere" / "file.json")

    def test_several_ranks_without_a_transport_are_told_what_is_missing(self):
        words = ["run", "optimized", "--input", self.tensors(), "--output", self.folder / "o"]
        job = Job(self.new_folder(), 3, *words)
        self.ended_with(job, 2)
        self.assertIn("3 ranks of which each would run alone", job.errs[0], job.said())
        self.assertIn("--transport mpi", job.errs[0], job.said())
        self.assertFalse((self.folder / "o").exists())
        self.assertEqual(Job(self.new_folder(), 1, *words).code, 0)
        alone = Job(self.new_folder(), 2, *words[:-2], "--transport", "threads")
        self.assertEqual(alone.codes, ["0", "0"], alone.said())

    def test_a_bad_value_in_one_shard_ends_all_ranks_and_leaves_no_file(self):
        source = self.tensors(tokens=4)
        data = bytearray(source.read_bytes())
        do_bytes = 4 * 4 * 8 * 4  # heads, tokens, channels, bytes: the last tensor of the file
        data[-do_bytes - 4:-do_bytes] = b"\x00\x00\xc0\x7f"  # NaN in v of the last token
        source.write_bytes(data)
        self.refused_once(2, 3, "rank 1: tensor v at [0, 1, 3, 7]", "--input", source, "--output",
                          self.folder / "o")
        self.assertFalse((self.folder / "o").exists())

    def pace(self, fault):
        report = self.folder / "pace.json"
        job = self.job(3, "--input", self.tensors(), "--json", report, fault=fault)
        self.assertEqual(job.code, 0, job.said())
        return job, json.loads(report.read_text())

    def test_a_rank_that_takes_longer_is_named_by_its_step_times(self):
        job, report = self.pace("1:2:before_send:delay=1.5")  # after two rounds of the agreement
        self.assertEqual(report["straggler"]["rank"], 1, report)
        self.assertGreater(report["straggler"]["step_seconds"], 0.4)
        self.assertGreater(report["straggler"]["factor"], 1.5)
        self.assertIn("straggler  rank 1: ", job.out)
        # Rank 1's first step came to rank 2 with its second message; further it had no time to go.
        self.assertEqual(len(report["heard_step_seconds"]), 3)
        self.assertIsNone(report["heard_step_seconds"][1])
        self.assertGreater(report["heard_step_seconds"][2], 0)

    def test_ranks_that_are_as_fast_as_each_other_are_not_named(self):
        for _ in range(5):  # a machine that is busy with something else may hold up any rank
            job, report = self.pace("")
            if report["straggler"] is None and report["slow_link"] is None:
                break
        self.assertIsNone(report["straggler"], report)
        self.assertIsNone(report["slow_link"], report)
        self.assertNotIn("straggler", job.out)
        self.assertEqual([(link["from"], link["to"]) for link in report["links"]],
                         [(2, 0), (0, 1), (1, 2)])


if __name__ == "__main__":
    skip_without_mpi()
    unittest.main()
