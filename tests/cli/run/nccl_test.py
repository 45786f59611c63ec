"""--transport nccl: ranks meet in a folder or by mpirun; what is said where it cannot be."""
import json
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import device_test
import mpi_job
from program import PROGRAM, Result, ringlab

SMALL = ("--random", "--tokens", 37, "--heads", 2, "--head-dim", 8)


def environment(**more):
    """Without a variable of ours, unless it is given."""
    kept = {name: value for name, value in os.environ.items() if name != "RINGLAB_NCCL_LIBRARY"}
    return {**kept, **{name: str(value) for name, value in more.items()}}


class NcclTest(device_test.DeviceTest):
    def setUp(self):
        super().setUp()
        self.nccl = json.loads(self.succeeds("doctor", "--json", "-").out)["nccl"]
        self.meeting = self.folder / "meeting"

    def words(self, *words, subject="optimized"):
        return ["run", subject, *SMALL, "--device", "cuda", "--transport", "nccl",
                "--dtype", "bf16", *words]

    def rank_words(self, rank, ranks, *words, **subject):
        return self.words("--ranks", ranks, "--rank", rank, "--meet", self.meeting, *words, **subject)

    def meet(self, ranks, *words, each=None, **variables):
        """All ranks as processes; what each of them ended with."""
        begin = time.monotonic()
        processes = [
            subprocess.Popen([PROGRAM, *map(str, self.rank_words(rank, ranks, *words,
                                                                 *(each or {}).get(rank, ())))],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(**variables)) for rank in range(ranks)]
        results = []
        for process in processes:
            out, err = process.communicate(timeout=600)
            results.append(Result(subprocess.CompletedProcess([], process.returncode, out, err)))
        self.seconds = time.monotonic() - begin
        return results

    def said_by_first(self, results, code, *parts):
        """All ranks end with this code, and rank 0 alone says why."""
        said = [(result.code, result.out, result.err) for result in results]
        self.assertEqual([result.code for result in results], [code] * len(results), said)
        for part in parts:
            self.assertIn(part, results[0].err, said)
        self.assertEqual([result.err for result in results[1:]], [""] * (len(results) - 1), said)
        self.assertEqual([result.out for result in results], [""] * len(results), said)


class RefusedTest(NcclTest):
    def test_what_cudnn_does_not_do_is_refused_before_a_device_is_asked_for(self):
        for words, part in [(["--dtype", "f32"], "f32"), (["--wire", "fp8"], "wire"),
                            (["--softcap", 3], "--softcap"), (["--threads", 2], "--threads")]:
            with self.subTest(words=words):
                given = self.rank_words(0, 1, subject="cudnn")
                if words[0] == "--dtype":
                    given[given.index("bf16")] = words[1]
                    words = []
                self.fails(2, [part], *given, *words)

    def test_it_is_for_devices_and_for_the_engine(self):
        self.fails(2, ["--device", "cuda with --transport nccl"], "run", "optimized", *SMALL,
                   "--transport", "nccl", "--ranks", 1, "--rank", 0, "--meet", self.meeting)
        self.fails(2, ["--transport nccl", "ring"], "run", "ring", *SMALL, "--device", "cuda",
                   "--transport", "nccl", "--ranks", 1, "--rank", 0, "--meet", self.meeting)

    def test_ranks_rank_and_meet_belong_together(self):
        for words in (["--rank", 0], ["--meet", self.meeting], ["--ranks", 2, "--rank", 0],
                      ["--ranks", 2, "--meet", self.meeting],
                      ["--rank", 0, "--meet", self.meeting]):
            with self.subTest(words=words):
                self.fails(2, "--ranks P, --rank R and --meet FOLDER together",
                           *self.words(*words))
        for rank in (2, -1):
            self.fails(2, ["--rank", "from 0 to 1"],
                       *self.words("--ranks", 2, "--rank", rank, "--meet", self.meeting))
        self.assertFalse(self.meeting.exists())

    def test_a_graph_is_for_devices(self):
        self.fails(2, ["--graph", "with --device cuda"], "run", "optimized", *SMALL, "--graph")
        words = self.rank_words(0, 1, "--graph")
        self.fails(2, ["--graph", "the subject optimized", "cudnn"],
                   *["cudnn" if word == "optimized" else word for word in words])

    def test_rank_and_meet_mean_nothing_elsewhere(self):
        for words in (["--meet", self.meeting], ["--rank", 0]):
            self.fails(2, [words[0], "--transport nccl"], "run", "optimized", *SMALL, *words)

    def test_options_without_effect_on_devices_are_refused(self):
        for words in (["--threads", 2], ["--tile-keys", 64], ["--integrity", "full"],
                      ["--trace", self.folder / "trace.json"], ["--softcap", 3]):
            with self.subTest(words=words):
                self.fails(2, words[0], *self.rank_words(0, 1, *words))
        self.assertFalse((self.folder / "trace.json").exists())

    def test_what_the_kernels_cannot_do_is_known_without_a_device(self):
        for words, part in [(["--wire", "fp8"], "wire"), (["--head-dim", 264], "head_dim")]:
            words = [word for word in self.rank_words(0, 1, *words)]
            if part == "head_dim":
                words[words.index("--head-dim") + 1] = 264
                words = words[:-2]
            self.fails(2, part, *words)


