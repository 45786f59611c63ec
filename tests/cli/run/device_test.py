"""--device cuda: what is refused with or without a GPU, and what doctor says of one."""
import json
import os
import unittest

from program import ProgramTest, ringlab

TEXT = "It was the best of times, it was the worst of times.\n"


class DeviceTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", TEXT)
        self.cuda = json.loads(self.succeeds("doctor", "--json", "-").out)["cuda"]

    def on_devices(self, *words):
        return ["run", "optimized", "--text", self.text, "--device", "cuda", *words]

    def needs_no_device(self):
        if self.cuda["compiled_in"] and self.cuda["devices"]:
            self.skipTest("this machine has a CUDA device and this build uses it")

    def missing(self):
        """What is said where there is no device: that, or versions of the driver."""
        if not self.cuda["compiled_in"] or self.cuda["driver_found"]:
            return ["a CUDA device"]
        wanted = self.cuda["runtime_version"].split(".")[0]
        return ["NVIDIA driver", f"one for CUDA {wanted}.0 or newer", "found none", "Install it"]

    def needs_device(self):
        if not self.cuda["compiled_in"] or not self.cuda["devices"]:
            self.skipTest("no NVIDIA GPU, or a build without CUDA")


class RefusedTest(DeviceTest):
    def test_options_without_effect_on_devices_are_refused(self):
        for option, value in [("--threads", "2"), ("--tile-queries", "64"), ("--tile-keys", "64"),
                              ("--transport", "threads"),
                              ("--transport", "simulated"), ("--integrity", "full")]:
            with self.subTest(option=option, value=value):
                self.fails(2, [option, "--device cuda"], *self.on_devices(option, value))

    def test_a_graph_leaves_no_trace(self):
        path = self.folder / "trace.json"
        self.fails(2, ["--trace", "--graph"], *self.on_devices("--graph", "--trace", path))
        self.assertFalse(path.exists())

    def test_a_graph_is_for_the_engine_on_devices(self):
        self.fails(2, ["--graph", "with --device cuda"], "run", "optimized", "--text", self.text,
                   "--graph")
        self.fails(2, ["--graph", "with --device cuda"], "run", "reference", "--text", self.text,
                   "--graph")
        for subject in ("ring", "cudnn"):
            self.fails(2, ["--graph", "the subject optimized", subject], "run", subject, "--text",
                       self.text, "--device", "cuda", "--dtype", "bf16", "--graph")
        self.fails(2, "graph", "verify", "optimized", "--device", "cuda", "--graph")

    def test_free_multiprocessors_are_of_the_engine_on_devices(self):
        self.fails(2, ["--free-sms", "with --device cuda"], "run", "optimized", "--text", self.text,
                   "--free-sms", "8")
        self.fails(2, ["--free-sms", "the subject optimized", "ring"], "run", "ring", "--text",
                   self.text, "--device", "cuda", "--dtype", "bf16", "--free-sms", "8")
        for count in ("-1", "many", "5000"):
            self.fails(2, "--free-sms", *self.on_devices("--free-sms", count))

    def test_deterministic_is_of_gradients_on_devices(self):
        self.fails(2, ["--deterministic", "with --device cuda"], "run", "optimized", "--text",
                   self.text, "--backward", "--deterministic", "off")
        self.fails(2, ["--deterministic", "--backward"],
                   *self.on_devices("--dtype", "bf16", "--deterministic", "off"))
        self.fails(2, ["--deterministic", "on", "off", "maybe"],
                   *self.on_devices("--dtype", "bf16", "--backward", "--deterministic", "maybe"))
        self.fails(2, ["--deterministic", "the subject optimized", "ring"], "run", "ring", "--text",
                   self.text, "--device", "cuda", "--dtype", "bf16", "--deterministic", "off")
        self.fails(2, ["--deterministic", "with --device cuda"], "verify", "optimized", "--quick",
                   "--deterministic", "off")

    def test_what_has_an_effect_on_devices_is_taken(self):
        self.needs_no_device()
        for subject in ("optimized", "cudnn"):
            for words in (["--timeout", "5"], ["--backward", "--deterministic", "off"]):
                with self.subTest(subject=subject, words=words):
                    self.fails(4, ["expected"], "run", subject, "--text", self.text, "--device",
                               "cuda", "--dtype", "bf16", *words)
        self.fails(4, ["device cuda"], "verify", "optimized", "--quick", "--device", "cuda",
                   "--deterministic", "off")

    def test_score_modifiers_are_refused(self):
        for words in [("--softcap", "3"), ("--alibi", "default"), ("--sinks", "1"),
                      ("--dropout", "0.1")]:
            for gradients in ([], ["--dtype", "bf16", "--backward"]):
                with self.subTest(words=words, gradients=gradients):
                    self.fails(2, [words[0], "no score modifiers with --device cuda",
                                   "Use --device cpu: the CPU engine can."],
                               *self.on_devices(*words, *gradients))

    def test_a_subject_without_kernels_for_devices_is_refused(self):
        for command in ("run", "verify"):
            self.fails(2, ["--device", "backward"], command, "backward", "--text", self.text,
                       "--device", "cuda")

    def test_processes_do_not_use_devices(self):
        self.fails(2, ["--device", "cpu with --transport mpi"],
                   *self.on_devices("--transport", "mpi"))

    def test_what_no_kernel_does_is_a_usage_error_with_and_without_a_device(self):
        for words, parts in [(("--dtype", "f32"), ["--dtype", "f16, bf16", "Give --dtype bf16"]),
                             (("--dtype", "bf16", "--head-dim", "264"), ["head_dim", "256"]),
                             (("--dtype", "bf16", "--wire", "fp8"), ["wire"]),
                             (("--dtype", "bf16", "--check-rows", "10000"), ["--check-rows"]),
                             ((), ["--dtype", "f32"])]:
            with self.subTest(words=words):
                self.fails(2, parts, *self.on_devices(*words))

    def test_without_a_device_the_engine_says_so_and_writes_nothing(self):
        self.needs_no_device()
        out = self.folder / "out.safetensors"
        for words in [("--dtype", "bf16"), ("--dtype", "f16", "--backward", "--ranks", "3"),
                      ("--dtype", "bf16", "--graph"),
                      ("--dtype", "bf16", "--output", out), ("--dtype", "bf16", "--check-rows", "3"),
                      ("--schedule", "double:2", "--ranks", "4", "--dtype", "bf16")]:
            with self.subTest(words=words):
                self.fails(4, ["device cuda", *self.missing()], *self.on_devices(*words))
        self.fails(4, ["device cuda"], "verify", "optimized", "--quick", "--device", "cuda")
        self.assertFalse(out.exists())

    def test_a_build_without_cuda_says_how_to_get_it(self):
        if self.cuda["compiled_in"]:
            self.skipTest("CUDA is compiled in")
        self.fails(4, ["a build without CUDA", "-DRINGLAB_CUDA=ON"],
                   *self.on_devices("--dtype", "bf16"))


