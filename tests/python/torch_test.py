"""Tensors of PyTorch, and PyTorch's own attention under the laws; skipped where there is none."""
import sys
import unittest

try:
    import torch
except ImportError:
    print("tests/python: Skipped\nPyTorch cannot be imported")
    sys.exit(77)

import ringlab
import torch_functions as functions

torch.set_num_threads(1)  # the products are tiny


class Tensors(unittest.TestCase):
    def test_tensors_come_and_go_as_tensors(self):
        torch.manual_seed(1)
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            q, k, v = (torch.randn(1, 6, heads, 4).to(dtype).transpose(1, 2) for heads in (4, 2, 2))
            q.requires_grad_()
            for subject in ("reference", "optimized"):
                o, lse = ringlab.attention(q, k, v, mask="causal", subject=subject, return_lse=True)
                self.assertEqual((o.dtype, o.shape), (dtype, q.shape))
                self.assertEqual(lse.dtype, torch.float64 if dtype == torch.float64 else torch.float32)
                right = functions.math(q, k, v, mask=CausalOf(q, k), scale=0.5)
                torch.testing.assert_close(o, right.detach(), rtol=2e-2, atol=2e-2)
                o.zero_()

    def test_gradients_are_those_of_autograd(self):
        torch.manual_seed(2)
        q, k, v, dout = (torch.randn(1, 2, 5, 3, dtype=torch.float64) for _ in range(4))
        for x in (q, k, v):
            x.requires_grad_()
        functions.math(q, k, v, mask=CausalOf(q, k), scale=3**-0.5).backward(dout)
        got = ringlab.attention(q, k, v, mask="causal", dout=dout, subject="optimized", ranks=2)
        for mine, theirs in zip((got.dq, got.dk, got.dv), (q.grad, k.grad, v.grad)):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


class CausalOf:
    kind = "causal"

    def __init__(self, q, k):
        self.pairs = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()

    def matrix(self):
        return self.pairs


class TheirAttention(unittest.TestCase):
    def test_the_math_backend_passes_in_float32(self):
        report = ringlab.verify(functions.math, arrays="torch", cases=10, progress=False,
                                limits=functions.LIMITS)
        self.assertTrue(report.passed, str(report))

    def test_a_wrong_scale_is_found(self):
        def wrong(q, k, v, *, mask, scale):
            return functions.math(q, k, v, mask=mask, scale=scale * 1.0001)

        report = ringlab.verify(wrong, arrays="torch", cases=10, progress=False,
                                limits=functions.LIMITS)
        self.assertIn("equals_reference", [law.id for law in report.broken])


if __name__ == "__main__":
    unittest.main()