class MissingTest(NcclTest):
    """Without a GPU or what drives it every rank ends with 4, at once, and one says why."""

    def setUp(self):
        super().setUp()
        self.needs_no_device()

    def test_all_ranks_end_and_the_first_says_why(self):
        output = self.folder / "out.safetensors"
        for ranks in (1, 2, 5):
            with self.subTest(ranks=ranks):
                results = self.meet(ranks, "--output", output, "--check", "--timeout", 1000)
                self.said_by_first(results, 4, "expected")
                self.assertLess(self.seconds, 100)
                self.assertEqual(list(self.meeting.iterdir()), [])
        self.assertFalse(output.exists())

    def test_ranks_that_mpirun_started_end_alike(self):
        if not shutil.which("mpirun"):
            self.skipTest("mpirun is not installed (openmpi-bin)")
        job = mpi_job.Job(self.folder / "job", 3, *self.words())
        self.assertEqual(job.code, 4, job.said())
        said = [err for err in job.errs if "ringlab: " in err and "ended by SIGTERM" not in err]
        self.assertEqual(len(said), 1, job.said())
        self.assertIn("ringlab: ", job.errs[0])

    def test_a_build_without_nccl_says_what_it_lacks(self):
        if self.nccl["compiled_in"]:
            self.skipTest("NCCL is compiled in")
        missing = ["a build without CUDA", "-DRINGLAB_CUDA=ON"]
        if self.cuda["compiled_in"]:
            missing = ["expected"]
        self.fails(4, missing, *self.rank_words(0, 1))

    def test_a_library_that_is_missing_or_something_else_is_named(self):
        if not self.nccl["compiled_in"]:
            self.skipTest("a build without NCCL")
        for library, part in [(self.folder / "libnccl.so.2", "cannot open shared object file"),
                              (self.file("text.so", "no library"), "text.so"),
                              ("libm.so.6", "a library without a NCCL version")]:
            with self.subTest(library=library):
                results = self.meet(2, RINGLAB_NCCL_LIBRARY=library)
                self.said_by_first(results, 4, part, "NCCL 2.14", "RINGLAB_NCCL_LIBRARY")

    def test_a_release_that_is_too_old_new_or_not_whole_is_named(self):
        if not self.nccl["compiled_in"]:
            self.skipTest("a build without NCCL")
        library = fake_version(self)
        for version, part in [(21399, "found NCCL 2.13.99"), (2708, "found NCCL 2.7.8"),
                              (30000, "found NCCL 3.0.0"),
                              (22809, "the function ncclGetErrorString")]:
            with self.subTest(version=version):
                self.fails(4, part, *self.rank_words(0, 1), env=environment(
                    RINGLAB_NCCL_LIBRARY=library, FAKE_NCCL_VERSION=version))


class MeetingTest(NcclTest):
    def test_a_rank_that_does_not_come_is_named_at_the_deadline(self):
        begin = time.monotonic()
        self.fails(4, ["rank 1", "no file of rank 0, rank 2"],
                   *self.rank_words(1, 3, "--timeout", 0.3))
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(list(self.meeting.iterdir()), [])

    def test_files_of_a_run_that_was_killed_are_refused_and_stay(self):
        stale = self.file("meeting/rank.0", "ringlab run job, 1 ranks\nold")
        self.fails(4, ["rank.0", "other runs"], *self.rank_words(0, 1))
        self.assertTrue(stale.exists())

    def test_a_mistake_of_one_rank_ends_all_with_its_code(self):
        # What the other ranks lack, where they do, is said beside it.
        results = self.meet(3, each={0: ["--mask", "nonsense"]})
        self.said_by_first(results, 2, "rank 0: ", "nonsense")
        results = self.meet(2, "--mask", "window:x")
        self.said_by_first(results, 2, "window:x")
        self.assertNotIn("rank", results[0].err)  # all say the same

    def test_a_file_is_no_folder(self):
        self.file("meeting", "x")
        self.fails(4, "expected a folder", *self.rank_words(0, 1))


