"""Tensors of PyTorch, and PyTorch's own attention under the laws; skipped where there is none."""
import sys
import unittest

try:
    import torch
    from torch.autograd import forward_ad
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

    def test_tensors_that_require_gradients_get_them(self):
        torch.manual_seed(3)
        q, k, v, dout = (torch.randn(1, heads, 5, 3, dtype=torch.float64) for heads in (4, 2, 2, 4))
        for x in (q, k):
            x.requires_grad_()
        for subject in ("reference", "optimized"):
            with self.subTest(subject=subject):
                q.grad = k.grad = None
                o, lse = ringlab.attention(q, k, v, mask="causal", subject=subject, return_lse=True)
                (o * dout).sum().backward()
                wanted = ringlab.attention(q.detach(), k.detach(), v, mask="causal", dout=dout,
                                           subject=subject)
                torch.testing.assert_close(q.grad, wanted.dq, rtol=0, atol=0)
                torch.testing.assert_close(k.grad, wanted.dk, rtol=0, atol=0)
                self.assertIsNone(v.grad)
                with self.assertRaisesRegex(ringlab.UsageError, "a loss of o alone"):
                    ringlab.attention(q, k, v, subject=subject, return_lse=True)[1].sum().backward()
        compute = lambda *x: ringlab.attention(*x, mask="causal", subject="optimized", ranks=2)
        self.assertTrue(torch.autograd.gradcheck(compute, (q, k, v.requires_grad_())))

    def test_gradients_have_no_gradients_and_say_so(self):
        q = torch.randn(1, 1, 3, 2, requires_grad=True)
        o = ringlab.attention(q, q, q)
        for loss in (o.sum(), (o**2).sum()):
            slope, = torch.autograd.grad(loss, q, create_graph=True)
            with self.assertRaisesRegex(ringlab.UsageError, "differentiated once"):
                (slope**2).sum().backward(retain_graph=True)

    def test_tensors_that_are_negated_lazily_have_their_sign(self):
        q = torch.randn(1, 2, 5, 4, dtype=torch.complex64).conj().imag
        self.assertTrue(q.is_neg())
        for subject in ("reference", "optimized"):
            torch.testing.assert_close(ringlab.attention(q, q, -q, subject=subject),
                                       ringlab.attention(q.resolve_neg(), q.resolve_neg(), (-q).resolve_neg(),
                                                         subject=subject), rtol=0, atol=0)

    def test_what_cannot_have_gradients_is_refused(self):
        q = torch.ones(1, 1, 2, 2, requires_grad=True)
        for wishes in ({"subject": "broadcast"}, {"with_error": True}):
            with self.assertRaisesRegex(ringlab.UsageError, "gradients"):
                ringlab.attention(q, q, q, **wishes)
            with torch.no_grad():
                ringlab.attention(q, q, q, **wishes)
        plain, learned = q.detach(), torch.tensor(0.5, requires_grad=True)
        for wishes in ({"sinks": learned[None]}, {"sinks": [learned]}, {"alibi": learned[None]},
                       {"scale": learned}, {"softcap": learned}, {"mask": 0 * learned.expand(2, 2)},
                       {"mask": ("causal", 0 * learned.expand(2, 2))}):
            name, = wishes
            with self.assertRaisesRegex(ringlab.UsageError, f"^{name}: .*require no gradients.*detach"):
                ringlab.attention(plain, plain, plain, **wishes)
            with torch.no_grad():
                ringlab.attention(plain, plain, plain, **wishes)

    def test_masks_per_head_with_grouped_heads_are_refused_at_the_call(self):
        q, k = torch.ones(1, 4, 3, 2, requires_grad=True), torch.ones(1, 2, 3, 2)
        masks = torch.ones(4, 3, 3, dtype=torch.bool)
        with self.assertRaisesRegex(ringlab.UsageError, "^mask: .*grouped heads.*Repeat k and v"):
            ringlab.attention(q, k, k, mask=masks)
        with torch.no_grad():
            ringlab.attention(q, k, k, mask=masks)
        wide = k.repeat_interleave(2, 1).requires_grad_()
        ringlab.attention(q, wide, wide, mask=masks).sum().backward()
        self.assertEqual(wide.grad.shape, wide.shape)

    def test_tangents_of_forward_mode_are_refused(self):
        q = torch.randn(1, 2, 3, 2)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(q, torch.ones_like(q))
            for at in range(3):
                qkv = [q, q, q]
                qkv[at] = dual
                with self.assertRaisesRegex(ringlab.UsageError, f"^{'qkv'[at]}: .*without tangents"):
                    ringlab.attention(*qkv)
            sinks = forward_ad.make_dual(torch.zeros(2), torch.ones(2))
            for name, given in (("dout", dual), ("sinks", sinks), ("sinks", list(sinks)),
                                ("scale", sinks[0])):
                with self.assertRaisesRegex(ringlab.UsageError, f"^{name}: .*without tangents"):
                    ringlab.attention(q, q, q, **{name: given})
            ringlab.attention(q, q, forward_ad.unpack_dual(dual).primal)
        with self.assertRaisesRegex(ringlab.UsageError, "^q: .*without tangents"):
            torch.func.jvp(lambda x: ringlab.attention(x, q, q), (q,), (q,))

    def test_tensors_without_memory_are_named(self):
        q = torch.zeros(1, 2, 3, 2)
        for tensor, found in ((q.to_sparse(), "a sparse tensor"), (q.to("meta"), "a tensor on device meta"),
                              (q.to_mkldnn(), "a _mkldnn tensor")):
            with self.assertRaisesRegex(ringlab.InputError, f"^k: expected .*, found {found}$"):
                ringlab.attention(q, tensor, q)
        with self.assertRaisesRegex(ringlab.InputError, "^q: .*numbers in memory.*torch.func"):
            torch.func.vmap(lambda x: ringlab.attention(x, q, q))(q[None])

    def test_masks_and_numbers_may_be_tensors_of_any_dtype(self):
        q, causal = torch.randn(1, 2, 4, 3), torch.ones(4, 4).tril()
        wanted = ringlab.attention(q, q, q, mask="causal", sinks=[0.5, 0.25])
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            got = ringlab.attention(q, q, q, mask=causal.log().to(dtype),
                                    sinks=torch.tensor([0.5, 0.25], dtype=dtype))
            torch.testing.assert_close(got, wanted, rtol=0, atol=0)
        one = ringlab.attention(q, q, q, sinks=torch.tensor(0.5))
        torch.testing.assert_close(one, ringlab.attention(q, q, q, sinks=0.5), rtol=0, atol=0)
        with self.assertRaisesRegex(ringlab.UsageError, "^mask: expected what NumPy.*dense"):
            ringlab.attention(q, q, q, mask=causal.bool().to_sparse())


