"""scripts/gpu_check on a machine, and with programs, that are made up: what it calls held, failed and
left out, and what stays of it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = f"#!{sys.executable}\nimport json, os, sys, time\nwords = sys.argv[1:]\n"

# `ringlab`: FAKE says, by the name of a command, what it should do instead of its best.
RINGLAB = PYTHON + """
fake = json.loads(os.environ.get("FAKE", "{}"))
goal = {"id": "G1.full", "value": 0.95, "met": "at least"}
subject = {"verdict": "pass", "laws_held": 3, "worst_ratio": 0.5, "input": {"passed": True}}
subject.update(fake.get("verify", {}))
version = {"name": "turns", "speed": {"median": 1.25}}
cuda = {"problem": "", "driver_problem": "", **fake.get("cuda", {})}
library = {"found": True, "compiled_in": True}
names = "attention broadcast online_softmax flash_blocks merge ring causal_ring slotted_ring"
names = [*names.split(), "overlapped_ring", "dealt_ring", "balanced_ring", "skipping_ring"]
names += ["overlapped_causal_ring", "bidirectional", "hierarchical", "documents_and_windows"]
names += ["compressed_wire", "decode"]
names += ["optimized", "cudnn"]
documents = {
    "doctor": {"cuda": cuda, "nccl": library, "cudnn": library},
    "list": {"subjects": [{"name": name, "devices": ["cpu", "cuda"]} for name in names]},
    "verify": {"subjects": [subject]},
    "gpu": {"goals": fake.get("goals", [goal]), "overlaps": [1, 2], "speeds": [{"forward_flops_per_s": 1}],
              "ladders": [{"pass": "forward", "head_dim": 64, "mask": "full", "versions": [version]}]},
    "run": {},
}
if "--json" in words:
    with open(words[words.index("--json") + 1], "w") as file:
        json.dump(documents[words[0]], file)
for word in words:
    if word in fake.get("fails", []):
        sys.exit(fake.get("says", "ringlab: something: expected this, found that. Do the other."))
    if word in fake.get("hangs", []): time.sleep(200)
"""

# A GoogleTest program: its suites, and what becomes of their tests.
TESTS = PYTHON + """
suites = json.loads(os.environ.get("SUITES", '{"Portable": "pass"}'))
if "--gtest_list_tests" in words:
    print("Running main() from ./googletest/src/gtest_main.cc")
    for suite in suites: print(f"{suite}.\\n  one\\n  two")
    sys.exit()
option = dict(word.split("=", 1) for word in words)
wanted = option.get("--gtest_filter", "stages.").split(".")[0]
what = next((what for name, what in suites.items() if wanted in name.split("/")), "pass")
if what == "hang": time.sleep(200)
if what == "crash": os.abort()
lost = "<failure message='f.cpp:1&#10;the wait for K full never ended'/>"
measured = "<properties><property name='exact_powers' value='250 of 255'/></properties>"
inside = {"pass": "", "measure": measured, "fail": "<failure message='no'/>", "lost": lost}.get(what, f"<skipped message='f.cpp:1&#10;{what}'/>")
path = option["--gtest_output"].removeprefix("xml:")
with open(path, "w") as file:
    file.write(f"<testsuites><testsuite><testcase name='one'>{inside}</testcase>"
               f"<testcase name='two'>{inside}</testcase></testsuite></testsuites>")