class OnDevicesTest(NcclTest):
    """One rank for each of this machine's devices, at most four."""

    def setUp(self):
        super().setUp()
        self.needs_device()
        if not self.nccl["compiled_in"] or not self.nccl["found"]:
            self.skipTest("no NCCL, here or in this build")

    def test_ranks_are_right_and_say_what_they_compute_on(self):
        ranks = min(4, len(self.cuda["devices"]))
        report = self.folder / "run.json"
        results = self.meet(ranks, "--backward", "--mask", "causal", "--check", "--json", report)
        self.assertEqual([result.code for result in results], [0] * ranks,
                         [result.err for result in results])
        document = json.loads(report.read_text())
        self.assertTrue(document["passed"])
        self.assertEqual(len({rank["device"] for rank in document["ranks"]}), ranks)
        self.assertIn(self.nccl["version"], document["configuration"]["nccl"])
        self.assertEqual(list(self.meeting.iterdir()), [])

    def test_a_graph_has_the_bits_of_streams(self):
        ranks = min(4, len(self.cuda["devices"]))
        written = []
        for name, more in [("streams", []), ("graph", ["--graph"])]:
            out = self.folder / f"{name}.safetensors"
            results = self.meet(ranks, "--backward", "--mask", "causal", "--output", out, *more)
            self.assertEqual([result.code for result in results], [0] * ranks,
                             [result.err for result in results])
            written.append(out.read_bytes())
        self.assertEqual(*written)

    def test_more_ranks_than_devices_are_refused_unless_a_new_nccl_is_told(self):
        is_new = tuple(map(int, self.nccl["version"].split("."))) >= (2, 30)
        wanted = "NCCL_MULTI_RANK_GPU_ENABLE=1" if is_new else "NCCL 2.30"
        ranks = len(self.cuda["devices"]) + 1
        for result in self.meet(ranks, "--timeout", 200, NCCL_MULTI_RANK_GPU_ENABLE="0"):
            self.assertEqual(result.code, 4, result.err)
            self.assertIn(wanted, result.err)


class OnMemoryTest(NcclTest):
    """One rank, on a device and with a NCCL that are memory: all else is the program itself."""

    def setUp(self):
        super().setUp()
        self.program = os.environ.get("RINGLAB_ON_MEMORY", "")
        if not os.path.exists(self.program):
            self.skipTest("no program on memory was built")
        self.variables = environment(RINGLAB_NCCL_LIBRARY=os.environ["RINGLAB_FAKE_NCCL"])

    def run_alone(self, *words, code=0):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, timeout=600,
                              env=self.variables)
        result = Result(done)
        self.assertEqual(result.code, code, result.out + result.err)
        return result

    def test_a_rank_that_is_alone_is_right_and_writes_its_results(self):
        report, output = self.folder / "run.json", self.folder / "out.safetensors"
        heads, tokens, dim = 2, 37, 8
        for words, values in [([], heads * tokens * (dim + 1)),
                              (["--mask", "causal", "--backward"], None),
                              (["--mask", "window:3,0", "--layout", "zigzag"], None),
                              (["--graph", "--backward"], None),
                              (["--deterministic", "off", "--backward"], None),
                              (["--schedule", "allgather"], None)]:
            with self.subTest(words=words):
                result = self.run_alone(*self.rank_words(0, 1, *words, "--check", "--json", report,
                                                         "--output", output))
                document = json.loads(report.read_text())
                self.assertIn("check  ok", result.out)
                self.assertTrue(document["passed"])
                self.assertEqual(document["configuration"]["transport"], "nccl")
                self.assertIn("fake_nccl", document["configuration"]["nccl"])
                self.assertEqual(document["configuration"]["graph"], "--graph" in words)
                self.assertEqual(document["configuration"]["deterministic"],
                                 "--deterministic" not in words)
                [rank] = document["ranks"]
                self.assertIn("bus 0 of machine", rank["device"])
                self.assertEqual(rank["sent_bytes"], 0)
                if values:
                    self.assertEqual(rank["compared"], values)
                self.assertGreater(output.stat().st_size, heads * tokens * dim * 2)
                self.assertEqual(list(self.meeting.iterdir()), [])

    def test_cudnn_is_the_block_kernel_where_it_is_wanted(self):
        cudnn = json.loads(self.succeeds("doctor", "--json", "-").out)["cudnn"]
        if not cudnn["compiled_in"] or not cudnn["found"]:
            self.skipTest("no cuDNN, or a build without it")
        report = self.folder / "run.json"
        for words in ([], ["--mask", "causal", "--backward"], ["--mask", "window:3,0", "--backward"]):
            for check in (["--check"], ["--check-rows", 5]):
                with self.subTest(words=words, check=check):
                    self.run_alone(*self.rank_words(0, 1, *words, *check, "--json", report,
                                                    subject="cudnn"))
                    document = json.loads(report.read_text())
                    self.assertTrue(document["passed"])
                    self.assertEqual(document["configuration"]["subject"], "cudnn")
                    self.assertIn(cudnn["version"], document["configuration"]["kernels"])

    def test_ranks_with_kernels_of_different_kinds_are_refused(self):
        cudnn = json.loads(self.succeeds("doctor", "--json", "-").out)["cudnn"]
        if not cudnn["compiled_in"] or not cudnn["found"]:
            self.skipTest("no cuDNN, or a build without it")
        processes = [subprocess.Popen([self.program, *map(str, self.rank_words(
            rank, 2, subject=("optimized", "cudnn")[rank]))], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self.variables) for rank in range(2)]
        for process in processes:
            _, err = process.communicate(timeout=600)
            self.assertNotEqual(process.returncode, 0, err)
            self.assertIn(b"agree with all ranks", err)

    def test_rows_can_be_checked_and_results_kept_apart(self):
        output = self.folder / "out.safetensors"
        result = self.run_alone(*self.rank_words(0, 1, "--check-rows", 5, "--output", output,
                                                 "--output-shards", "apart"))
        self.assertIn("5 of 37 query rows", result.out)
        self.assertTrue(output.with_suffix(".rank-0.safetensors").exists())

    def test_one_rank_with_a_graph_and_one_without_do_not_begin(self):
        processes = [subprocess.Popen([self.program, *map(str, self.rank_words(
            rank, 2, "--timeout", 200, *(["--graph"] if rank else [])))],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.variables)
            for rank in range(2)]
        for process in processes:
            _, err = process.communicate(timeout=600)
            self.assertEqual(process.returncode, 4, err)
            self.assertIn(b"graph is off on rank 0 and on on rank 1", err)

    def test_mpirun_brings_it_up_as_well(self):
        if not shutil.which("mpirun"):
            self.skipTest("mpirun is not installed (openmpi-bin)")
        done = subprocess.run(["mpirun", "-n", "1", self.program, *map(str, self.words("--check"))],
                              capture_output=True, timeout=600,
                              env=mpi_job.environment(**self.variables))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"check  ok", done.stdout)

    def test_four_ranks_on_three_devices_are_refused(self):
        processes = [subprocess.Popen([self.program, *map(str, self.rank_words(rank, 4))],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      env=self.variables) for rank in range(4)]
        for process in processes:  # there are three devices
            _, err = process.communicate(timeout=600)
            self.assertEqual(process.returncode, 4, err)
            self.assertIn(b"a device for every rank, or NCCL 2.30", err)
            self.assertIn(b"of ranks 0 and 3", err)


