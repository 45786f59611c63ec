"""scripts/gpu_record on what a gpu_check that is made up has written, and on the run that is kept."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/gpu_record"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gpu_record", str(SCRIPT))
gpu_record = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_record", loader))
loader.exec_module(gpu_record)


def spread(median):
    return {"median": median, "p10": 0.9 * median, "p90": 1.1 * median}


def check(name, verdict, found=""):
    return {"check": name, "verdict": verdict, "seconds": 1.0, "found": found}


RESULTS = {
    "device": "NVIDIA H900, 600.1, 81559 MiB, 1980 MHz, 2619 MHz, 700.00 W",
    "date": "2030-01-02T03:04:05Z", "command": "scripts/gpu_check ",
    "checks": [check("tests_Powers", "held", "3 passed; exact powers: 255 of 255"),
               check("tests_Huge", "failed", "1 passed, 1 failed: `a|b`"),
               check("run_nccl", "left out", "no time"), check("run_graph", "left out", "no time")]}
GOALS = [{"id": "G2.t8k", "what": "cuDNN's time over ours", "value": None, "at_least": 0.9, "target": 1.0,
          "met": "skipped", "reason": "no cuDNN"},
         {"id": "G1.t8k", "what": "cuDNN's time over ours", "value": 1.0, "at_least": 0.9, "target": 1.0,
          "met": "target", "spread": spread(1.0),
          "beside": {"ms": spread(2.0), "TFLOP/s": spread(500.0), "peer, TFLOP/s": spread(400.0)}},
         {"id": "G6.lines", "what": "lines", "value": 563.0, "at_most": 800.0, "target": 800.0,
          "met": "target", "spread": {"median": 563.0, "p10": 563.0, "p90": 563.0}}]
LADDERS = [{"pass": "forward", "mask": mask, "tokens": 16384, "head_dim": channels, "versions": versions}
           for mask, channels, versions in [
               ("causal", 64, [{"name": "two consumers", "what": "of 240", "step": False,
                                "failure": "wrong results"}]),
               ("full", 128, [{"name": "turns", "what": "in turn", "step": True, "speed": spread(0.8),
                               "flops_per_s": spread(6e14)}])]]
LOGS = {
    "doctor.json": {"cuda": {"driver_version": "13.0", "runtime_version": "13.0",
                             "devices": [{"multiprocessors": 132}]},
                    "cudnn": {"version": "9.1"}, "nccl": {}},
    "bench_G1.json": {"date": "1", "goals": GOALS, "clocks": {"before_hz": 1.98e9, "after_hz": 1.9e9}},
    "bench_ladder.json": {"date": "2030-01-02T04:00:00Z", "ladders": LADDERS},
    "run_nccl.json": {"date": "3"}}


class GpuRecord(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "results.json").write_text(json.dumps(RESULTS))
            with tarfile.open(folder / "logs.tar.gz", "w:gz") as archive:
                for path, document in LOGS.items():
                    text = json.dumps(document).encode()
                    member = tarfile.TarInfo("logs/" + path)
                    member.size = len(text)
                    archive.addfile(member, io.BytesIO(text))
            cls.run_of_it = gpu_record.record(folder)
        cls.kept = json.loads((ROOT / "docs/gpu_run.json").read_text())

    def test_a_run_is_read_as_it_was_written(self):
        text = gpu_record.dumped(self.run_of_it)
        self.assertEqual(json.loads(text), self.run_of_it)
        self.assertEqual(sum('"verdict"' in line for line in text.splitlines()), 4)

    def test_goals_stand_in_their_order_and_what_was_skipped_says_why(self):
        text = gpu_record.goals(self.run_of_it)
        self.assertIn("NVIDIA H900, 132 multiprocessors", text)
        self.assertIn("under load 1900 to 1980", " ".join(text.split()))
        rows = [line for line in text.splitlines() if line.startswith("| G")]
        self.assertEqual(rows, [
            "| G1.t8k | cuDNN's time over ours | ≥ 0.90 | 1.00 | 1.000 (0.900 to 1.100) | target | 2 | 500 | 400 |",
            "| G2.t8k | cuDNN's time over ours | ≥ 0.90 | 1.00 | skipped: no cuDNN | skipped |  |  |  |",
            "| G6.lines | lines | ≤ 800 | 800 | 563 | target |  |  |  |"])

    def test_versions_have_a_figure_or_none_for_each_case(self):
        text = gpu_record.versions(self.run_of_it, "forward")
        self.assertIn("| + turns | in turn |  | 600 (0.80) |  |  |", text)
        self.assertIn("| two consumers | of 240 |  |  | no figure |  |", text)
        self.assertIn("up to 0.16 apart", " ".join(text.split()))

    def test_what_did_not_hold_says_why(self):
        text = gpu_record.held(self.run_of_it)
        self.assertIn("| `tests_Powers` 3 | `tests_Huge`: `1 passed, 1 failed: 'a/b'` |  |", text)
        self.assertIn("| runs |  |  | no time: `run_nccl`, `run_graph` |", text)
        self.assertIn("1 held, 1 failed, 2 left out. Measured by tests: exact powers: 255 of 255.", text)

    def test_of_several_runs_the_last_that_did_something_counts(self):
        def run(date, goal, **verdicts):
            return {**self.run_of_it, "runs": [{"date": date, "command": "c"}], "clock_mhz": [],
                    "overlaps": [], "versions_of_kernels": [],
                    "goals": [{"id": name, "spread": [goal]} for name in ("G1.a", f"G{goal}")],
                    "checks": [{"check": name, "verdict": verdict, "found": date}
                               for name, verdict in verdicts.items()]}
        both = gpu_record.merged(
            run("1", 1, tests_A="failed", run_b="held", run_c="left out", **{"alone_A.x": "failed"}),
            run("2", 2, tests_A="held", run_b="left out", run_c="left out"))
        self.assertEqual([(row["check"], row["verdict"], row["found"]) for row in both["checks"]],
                         [("tests_A", "held", "2"), ("run_b", "held", "1"), ("run_c", "left out", "1")])
        self.assertEqual([(goal["id"], goal["spread"]) for goal in both["goals"]],
                         [("G1.a", [2]), ("G1", [1]), ("G2", [2])])
        self.assertEqual([one["date"] for one in both["runs"]], ["1", "2"])

    def test_a_run_comes_after_what_is_kept_of_its_device_and_another_devices_is_refused(self):
        def kept_after(device, *words):
            with tempfile.TemporaryDirectory() as name, \
                    mock.patch.multiple(gpu_record, RECORD=pathlib.Path(name) / "kept.json",
                                        record=lambda folder: self.run_of_it,
                                        pages=lambda run: {}, machines=lambda run: {}):
                gpu_record.RECORD.write_text(json.dumps({**self.run_of_it, "device": device}))
                with contextlib.redirect_stderr(io.StringIO()) as told:
                    code = gpu_record.main([*words, "folder"])
                return code, len(json.loads(gpu_record.RECORD.read_text())["runs"]), told.getvalue()
        self.assertEqual(kept_after(self.run_of_it["device"]), (0, 2, ""))
        self.assertEqual(kept_after("another"), (2, 1, mock.ANY))
        self.assertIn("NVIDIA H900", kept_after("another")[2])
        self.assertIn("--anew", kept_after("another")[2])
        self.assertEqual(kept_after("another", "--anew"), (0, 1, ""))

    def test_a_known_machine_gets_the_speeds_that_were_measured(self):
        self.assertEqual(gpu_record.machines(self.run_of_it), {})  # of no known device
        ladder = [{"pass": direction, "mask": "full", "tokens": 16384, "head_dim": 128, "tflops": [speed, 0, 0]}
                  for direction, speed in (("forward", 600), ("forward", 700), ("backward", 500))]
        alone = {"pass": "forward", "mask": "causal", "tokens": 16384, "head_dim": 128, "tflops": [9, 0, 0]}
        run = {**self.run_of_it, "device": "NVIDIA H100 80GB HBM3, 580", "versions_of_kernels": [*ladder, alone]}
        (path, text), = gpu_record.machines(run).items()
        self.assertEqual(path.name, "h100-ringlab.json")
        machine = json.loads(text)
        row, = machine["expected"]["attention"]
        self.assertEqual((row["forward_tflops"], row["backward_tflops"], row["mask"]), (700, 500, "full"))
        self.assertEqual(row["source"], "scripts/gpu_check on one NVIDIA H100 80GB HBM3, 2030-01-02")
        self.assertEqual([row["forward_tflops"] for row in machine["attention"] if row["dtype"] == "bf16"], [700])

    def test_pages_say_what_is_kept(self):
        done = subprocess.run([SCRIPT, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_what_pages_say_in_words_has_run_has_held(self):
        verdicts = {row["check"]: row["verdict"] for row in self.kept["checks"]}
        for name in ("tests_ForwardHopper", "tests_BackwardHopper", "tests_Portable", "tests_Devices",
                     "tests_NcclOnDevice", "run_graph", "run_nccl", "run_nccl_graph"):
            self.assertEqual(verdicts.get(name), "held", name)
        self.assertIn("H100", self.kept["device"])
        self.assertFalse([row for row in self.kept["checks"] if "never ended" in row["found"]])
        for goal in self.kept["goals"]:
            if "cuDNN" in goal["what"]:
                self.assertIn("peer, TFLOP/s", goal.get("beside", {}), goal["id"])
                # "Faster than cuDNN forward, as fast backward": docs/status.md.
                self.assertGreater(goal["spread"][0], 0.97 if "G5" in goal["id"] else 1, goal["id"])


if __name__ == "__main__":
    unittest.main()
