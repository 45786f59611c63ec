"""A peer (peer.h): PyTorch's attention on the CPU.

A line "forward f32 causal HEADS QUERIES TOKENS HEAD_DIM THREADS" (or backward, bf16, full) is one
pass over random numbers; the answer is its processor time on one thread, its wall time on several.
"""
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch

# OpenMP's threads wait busily for more work, on the cores that others are timed on next.
QUIET_SECONDS = 0.02
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Problem:
    """Inputs of one shape, kept from request to request."""

    def __init__(self, dtype, heads, queries, tokens, head_dim):
        torch.manual_seed(1)
        self.q, self.k, self.v, self.dout = (
            torch.randn(1, heads, rows, head_dim).to(DTYPES[dtype])
            for rows in (queries, tokens, tokens, queries))

    def attention(self, mask):
        return torch.nn.functional.scaled_dot_product_attention(
            self.q, self.k, self.v, is_causal=mask == "causal")

    def inputs(self, wanted):
        return tuple(tensor.requires_grad_(wanted) for tensor in (self.q, self.k, self.v))


def seconds(problem, direction, mask, threads):
    torch.set_num_threads(threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    inputs = problem.inputs(direction == "backward")
    if direction == "backward":
        out = problem.attention(mask)
        start = clock()
        torch.autograd.grad(out, inputs, problem.dout)
        return clock() - start
    with torch.no_grad():
        start = clock()
        problem.attention(mask)
        return clock() - start


def serve():
    print("ready PyTorch", torch.__version__, flush=True)
    kept = {}
    for line in sys.stdin:
        try:
            direction, dtype, mask, *numbers = line.split()
            if direction not in ("forward", "backward") or mask not in ("full", "causal"):
                raise ValueError("unknown pass or mask")
            *shape, threads = map(int, numbers)
            key = (dtype, *shape)
            if key not in kept:
                kept = {key: Problem(*key)}
            taken = seconds(kept[key], direction, mask, threads)
            time.sleep(QUIET_SECONDS)
            print(repr(taken), flush=True)
        except Exception as problem:
            print("cannot", " ".join(f"{type(problem).__name__}: {problem}".split()), flush=True)


serve()