class CausalOf:
    kind = "causal"

    def __init__(self, q, k):
        self.pairs = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()

    def matrix(self):
        return self.pairs


class TheirAttention(unittest.TestCase):
    def test_the_math_backend_passes_in_every_dtype(self):
        report = ringlab.verify(functions.math, arrays="torch", cases=10, progress=False,
                                dtypes=functions.DTYPES, backward=True, limits=functions.LIMITS)
        self.assertTrue(report.passed, str(report))

    def test_the_flash_backend_passes_in_wide_dtypes(self):
        report = ringlab.verify(functions.flash, arrays="torch", cases=10, progress=False,
                                dtypes=["f64", "f32"], backward=True, limits=functions.FLASH_LIMITS)
        self.assertTrue(report.passed, str(report))

    def test_the_flash_backend_passes_in_small_dtypes_with_what_it_rounds_promised(self):
        report = ringlab.verify(functions.flash, arrays="torch", cases=10, progress=False,
                                dtypes=["f16", "bf16"], backward=True, limits=functions.FLASH_LIMITS,
                                profile=functions.FLASH)
        self.assertTrue(report.passed, str(report))

    def test_a_wrong_scale_is_found(self):
        def wrong(q, k, v, *, mask, scale):
            return functions.math(q, k, v, mask=mask, scale=scale * 1.0001)

        report = ringlab.verify(wrong, arrays="torch", cases=10, progress=False,
                                limits=functions.LIMITS)
        self.assertIn("equals_reference", [law.id for law in report.broken])


