"""What `ringlab_goals` asks of PyTorch, with one that is made up and keeps a clock."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PEER = pathlib.Path(__file__).resolve().parents[2] / "optimized/bench/measure/torch_peer.py"
CLOCK_HZ = 1.98e9

# Every call takes its time on the device, one after the other; LOG has their names in order.
TORCH = f"""
import json, os, sys, types
__version__ = "made up"
uint8 = bfloat16 = float32 = None
class State: now, log = 0.0, []
def does(name, seconds):
    State.log.append([name, seconds])
    State.now += seconds
class Tensor:
    def zero_(self): does("flush", 1e-4)
    def requires_grad_(self, wanted): return self
    def __getitem__(self, at): return self
    def __matmul__(self, other): does("product", 1e-3)
def empty(*words, **more): return Tensor()
def randn(*words, **more): return Tensor()
def manual_seed(seed): pass
def set_num_threads(count): pass
class Event:
    def __init__(self, enable_timing): self.at = None
    def record(self): self.at = State.now; does("event", 0)
    def elapsed_time(self, end): return 1e3 * (end.at - self.at)
def synchronize():
    does("wait", 0)
    with open(os.environ["LOG"], "w") as file: json.dump(State.log, file)
cuda = types.SimpleNamespace(is_available=lambda: True, Event=Event, synchronize=synchronize,
                             _sleep=lambda cycles: does("hold", cycles / {CLOCK_HZ}))
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91400))
autograd = types.SimpleNamespace(grad=lambda *words: does("gradients", 3e-3))
class set_grad_enabled:
    def __init__(self, wanted): pass
    def __enter__(self): pass
    def __exit__(self, *words): pass
def attend(*words, **more): does("attention", 2e-3)
from torch import nn
nn.functional = types.SimpleNamespace(scaled_dot_product_attention=attend)
"""
ATTENTION = """
class SDPBackend: FLASH_ATTENTION, CUDNN_ATTENTION = 0, 1
class sdpa_kernel:
    def __init__(self, one): pass
    def __enter__(self): pass
    def __exit__(self, *words): pass
"""


class GpuTorchPeerTest(unittest.TestCase):
    def answers(self, line, device="cuda"):
        """What the peer answers, and the log of the last thing that was timed."""
        with tempfile.TemporaryDirectory(prefix="ringlab-torch-peer-") as name:
            folder = pathlib.Path(name)
            (folder / "torch/nn").mkdir(parents=True)
            (folder / "torch/__init__.py").write_text(TORCH)
            (folder / "torch/nn/__init__.py").write_text("")
            (folder / "torch/nn/attention.py").write_text(ATTENTION)
            environment = {**os.environ, "PYTHONPATH": name, "LOG": str(folder / "log")}
            done = subprocess.run([sys.executable, "-B", PEER, device], input=line + "\n", text=True,
                                  capture_output=True, env=environment, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            log = folder / "log"
            return done.stdout.splitlines()[-1], json.loads(log.read_text()) if log.exists() else []

    def test_the_device_stands_still_while_a_call_is_issued(self):
        for line, name, seconds in (("forward bf16 causal 8 2 4096 4096 128 cudnn", "attention", 2e-3),
                                    ("backward bf16 full 8 2 4096 4096 128 flash", "gradients", 3e-3),
                                    ("product 64", "product", 1e-3)):
            answer, log = self.answers(line)
            self.assertAlmostEqual(float(answer), seconds, places=9, msg=line)
            *_, flush, hold, begin, work, end, wait = log
            self.assertEqual([flush[0], hold[0], begin[0], work[0], end[0], wait[0]],
                             ["flush", "hold", "event", name, "event", "wait"])
            self.assertAlmostEqual(hold[1], 200e-6, delta=1e-8)

    def test_on_the_processor_the_time_is_its_own(self):
        for line in ("forward f32 causal 8 8 1 4096 128 1", "backward bf16 full 8 8 64 64 64 2"):
            answer, log = self.answers(line, "cpu")
            self.assertGreater(float(answer), 0)
            self.assertEqual(log, [], "no device was waited for")
        self.assertIn("cannot ValueError", self.answers("sideways f32 full 8 8 1 1 1 1", "cpu")[0])


if __name__ == "__main__":
    unittest.main()