sys.exit(1 if what in ("fail", "lost") else 0)
"""

NVIDIA_SMI = "#!/bin/sh\necho 'Fake GPU, 580.1, 80 GiB'\n"


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringlab-gpu-check-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program("build/bin/ringlab", RINGLAB)
        self.program("build/bin/ringlab_goals", RINGLAB)
        self.program("build/bin/cuda_device_test", TESTS)
        self.program("build/bin/stages_cuda_test", TESTS)
        self.program("path/nvidia-smi", NVIDIA_SMI)
        self.out = self.folder / "out"

    def program(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def environment(self, suites=None, fake=None, seconds=1000, suite_seconds=300):
        return {**os.environ, "PATH": f"{self.folder / 'path'}:{os.environ['PATH']}",
                "GPU_CHECK_BUILD": str(self.folder / "build"), "GPU_CHECK_OUT": str(self.out),
                "GPU_CHECK_SECONDS": str(seconds), "GPU_CHECK_SUITE_SECONDS": str(suite_seconds),
                "FAKE": json.dumps(fake or {}),
                "SUITES": json.dumps(suites or {"Portable": "pass"})}

    def gpu_check(self, *parts, **what):
        return subprocess.run([ROOT / "scripts/gpu_check", *parts], capture_output=True, text=True,
                              env=self.environment(**what), check=False, timeout=1000)

    def rows(self):
        found = json.loads((self.out / "results.json").read_text())["checks"]
        return {row["check"]: (row["verdict"], row["found"]) for row in found}

    def test_without_a_gpu_or_programs_nothing_is_run(self):
        self.program("path/nvidia-smi", "#!/bin/sh\nexit 9\n")
        done = self.gpu_check()
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn("no NVIDIA GPU here", done.stderr)
        self.program("path/nvidia-smi", NVIDIA_SMI)
        (self.folder / "build/bin/stages_cuda_test").unlink()
        done = self.gpu_check()
        self.assertEqual(done.returncode, 4)
        self.assertIn("stages_cuda_test", done.stderr)

    def test_a_driver_that_this_build_cannot_use_is_not_a_pass(self):
        done = self.gpu_check(fake={"cuda": {"driver_problem": "too old for CUDA 13.0"}})
        self.assertEqual(done.returncode, 4)
        self.assertIn("too old for CUDA 13.0", done.stderr)

    def test_wrong_words_are_refused(self):
        for words in (["--prepare"], ["--quick"], ["bench"]):
            self.assertEqual(self.gpu_check(*words).returncode, 2, words)

    def test_all_that_holds_is_a_table_with_figures(self):
        done = self.gpu_check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = self.rows()
        self.assertNotIn("failed", {row[0] for row in rows.values()})
        self.assertEqual(rows["tests_Portable"], ("held", "2 passed"))
        self.assertEqual(rows["bench_G2"], ("held", "G1.full 0.950 (at least)"))
        self.assertIn("64 full: turns 1.250", rows["bench_ladder"][1])
        self.assertEqual(rows["bench_machine"], ("held", "1 cases measured"))
        for name in ("run_nccl_graph", "run_16k_causal_128", "verify_cudnn", "verify_ring"):
            self.assertEqual(rows[name][0], "held", name)
        for part in ("Fake GPU", "command: scripts/gpu_check", "0 failed", "bench_G9"):
            self.assertIn(part, done.stdout)

    def test_results_are_three_files_in_the_folder_that_was_named(self):
        self.gpu_check("runs")
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         ["logs.tar.gz", "results.json", "table.txt"])

    def test_a_prepared_folder_is_checked_by_the_script_that_lies_in_it(self):
        shutil.copytree(ROOT / "stages", self.folder / "build/stages", ignore=lambda folder, names: [
            name for name in names if "." in name and not name.endswith((".h", ".txt"))])
        for name in ("scripts/gpu_check", "scripts/gpu_checks", "README.md"):
            (self.folder / "build" / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.folder / "build" / name)
        environment = self.environment()
        del environment["GPU_CHECK_BUILD"]
        done = subprocess.run([self.folder / "build/scripts/gpu_check", "tests", "laws"],
                              capture_output=True, text=True, env=environment, check=False,
                              cwd=self.folder, timeout=1000)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.rows()["tests_Portable"], ("held", "2 passed"))
        self.assertIn("verify_flash_blocks", self.rows())

    def prepare(self, folder):
        """In a tree whose build is made up, of programs that need the C library only."""
        tree = self.folder / "tree"
        for name in ("scripts/gpu_check", "scripts/gpu_checks", "README.md", "stages/stages.txt",
                     "stages/00_attention/attention.h"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
        for name in ("tree/scripts/build", "tree/scripts/cudnn_frontend", "path/nvcc"):
            self.program(name, "#!/bin/sh\n")
        (tree / "build-gpu/bin").mkdir(parents=True, exist_ok=True)
        for name in ("ringlab", "ringlab_goals", "stages_cuda_test", "cuda_device_test"):
            shutil.copy(shutil.which("true"), tree / "build-gpu/bin" / name)
        return subprocess.run([tree / "scripts/gpu_check", "--prepare", folder], text=True,
                              capture_output=True, env=self.environment(), check=False,
                              timeout=1000)

    def test_a_folder_has_programs_libraries_and_scripts_and_less_than_48_mib(self):
        folder = self.folder / "prepared"
        done = self.prepare(folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"prepared is ready, \d+ MiB")
        for name in ("bin/cuda_device_test", "lib", "scripts/gpu_checks", "stages/stages.txt",
                     "stages/00_attention/attention.h", "README.md"):
            self.assertTrue((folder / name).exists(), name)
        (folder / "lib/libtoo_much.so").write_bytes(bytes(48 << 20))
        done = self.prepare(folder)
        self.assertEqual(done.returncode, 4)
        self.assertIn("it is to have less than 48", done.stderr)

    def test_what_is_worth_most_comes_first(self):
        self.gpu_check(suites={"CudnnOnDevices": "pass", "DelayedMistakes": "pass", "Other": "pass",
                               "Devices": "pass", "ForwardHopper": "pass", "DeviceMemory": "pass"})
        found = list(self.rows())
        wanted = ["tests_DeviceMemory", "tests_ForwardHopper", "tests_Devices", "tests_Other",
                  "bench_G1_G6", "run_optimized", "bench_ladder", "tests_stages",
                  "verify_optimized", "tests_DelayedMistakes", "run_cudnn", "verify_cudnn",
                  "tests_CudnnOnDevices"]
        self.assertEqual([name for name in found if name in wanted], wanted)
        self.assertNotIn("bench_quick", found)

    def test_parts_come_in_the_order_in_which_they_are_named(self):
        self.assertEqual(self.gpu_check("stages", "quick", "tests", "stages").returncode, 0)
        self.assertEqual(list(self.rows()), ["tests_stages", "bench_quick", "tests_Portable"])

    def test_all_but_what_is_asked_for_is_left_alone(self):
        self.assertEqual(self.gpu_check("tests").returncode, 0)
        self.assertEqual(set(self.rows()), {"tests_Portable"})

    def test_tests_that_were_skipped_for_want_of_a_gpu_have_failed(self):
        done = self.gpu_check("tests", "stages",
                              suites={"Powers": "no NVIDIA GPU: none", "Portable": "pass",
                                      "I/stages/0": "no CUDA device"})
        self.assertEqual(done.returncode, 1)
        rows = self.rows()
        self.assertEqual(rows["tests_Powers"][0], "failed")
        self.assertIn("2 of 2 skipped: no NVIDIA GPU", rows["tests_Powers"][1])
        self.assertEqual(rows["tests_stages"][0], "failed")
        self.assertEqual(rows["tests_Portable"][0], "held")

    def test_tests_that_were_skipped_for_another_reason_are_left_out(self):
        done = self.gpu_check("cudnn", suites={"CudnnOnDevices": "no cuDNN: not found"})
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.rows()["tests_CudnnOnDevices"], ("left out", "2 skipped: no cuDNN: not found"))
        self.assertIn("1 left out", done.stdout)

    def test_a_suite_that_crashes_or_fails_does_not_take_the_next_with_it(self):
        done = self.gpu_check("tests", suites={"DeviceMemory": "crash", "Powers": "fail",
                                               "A/Devices/0": "pass"})
        self.assertEqual(done.returncode, 1)
        rows = self.rows()
        self.assertEqual([rows[f"tests_{name}"][0] for name in ("DeviceMemory", "Powers", "Devices")],
                         ["failed", "failed", "held"])
        self.assertIn("0 passed, 2 failed: one", rows["tests_Powers"][1])

    def test_a_wait_that_a_kernel_gave_up_is_told(self):
        self.gpu_check("tests", suites={"ForwardHopper": "lost"})
        self.assertEqual(self.rows()["tests_ForwardHopper"][1],
                         "0 passed, 2 failed: one: the wait for K full never ended")

    def test_a_suite_that_hangs_is_ended(self):
        done = self.gpu_check("tests", suites={"DeviceMemory": "hang", "Powers": "pass"},
                              seconds=10, suite_seconds=6)
        self.assertEqual(done.returncode, 1)
        self.assertIn("timed out", self.rows()["tests_DeviceMemory"][1])
        self.assertEqual(self.rows()["tests_Powers"], ("left out", "no time"))

    def test_a_forward_kernel_that_hangs_is_the_reason_why_the_rest_is_left_out(self):
        hanging = {"ForwardHopper": "hang", "Portable": "pass", "Devices": "pass"}
        done = self.gpu_check("tests", "goals", suites=hanging, suite_seconds=6)
        self.assertEqual(done.returncode, 1)
        rows = self.rows()
        self.assertEqual(rows["tests_ForwardHopper"], ("failed", "timed out after 6 s"))
        for name in ("tests_Portable", "tests_Devices", "bench_G1_G6"):
            self.assertEqual(rows[name], ("left out", "tests_ForwardHopper timed out after 6 s"))

    def test_a_portable_kernel_that_hangs_is_no_reason_where_hoppers_holds(self):
        for hopper, devices in (("pass", "held"), ("no NVIDIA GPU: 8.0", "left out")):
            suites = {"ForwardHopper": hopper, "Portable": "hang", "Devices": "pass"}
            self.gpu_check("tests", suites=suites, suite_seconds=6)
            self.assertEqual(self.rows()["tests_Devices"][0], devices)

    def test_a_run_that_fails_is_told_with_its_last_words(self):
        done = self.gpu_check("runs", fake={"fails": ["--graph"]})
        self.assertEqual(done.returncode, 1)
        rows = self.rows()
        self.assertEqual(rows["run_graph"][0], "failed")
        self.assertIn("expected this, found that", rows["run_graph"][1])
        self.assertEqual(rows["run_optimized"][0], "held")

    def test_what_cudnn_has_no_kernel_for_is_left_out_with_the_reason(self):
        says = "ringlab: cuDNN has no kernel for 3 x 5, plan: expected success, found no engine."
        for said, verdict in ((says, "left out"), ("ringlab: wrong", "failed")):
            self.gpu_check("cudnn", fake={"fails": ["striped"], "says": said})
            rows = self.rows()
            self.assertEqual(rows["run_cudnn_ring_backward"][0], verdict)
            self.assertIn(said, rows["run_cudnn_ring_backward"][1])
            self.assertEqual(rows["run_cudnn"][0], "held")

    def test_what_tests_measured_stands_beside_their_number(self):
        self.gpu_check("tests", suites={"Powers": "measure"})
        self.assertEqual(self.rows()["tests_Powers"],
                         ("held", "2 passed; exact powers: 250 of 255"))

    def test_a_bench_that_hangs_is_told_with_what_it_had_found(self):
        self.gpu_check("goals", fake={"hangs": ["G1,G6"]}, seconds=9)
        verdict, found = self.rows()["bench_G1_G6"]
        self.assertEqual(verdict, "left out")
        self.assertIn("no time: timed out", found)
        self.assertIn("G1.full 0.950 (at least)", found)

    def test_a_pattern_behind_a_part_chooses_among_its_checks(self):
        self.gpu_check("goals:G[25]")
        self.assertEqual(list(self.rows()), ["bench_G2", "bench_G5"])

    def test_laws_alone_are_not_enough(self):
        skipped = {"input": {"passed": True, "skipped": "does not compute in f32"}}
        self.assertEqual(self.gpu_check("laws", fake={"verify": skipped}).returncode, 1)
        self.assertIn("does not compute in f32", self.rows()["verify_optimized"][1])

    def test_a_sanitizer_that_does_not_know_the_gpu_is_left_out(self):
        for said, verdict in [("Device not supported", "left out"), ("Invalid write", "failed")]:
            self.program("path/compute-sanitizer", f"#!/bin/sh\necho '{said}'\nexit 9\n")
            self.gpu_check("sanitizer")
            self.assertEqual(self.rows()["sanitizer_memcheck"][0], verdict)
            self.assertIn(said, self.rows()["sanitizer_memcheck"][1])

    def test_goals_of_which_none_was_measured_are_left_out(self):
        none = {"id": "G3", "value": None, "met": "skipped", "reason": "no PyTorch"}
        self.gpu_check("goals", fake={"goals": [none]})
        self.assertEqual(self.rows()["bench_G3"], ("left out", "no PyTorch"))
        self.gpu_check("goals", fake={"goals": [{**none, "value": 1.5, "met": "missed"}, none]})
        self.assertEqual(self.rows()["bench_G3"], ("held", "G3 1.500 (missed), 1 not measured"))
        self.gpu_check("goals", fake={"goals": [{**none, "reason": "wrong results: o"}]})
        self.assertEqual(self.rows()["bench_G3"], ("failed", "G3: wrong results: o"))

    def archived(self):
        """Names of logs besides their folder: the archive is the last to be written after a check."""
        if not (self.out / "logs.tar.gz").exists():
            return []
        with tarfile.open(self.out / "logs.tar.gz") as archive:
            return [name for name in archive.getnames() if name != "logs"]

    def test_what_was_finished_stays_when_it_is_killed(self):
        process = subprocess.Popen([ROOT / "scripts/gpu_check", "tests"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True,
                                   env=self.environment({"DeviceMemory": "pass", "Powers": "hang"}))
        try:
            until = time.monotonic() + 300
            while time.monotonic() < until and not (
                    (self.out / "results.json").exists() and self.rows() and self.archived()):
                time.sleep(0.05)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.assertEqual(self.rows(), {"tests_DeviceMemory": ("held", "2 passed")})
        self.assertIn("tests_DeviceMemory", (self.out / "table.txt").read_text())
        self.assertIn("logs/tests_DeviceMemory.log", self.archived())


if __name__ == "__main__":
    unittest.main()
