"""A peer (peer.h): PyTorch's attention on random numbers, on the CPU or the first CUDA device: torch_peer.py cpu|cuda

A line "forward f32 causal HEADS KV_HEADS QUERIES TOKENS HEAD_DIM HOW" (or backward, bf16, full) is one
pass. On the CPU HOW is the number of threads, and the answer the processor time of one, the wall time of
several. On a device HOW is flash or cudnn, a line "product N" multiplies two bf16 matrices (N, N), and the
answer is the time by the device's clock, caches written over before, while the device stood still until
all was issued.
"""
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Cpu:
    # OpenMP's threads wait busily for more work, on the cores that others are timed on next.
    QUIET_SECONDS = 0.02
    name, versions = "cpu", ()

    def seconds(self, prepare, threads):
        torch.set_num_threads(int(threads))
        clock = time.process_time if threads == "1" else time.perf_counter
        work = prepare()
        start = clock()
        work()
        taken = clock() - start
        time.sleep(self.QUIET_SECONDS)
        return taken


class Device:
    HOLD_S = 200e-6  # as GpuTimer's; a call of cuDNN takes the host 40 to 60 microseconds
    name = "cuda"

    def __init__(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        if not torch.cuda.is_available():
            sys.exit(f"PyTorch {torch.__version__} finds no CUDA device")
        self.using, self.matrices = sdpa_kernel, {}
        self.backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
        self.versions = ("cuDNN", torch.backends.cudnn.version())
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        torch.cuda._sleep(50_000_000)  # the clock rises; what PyTorch lets stand still counts it
        self.hold_cycles = int(self.HOLD_S * 10_000_000 / self.timed(lambda: torch.cuda._sleep(10_000_000)))

    @staticmethod
    def timed(work):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e-3

    def covered(self, work):
        """The device's time for the work, without the host's for issuing it."""
        self.flush.zero_()
        torch.cuda._sleep(self.hold_cycles)
        return self.timed(work)

    def seconds(self, prepare, backend):
        with self.using(self.backends[backend]):
            return self.covered(prepare())

    def product(self, n):
        if n not in self.matrices:
            self.matrices[n] = [torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
        return self.covered(lambda: self.matrices[n][0] @ self.matrices[n][1])


class Problem:
    """Inputs of one shape, kept from request to request."""

    def __init__(self, device, dtype, heads, kv_heads, queries, tokens, head_dim):
        torch.manual_seed(1)
        self.q, self.k, self.v, self.dout = (
            torch.randn(1, count, rows, head_dim, device=device, dtype=DTYPES[dtype])
            for count, rows in ((heads, queries), (kv_heads, tokens), (kv_heads, tokens), (heads, queries)))
        self.grouped = {"enable_gqa": True} if heads != kv_heads else {}

    def attention(self, mask):
        return torch.nn.functional.scaled_dot_product_attention(
            self.q, self.k, self.v, is_causal=mask == "causal", **self.grouped)

    def work(self, direction, mask):
        """The pass, ready to be timed."""
        inputs = tuple(tensor.requires_grad_(direction == "backward") for tensor in (self.q, self.k, self.v))
        if direction == "forward":
            return lambda: self.attention(mask)
        out = self.attention(mask)
        return lambda: torch.autograd.grad(out, inputs, self.dout)


def answer(line, machine, problems):
    direction, *words = line.split()
    if direction == "product":
        return machine.product(int(words[0]))
    dtype, mask, *shape, how = words
    if direction not in ("forward", "backward") or mask not in ("full", "causal"):
        raise ValueError("unknown pass or mask")
    key = (machine.name, dtype, *map(int, shape))
    if key not in problems:
        problems.clear()
        problems[key] = Problem(*key)
    with torch.set_grad_enabled(direction == "backward"):
        return machine.seconds(lambda: problems[key].work(direction, mask), how)


def serve(machine):
    print("ready PyTorch", torch.__version__, *machine.versions, flush=True)
    problems = {}
    for line in sys.stdin:
        try:
            print(repr(answer(line, machine, problems)), flush=True)
        except Exception as problem:
            print("cannot", " ".join(f"{type(problem).__name__}: {problem}".split()), flush=True)


serve(Device() if sys.argv[1] == "cuda" else Cpu())