class OnDevicesTest(DeviceTest):
    def test_the_engine_is_right_on_devices_and_names_its_kernels(self):
        self.needs_device()
        result = self.succeeds(*self.on_devices("--dtype", "bf16", "--ranks", "3", "--backward",
                                                "--check", "--json", self.folder / "run.json"))
        document = json.loads((self.folder / "run.json").read_text())
        hopper = self.cuda["devices"][0]["compute_capability"] == "9.0"
        self.assertIn("Hopper (wgmma)" if hopper else "mma.sync",
                      document["configuration"]["kernels"])
        self.assertIn(self.cuda["devices"][0]["name"], document["configuration"]["devices"])
        self.assertTrue(document["passed"], result.out)

    def test_a_graph_has_the_bits_of_streams(self):
        self.needs_device()
        words = self.on_devices("--dtype", "bf16", "--ranks", "3", "--backward", "--check")
        written = []
        for name, more in [("streams", []), ("graph", ["--graph"])]:
            report, out = self.folder / f"{name}.json", self.folder / f"{name}.safetensors"
            self.succeeds(*words, *more, "--json", report, "--output", out)
            self.assertEqual(json.loads(report.read_text())["configuration"]["graph"], bool(more))
            written.append(out.read_bytes())
        self.assertEqual(*written)


    def test_gradients_in_any_order_are_right_and_said_to_be(self):
        self.needs_device()
        for choice in ("on", "off"):
            report = self.folder / f"{choice}.json"
            self.succeeds(*self.on_devices("--dtype", "bf16", "--ranks", "3", "--backward",
                                           "--check", "--deterministic", choice, "--json", report))
            configuration = json.loads(report.read_text())["configuration"]
            self.assertEqual(configuration["deterministic"], choice == "on")
            self.assertEqual(configuration["timeout_s"], 60)


