"""`ringlab_goals`: its structure, its options and its peers. Never how fast anything is."""
import json
import os
import signal
import stat
import subprocess
import time
import unittest

from program import PROGRAM, ProgramTest, ringlab

KEYS = {"id", "what", "unit", "value", "target", "met", "spread"}
SOME_OF_EVERY_FAMILY = ["C1.causal", "C2.full", "C3", "C4.d64", "C5", "C6.d64.causal", "C7.p2",
                        "C8.forward", "C9.forward", "C10", "C11.h1"]
VERDICTS = {"target", "at least", "at most", "missed"}

# Stands in for a Python with PyTorch: ignores what it is to run and speaks the protocol.
FAKE = "#!/bin/sh\necho ready Fake\nwhile read line; do {}; done\n"


def doctor():
    """What `ringlab doctor` says of this machine."""
    return json.loads(ringlab("doctor", "--json", "-", program=os.environ["RINGLAB_DOCTOR"]).out)


class GoalsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment = {k: v for k, v in os.environ.items() if k != "RINGLAB_TORCH_PYTHON"}

    def fake_python(self, answer):
        path = self.file("python", FAKE.format(answer))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def goals(self, *words, environment=None):
        path = self.folder / "goals.json"
        result = self.succeeds("cpu", "--quick", "--rounds", 3, "--json", path, *words,
                               env=environment or self.environment)
        return json.loads(path.read_text()), result.out

    def check_goal(self, goal):
        self.assertLessEqual(KEYS, set(goal))
        self.assertEqual(1, len({"at_least", "at_most"} & set(goal)), goal)
        if goal["value"] is None:
            self.assertEqual(goal["met"], "skipped")
            self.assertTrue(goal["reason"])
            return
        self.assertIn(goal["met"], VERDICTS)
        self.assertNotIn("reason", goal)
        self.assertGreater(goal["value"], 0)
        self.assertLessEqual(goal["spread"]["p10"], goal["value"])
        self.assertGreaterEqual(goal["spread"]["p90"], goal["value"])
        higher_is_better = "at_least" in goal
        bound = goal["at_least" if higher_is_better else "at_most"]
        reached = goal["value"] >= bound if higher_is_better else goal["value"] <= bound
        self.assertEqual(reached, goal["met"] != "missed", goal)

    def test_every_goal_has_a_record_that_says_what_became_of_it(self):
        found, text = self.goals("--only", ",".join(SOME_OF_EVERY_FAMILY))
        for goal in found["goals"]:
            with self.subTest(goal["id"]):
                self.check_goal(goal)
                self.assertIn(goal["id"], text)
        families = {goal["id"].split(".")[0] for goal in found["goals"]}
        self.assertEqual(families, {f"C{i}" for i in range(1, 12)})
        torch = [goal for goal in found["goals"] if goal["id"].startswith("C8.")]
        for goal in torch:
            self.assertIn("--torch-python", goal["reason"])
        self.assertEqual(set(found["roofline"]), {"peaks", "bandwidths", "points"})
        self.assertIn("memory", {one["name"] for one in found["roofline"]["bandwidths"]})
        for point in found["roofline"]["points"]:
            self.assertGreater(point["flops_per_s"], 0)

    def test_only_some_goals_in_their_order(self):
        found, _ = self.goals("--only", "C10.p4,C10.p2")
        self.assertEqual([goal["id"] for goal in found["goals"]], ["C10.p2", "C10.p4"])
        for goal in found["goals"]:
            self.check_goal(goal)
            self.assertLess(goal["value"], goal["at_most"], "bytes do not depend on the machine")

    def test_a_peer_that_speaks_the_protocol_is_measured(self):
        python = self.fake_python("sleep 0.3; echo 0.25")
        found, _ = self.goals("--only", "C8.forward.f32.causal.d64.t1", "--torch-python", python)
        [goal] = found["goals"]
        self.check_goal(goal)
        self.assertIn("PyTorch, Gflop/s", goal["beside"])
        self.environment["RINGLAB_TORCH_PYTHON"] = str(python)
        found, _ = self.goals("--only", "C8.forward.f32.causal.d64.t1")
        self.assertIsNotNone(found["goals"][0]["value"])

    def test_peers_that_die_or_lie_cost_their_goals_and_nothing_else(self):
        for answer, said in [("exit 7", "exit code 7"), ("echo fast", "'fast'"),
                             ("echo 1000", "that passed"), ("echo cannot do it", "cannot do it")]:
            with self.subTest(answer):
                python = self.fake_python(answer)
                found, text = self.goals("--only", "C8.forward.f32.causal.d64.t1,C10.p2",
                                         "--torch-python", python)
                torch, other = found["goals"]
                self.check_goal(torch)
                self.assertEqual(torch["met"], "skipped")
                self.assertIn(said, torch["reason"])
                self.assertIn(said, text)
                self.check_goal(other)
                self.assertIsNotNone(other["value"])

    def test_peers_keep_to_the_vectors_that_were_chosen(self):
        widest, *others = doctor()["processor"]["available_vectors"]
        if "avx2" not in others:
            self.skipTest(f"no vectors narrower than {widest} that libraries know")
        python = self.fake_python("echo cannot do more than \"${ATEN_CPU_CAPABILITY:-all}\"")
        for vectors, said in [(widest, "more than all"), ("avx2", "more than avx2")]:
            with self.subTest(vectors):
                found, _ = self.goals("--only", "C8.forward.f32.causal.d64.t1", "--torch-python",
                                      python,
                                      environment={**self.environment, "RINGLAB_VECTORS": vectors})
                self.assertIn(said, found["goals"][0]["reason"])

    def until(self, condition):
        last = time.monotonic() + 600
        while not condition():
            self.assertLess(time.monotonic(), last, "nothing came of it")
            time.sleep(0.05)

    def test_what_was_measured_stays_when_it_is_ended(self):
        path = self.folder / "goals.json"
        for number in (signal.SIGINT, signal.SIGTERM):
            path.write_text("of an earlier run")
            words = [PROGRAM, "cpu", "--quick", "--rounds", "3", "--json", path, "--only",
                     "C5.naive,C8.forward.f32.causal.d64.t1,C10.p2",
                     "--torch-python", self.fake_python("sleep 200")]
            with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env=self.environment) as process:
                self.until(lambda: path.read_text() != "of an earlier run")
                process.send_signal(number)
                self.assertEqual(process.wait(600), -number)
            found = json.loads(path.read_text())
            self.assertIs(found["complete"], False)
            self.assertEqual([goal["id"] for goal in found["goals"]], ["C5.naive"])
            self.check_goal(found["goals"][0])
            self.assertIsNotNone(found["goals"][0]["value"])
            self.assertEqual(found["words"][:1], ["cpu"])

    def test_a_run_says_when_where_and_how_it_was_made(self):
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        found, _ = self.goals("--only", "C10.p2")
        self.assertIs(found["complete"], True)
        self.assertLessEqual(began, found["date"])
        self.assertLessEqual(found["date"], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        self.assertEqual(found["words"][:4], ["cpu", "--quick", "--rounds", "3"])
        self.assertEqual(found["words"][-2:], ["--only", "C10.p2"])
        here = doctor()
        for part in ("cuda", "nccl", "cudnn", "mpi", "processor"):
            self.assertEqual(found["machine"][part], here[part])

    def test_what_can_be_written_once_is_written_once(self):
        words = ("cpu", "--quick", "--rounds", 3, "--only", "C5.naive,C10.p2", "--json")
        self.assertIs(json.loads(self.succeeds(*words, "-").out)["complete"], True)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with subprocess.Popen([PROGRAM, *map(str, words), pipe], stdout=subprocess.DEVNULL) as process:
            self.assertIs(json.loads(pipe.read_text())["complete"], True)
            self.assertEqual(process.wait(600), 0)

    def test_a_python_that_is_not_there_is_named(self):
        found, _ = self.goals("--only", "C8.forward.f32.causal.d64.t1", "--torch-python",
                              "/no/such/python")
        self.assertIn("/no/such/python", found["goals"][0]["reason"])

    def test_every_head_dim_has_a_share_of_the_peak_for_every_kernel(self):
        found, text = self.goals("--widths")
        widths = found["widths"]
        self.assertLessEqual({1, 17, 80, 96, 192, 256}, set(widths["head_dims"]))
        self.assertEqual([kernel["name"] for kernel in widths["kernels"]],
                         ["f32 forward", "f32 backward", "bf16 forward", "bf16 backward"])
        for kernel in widths["kernels"]:
            self.assertIn(f"{kernel['name']}: share of the peak, {kernel['peak']}", text)
            self.assertEqual(len(kernel["shares"]), len(widths["head_dims"]))
            for share in kernel["shares"]:
                self.assertGreater(share["value"], 0)
                self.assertLess(share["value"], 2, "no kernel is twice as fast as the processor")

    def test_wrong_command_lines_are_refused(self):
        for words, said in [(["--only", "C99"], "C99"), (["--only", "C1,"], "''"),
                            (["--rounds", "2"], "--rounds"), (["--tokens", "64"], "--tokens"),
                            (["--widths", "--only", "C1"], "--widths")]:
            self.fails(2, said, "cpu", *words)
        self.fails(4, "--json", "cpu", "--json", "/no/such/folder/x.json")

    def test_wrong_command_lines_for_devices_are_refused_before_a_device_is_looked_for(self):
        for words, said in [(["--only", "G99"], "G99"), (["--only", "C1"], "C1"),
                            (["--only", "G1,"], "''"), (["--rounds", "2"], "--rounds"),
                            (["--ranks", "2"], "--ranks"),
                            (["--timeout", "0"], "--timeout"), (["--timeout", "x"], "--timeout"),
                            (["--machine", "m.txt"], ".json"), (["--machine", "m.json", "--only", "G1"], "--only"),
                            (["--ladder", "--machine", "m.json"], "no --ladder beside it")]:
            self.fails(2, said, "gpu", *words)
        self.fails(2, "--timeout", "cpu", "--only", "C10.p2", "--timeout", "9")
        self.fails(2, "tpu", "tpu")

    def test_without_a_device_nothing_is_measured_and_the_file_says_why(self):
        path = self.folder / "goals.json"
        self.environment["CUDA_VISIBLE_DEVICES"] = ""
        self.fails(4, "CUDA", "gpu", "--quick", "--json", path, env=self.environment)
        document = json.loads(path.read_text())
        self.assertEqual(document["error"]["exit_code"], 4)
        self.assertNotIn("goals", document)

    def test_without_a_known_peak_shares_of_the_peak_are_skipped_and_the_rest_is_not(self):
        self.environment["RINGLAB_VECTORS"] = doctor()["processor"]["available_vectors"][-1]
        found, _ = self.goals("--only", "C4.d64,C10.p2")
        for goal in found["goals"]:
            self.check_goal(goal)
            self.assertEqual(goal["met"] == "skipped", goal["id"].startswith("C4"))


if __name__ == "__main__":
    unittest.main()