class TheirFlashGradients(unittest.TestCase):
    """What docs/python.md says of them: partial sums are stored in the dtype of the gradients."""

    def dv(self, backend, heads, queries, upstream, dtype=torch.bfloat16):
        """Of one key whose weight is exactly 1, so dv is the sum of what is upstream of each query."""
        q = torch.zeros(1, heads, queries, 8, dtype=dtype)
        k = torch.zeros(1, 1, 1, 8, dtype=dtype)
        dout = torch.zeros_like(q)
        for (head, query), number in upstream.items():
            dout[0, head, query, :] = number
        got = backend(q, k, k.clone(), mask=AllPairs, scale=1.0, dout=dout)
        return got[3][0, 0, 0, 0].item()

    def test_a_half_ulp_is_lost_between_two_blocks_of_queries(self):
        for dtype, half in ((torch.bfloat16, 2.0**-9), (torch.float16, 2.0**-12)):
            for queries, block in ((33, 32), (191, 32), (192, 64), (767, 64), (768, 256)):
                inside = {(0, 0): 1.0, (0, 1): half, (0, block - 1): -1.0}
                across = {(0, 0): 1.0, (0, 1): half, (0, block): -1.0}
                self.assertEqual(self.dv(functions.flash, 1, queries, inside, dtype), half)
                self.assertEqual(self.dv(functions.flash, 1, queries, across, dtype), 0)
                self.assertEqual(self.dv(functions.math, 1, queries, across, dtype), half)

    def test_a_half_ulp_is_lost_between_two_heads_that_share_a_key(self):
        upstream = {(0, 0): 1.0, (0, 1): 2.0**-9, (1, 0): -1.0}
        self.assertEqual(self.dv(functions.flash, 2, 2, upstream), 0)
        self.assertEqual(self.dv(functions.math, 2, 2, upstream), 2.0**-9)

    def test_a_half_ulp_is_lost_between_two_blocks_of_keys(self):
        """Of 1024 equal weights; dS is 1 where v is 1, so that dq is the sum of k there."""
        for backend, block_end, left in ((functions.flash, 511, 2.0**-9), (functions.flash, 512, 0.0),
                                         (functions.math, 512, 2.0**-9)):
            q = torch.zeros(1, 1, 1, 8, dtype=torch.bfloat16)
            k, v = torch.zeros(2, 1, 1, 1024, 8, dtype=torch.bfloat16)
            for key, number in ((0, 1.0), (1, 2.0**-9), (block_end, -1.0)):
                k[0, 0, key, :] = number
                v[0, 0, key, 0], v[0, 0, 1023 - key, 0] = 1, -1  # o is 0
            dout = torch.zeros_like(q)
            dout[..., 0] = 1024
            dq = backend(q, k, v, mask=AllPairs, scale=1.0, dout=dout)[1]
            self.assertEqual(dq[0, 0, 0, 0].item(), left)

    def test_the_law_asks_for_the_promise(self):
        def verdict(profile):
            return ringlab.verify(functions.flash, arrays="torch", dtypes=["bf16"], backward=True,
                                  cases=200, laws=["gradients_equal_reference"], progress=False,
                                  limits=functions.FLASH_LIMITS, profile=profile)

        self.assertFalse(verdict(functions.WEIGHTS).passed)
        self.assertTrue(verdict(functions.FLASH).passed)

    def test_a_dv_that_misses_a_query_is_still_found(self):
        def wrong(q, k, v, *, mask, scale, dout=None):
            if dout is not None:
                dout = dout.clone()
                dout[:, :, -1:] = 0
            return functions.flash(q, k, v, mask=mask, scale=scale, dout=dout)

        report = ringlab.verify(wrong, arrays="torch", dtypes=["bf16"], backward=True, cases=10,
                                laws=["gradients_equal_reference"], progress=False,
                                limits=functions.FLASH_LIMITS, profile=functions.FLASH)
        self.assertFalse(report.passed)


class AllPairs:
    kind = "full"


if __name__ == "__main__":
    unittest.main()