class ListTest(DeviceTest):
    def test_the_engine_is_listed_with_its_devices(self):
        self.succeeds("list", "--json", self.folder / "list.json")
        subjects = json.loads((self.folder / "list.json").read_text())["subjects"]
        [engine] = [subject for subject in subjects if subject["name"] == "optimized"]
        self.assertEqual(engine["devices"], ["cpu", "cuda"])
        self.assertEqual(engine["dtypes_on_devices"], ["f16", "bf16"])


class CudnnTest(DeviceTest):
    """The subject cudnn, as far as it goes without a device."""

    def cudnn(self, *words):
        return ["run", "cudnn", "--text", self.text, *words]

    def test_it_is_listed_for_devices_only(self):
        self.succeeds("list", "--json", self.folder / "list.json")
        subjects = json.loads((self.folder / "list.json").read_text())["subjects"]
        [cudnn] = [subject for subject in subjects if subject["name"] == "cudnn"]
        self.assertEqual(cudnn["devices"], ["cuda"])
        self.assertEqual(cudnn["dtypes_on_devices"], ["f16", "bf16"])
        self.assertTrue(cudnn["backward"])

    def test_the_cpu_is_refused(self):
        expected = ["--device", "cuda", "cudnn", "devices only"]
        self.fails(2, expected, *self.cudnn("--dtype", "bf16"))
        self.fails(2, expected, "verify", "cudnn", "--quick")
        self.fails(2, expected, "verify", "cudnn", "--tomography")

    def test_what_it_does_not_do_is_refused(self):
        on_devices = self.cudnn("--device", "cuda", "--dtype", "bf16")
        self.fails(2, ["--threads", "cudnn"], *on_devices, "--threads", "2")
        self.fails(2, ["--softcap"], *on_devices, "--softcap", "3")
        self.fails(2, ["cudnn", "wire"], *on_devices, "--wire", "fp8")
        self.fails(2, ["cudnn", "head_dim = 512"], *on_devices, "--head-dim", "512")
        self.fails(2, ["--dtype", "cudnn", "f16, bf16"],
                   *self.cudnn("--device", "cuda", "--dtype", "f32"))
        self.fails(2, ["--trace"], *on_devices, "--trace", self.folder / "trace.json")

    def test_without_a_device_it_says_so_and_writes_nothing(self):
        self.needs_no_device()
        out = self.folder / "out.safetensors"
        self.fails(4, ["device cuda"], *self.cudnn("--device", "cuda", "--dtype", "bf16",
                                                   "--output", out))
        self.fails(4, ["device cuda"], "verify", "cudnn", "--quick", "--device", "cuda")
        self.assertFalse(out.exists())

    def test_doctor_says_what_is_missing(self):
        before = os.environ.get("RINGLAB_CUDNN_LIBRARY")
        os.environ["RINGLAB_CUDNN_LIBRARY"] = "libnosuchcudnn.so.9"
        try:
            result = self.succeeds("doctor", "--json", self.folder / "doctor.json")
        finally:
            os.environ.pop("RINGLAB_CUDNN_LIBRARY")
            if before is not None:
                os.environ["RINGLAB_CUDNN_LIBRARY"] = before
        cudnn = json.loads((self.folder / "doctor.json").read_text())["cudnn"]
        self.assertFalse(cudnn["found"])
        self.assertIn("libnosuchcudnn.so.9", cudnn["problem"])
        wanted = "RINGLAB_CUDNN_LIBRARY" if cudnn["compiled_in"] else "scripts/cudnn_frontend"
        self.assertIn(wanted, result.out)

    def test_it_is_right_on_devices(self):
        self.needs_device()
        cudnn = json.loads(self.succeeds("doctor", "--json", "-").out)["cudnn"]
        if not cudnn["compiled_in"] or not cudnn["found"]:
            self.skipTest("no cuDNN, or a build without it")
        for ranks in ("1", "3"):
            self.succeeds(*self.cudnn("--device", "cuda", "--dtype", "bf16", "--ranks", ranks,
                                      "--mask", "causal", "--backward", "--check"))


