"""A peer (peer.h): PyTorch's attention on the first CUDA device, by one of its back ends.

A line "forward causal Q_HEADS KV_HEADS TOKENS HEAD_DIM flash" (or backward, full, cudnn) is one pass
over random bf16 numbers, a line "product N" multiplies two bf16 matrices (N, N); the answer is the
time by the device's clock, caches written over before, while the device stood still until all was
issued.
"""
import sys
import warnings

warnings.filterwarnings("ignore")
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

if not torch.cuda.is_available():
    sys.exit(f"PyTorch {torch.__version__} finds no CUDA device")
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
FLUSH = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
HOLD_S = 200e-6  # as GpuTimer's; a call of cuDNN takes the host 40 to 60 microseconds


class Problem:
    """Inputs of one shape, kept from request to request."""

    def __init__(self, q_heads, kv_heads, tokens, head_dim):
        torch.manual_seed(1)
        self.q, self.dout = (self.random(q_heads, tokens, head_dim) for _ in range(2))
        self.k, self.v = (self.random(kv_heads, tokens, head_dim) for _ in range(2))
        self.grouped = q_heads != kv_heads

    @staticmethod
    def random(*extents):
        return torch.randn(1, *extents, device="cuda", dtype=torch.bfloat16)

    def attention(self, mask):
        return torch.nn.functional.scaled_dot_product_attention(
            self.q, self.k, self.v, is_causal=mask == "causal", enable_gqa=self.grouped)

    def inputs(self, wanted):
        return tuple(tensor.requires_grad_(wanted) for tensor in (self.q, self.k, self.v))


def timed(work, before=lambda: None):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3


def cycles_per_second():
    """Of the multiprocessors, once their clock has risen: what PyTorch lets stand still counts it."""
    torch.cuda._sleep(50_000_000)
    return 10_000_000 / timed(lambda: torch.cuda._sleep(10_000_000))


HOLD_CYCLES = int(HOLD_S * cycles_per_second())


def covered(work):
    """The device's time for the work, without the host's for issuing it."""
    def before():
        FLUSH.zero_()
        torch.cuda._sleep(HOLD_CYCLES)
    return timed(work, before)


def seconds(problem, direction, mask, backend):
    inputs = problem.inputs(direction == "backward")
    with sdpa_kernel(BACKENDS[backend]):
        if direction == "backward":
            out = problem.attention(mask)
            return covered(lambda: torch.autograd.grad(out, inputs, problem.dout))
        with torch.no_grad():
            return covered(lambda: problem.attention(mask))


def product_seconds(kept, n):
    if n not in kept:
        kept[n] = [Problem.random(n, n)[0] for _ in range(2)]
    return covered(lambda: kept[n][0] @ kept[n][1])


def answer(line, problems, matrices):
    direction, *words = line.split()
    if direction == "product":
        return product_seconds(matrices, int(words[0]))
    mask, *numbers, backend = words
    if direction not in ("forward", "backward") or mask not in ("full", "causal"):
        raise ValueError("unknown pass or mask")
    key = tuple(map(int, numbers))
    if key not in problems:
        problems.clear()
        problems[key] = Problem(*key)
    return seconds(problems[key], direction, mask, backend)


def serve():
    print("ready PyTorch", torch.__version__, "cuDNN", torch.backends.cudnn.version(), flush=True)
    problems, matrices = {}, {}
    for line in sys.stdin:
        try:
            print(repr(answer(line, problems, matrices)), flush=True)
        except Exception as problem:
            print("cannot", " ".join(f"{type(problem).__name__}: {problem}".split()), flush=True)


serve()