class DoctorTest(NcclTest):
    def doctor(self, library, **variables):
        path = self.folder / "doctor.json"
        result = ringlab("doctor", "--json", path,
                         env=environment(RINGLAB_NCCL_LIBRARY=library, **variables))
        self.assertEqual(result.code, 0, result.err)
        return result.out, json.loads(path.read_text())["nccl"]

    def test_it_tells_which_nccl_there_is_and_what_it_enables(self):
        library = fake_version(self)
        for version, text in [(22809, "2.28.9"), (21400, "2.14.0")]:
            out, nccl = self.doctor(library, FAKE_NCCL_VERSION=version)
            self.assertEqual((nccl["found"], nccl["version"], nccl["problem"]), (True, text, ""))
            self.assertTrue(os.path.samefile(nccl["file"], library))
            self.assertIn(f"{text} ({nccl['file']})", out)
            self.assertIn("--transport nccl", out)

    def test_it_finds_one_of_a_python_installation(self):
        packages = self.folder / "env/lib/python3.11/site-packages/nvidia/nccl/lib"
        packages.mkdir(parents=True)
        (packages / "libringlab_nccl.so.2").symlink_to(fake_version(self))
        self.file("env/bin/python3", "")
        _, nccl = self.doctor("libringlab_nccl.so.2", FAKE_NCCL_VERSION=22809,
                              PATH=f"{os.environ['PATH']}:{self.folder / 'env/bin'}")
        self.assertEqual((nccl["found"], nccl["version"]), (True, "2.28.9"))
        self.assertEqual(nccl["file"], str(packages / "libringlab_nccl.so.2"))

    def test_it_tells_why_there_is_none(self):
        library = fake_version(self)
        for where, version, problem in [(library, 2604, "NCCL 2.6.4"),
                                        (self.folder / "none.so", 0, "cannot open"),
                                        ("libm.so.6", 0, "without a NCCL version")]:
            out, nccl = self.doctor(where, FAKE_NCCL_VERSION=version)
            self.assertFalse(nccl["found"])
            self.assertIn(problem, nccl["problem"])
            self.assertIn("no --transport nccl", out)


def fake_version(test):
    folder = os.environ.get("RINGLAB_FAKE_NCCL_VERSION")
    if not folder:
        test.skipTest("no fake library was built")
    return pathlib.Path(folder) / "libfake_nccl_version.so"


if __name__ == "__main__":
    unittest.main()