class DoctorTest(DeviceTest):
    """With a driver of our own that claims to have devices."""

    def doctor(self, version, capabilities, **more):
        folder = os.environ.get("RINGLAB_FAKE_DRIVER")
        if not folder:
            self.skipTest("no fake driver was built")
        environment = {"LD_LIBRARY_PATH": folder, "FAKE_DRIVER_VERSION": str(version),
                       "FAKE_DRIVER_CAPABILITIES": capabilities, **more}
        before = {name: os.environ.get(name) for name in environment}
        os.environ.update(environment)
        try:
            result = ringlab("doctor", "--json", self.folder / "doctor.json")
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        self.assertEqual(result.code, 0, result.err)
        return result.out, json.loads((self.folder / "doctor.json").read_text())["cuda"]

    def test_it_tells_what_each_device_has_and_enables(self):
        out, cuda = self.doctor(99000, "75,80,90,100")
        self.assertEqual([device["compute_capability"] for device in cuda["devices"]],
                         ["7.5", "8.0", "9.0", "10.0"])
        self.assertEqual(cuda["driver_version"], "99.0")
        self.assertIn("Fake GPU 2, 64.0 GiB, compute capability 9.0, 132 multiprocessors at up to "
                      "1980 MHz", out)
        for device in cuda["devices"]:
            self.assertEqual((device["multiprocessors"], device["clock_hz"],
                              device["memory_clock_hz"]), (132, 1980000000, 2619000000))
        effects = [device["enables"] for device in cuda["devices"]]
        if not cuda["compiled_in"]:
            for effect in effects:
                self.assertIn("-DRINGLAB_CUDA=ON", effect)
            return
        self.assertIn("8.0 or newer", effects[0])
        self.assertNotIn("Hopper", effects[3])
        known = {"80-real 90a-real": ["portable", "Hopper", "no code for 10.0"],
                 "90a-real": ["no code for 8.0", "Hopper", "no code for 10.0"]}
        expected = known.get(cuda["architectures"], ["", "Hopper", ""])
        for effect, part in zip(effects[1:], expected):
            self.assertIn(part, effect)
            self.assertEqual("-DCMAKE_CUDA_ARCHITECTURES=" in effect, "no code" in effect)
        self.assertEqual(cuda["driver_problem"], "")

    def test_streams_have_queues_before_cuda_starts_unless_the_user_decides(self):
        saw = self.folder / "saw"
        self.doctor(99000, "90", FAKE_DRIVER_SAW=str(saw))
        self.assertEqual(saw.read_text(), "32")
        self.doctor(99000, "90", FAKE_DRIVER_SAW=str(saw), CUDA_DEVICE_MAX_CONNECTIONS="5")
        self.assertEqual(saw.read_text(), "5")

    def test_a_driver_older_than_the_runtime_is_told(self):
        _, cuda = self.doctor(9020, "90")
        self.assertEqual(cuda["driver_version"], "9.2")
        if not cuda["compiled_in"]:
            self.assertEqual(cuda["driver_problem"], "")
            return
        self.assertIn("too old", cuda["driver_problem"])
        self.assertIn("too old", cuda["devices"][0]["enables"])


if __name__ == "__main__":
    unittest.main()
