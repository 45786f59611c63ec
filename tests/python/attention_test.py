"""`ringlab.attention` next to attention in NumPy with bounds of its own (tests/cli)."""
import pathlib
import signal
import sys
import threading
import time
import unittest
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import numpy_attention as independent  # noqa: E402

import ringlab  # noqa: E402

NUMPY = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
MASKS = ("full", "causal", "window:2,1", "documents:3,0,4", "prefix:3", "causal+window:2,inf")
try:
    import ml_dtypes
    NUMPY["bf16"] = ml_dtypes.bfloat16
except ImportError:
    ml_dtypes = None


def problem(dtype, queries=5, keys=7, seed=1):
    """q (2, 4, queries, 3), k (2, 2, keys, 3), v (2, 2, keys, 2), dout."""
    draw = np.random.default_rng(seed).standard_normal
    shapes = ((2, 4, queries, 3), (2, 2, keys, 3), (2, 2, keys, 2), (2, 4, queries, 2))
    return [draw(shape).astype(NUMPY[dtype]) for shape in shapes]


def wide(arrays, batch):
    return [array[batch].astype(np.float64) for array in arrays]


class Attention(unittest.TestCase):
    def assert_within(self, got, exact, bound):
        self.assertEqual(got.shape, exact.shape)
        self.assertLessEqual(independent.worst_ratio(got.astype(np.float64), exact, bound), 1)

    def check(self, dtype, mask, **wishes):
        arrays = problem(dtype)
        q, k, v, dout = arrays
        gradients = ringlab.attention(q, k, v, mask=mask, dout=dout, **wishes)
        allowed = independent.visible(mask, q.shape[2], k.shape[2], {})
        for b in range(q.shape[0]):
            inputs = wide(arrays, b)
            forward = independent.Exact(*inputs[:3], 3**-0.5, allowed, dtype, 9)
            backward = independent.ExactGradients(inputs, 3**-0.5, allowed, forward, dtype, 9)
            self.assert_within(gradients.o[b], forward.o, forward.o_bound)
            self.assert_within(gradients.lse[b], forward.lse, forward.lse_bound)
            for name in ("dq", "dk", "dv"):
                got = getattr(gradients, name)
                self.assertEqual(got.dtype, q.dtype)
                self.assert_within(got[b], backward.values[name], backward.bounds[name])

    def test_the_reference_agrees_with_an_independent_one(self):
        for mask in MASKS:
            for dtype in NUMPY:
                with self.subTest(mask=mask, dtype=dtype):
                    self.check(dtype, mask)

    def test_the_engine_agrees_with_an_independent_one_on_any_ranks(self):
        for mask, ranks, layout, schedule in (
                ("full", 1, "contiguous", "ring"), ("causal", 3, "zigzag", "bidirectional"),
                ("window:2,1", 9, "striped", "double:2"), ("prefix:3", 4, "zigzag", "broadcast")):
            for dtype in NUMPY:
                with self.subTest(mask=mask, dtype=dtype):
                    self.check(dtype, mask, subject="optimized", ranks=ranks, layout=layout,
                               schedule=schedule)

    def test_auto_is_the_way_of_the_plan(self):
        rng = np.random.default_rng(7)
        q, k, v = (rng.normal(size=(1, 2, 512, 16)).astype(np.float32) for _ in range(3))
        wishes = {"mask": "causal", "subject": "optimized", "ranks": 4}
        chosen, fixed, other = (ringlab.attention(q, k, v, **wishes, **way) for way in (
            {"auto": "laptop"}, {"layout": "zigzag"}, {"layout": "striped"}))
        np.testing.assert_array_equal(chosen, fixed)
        self.assertFalse(np.array_equal(chosen, other))
        for way, says in (({"subject": "ring"}, "schedules to choose"), ({"subject": "reference", "ranks": None}, "auto"),
                          ({"layout": "zigzag"}, "Leave out one"), ({"auto": "lapdog"}, "one of h200")):
            with self.assertRaisesRegex(ringlab.UsageError, says):
                ringlab.attention(q, k, v, **(wishes | {"auto": "laptop"} | way))

    def test_a_stage_with_gradients_agrees_too(self):
        self.check("f32", "causal", subject="backward", ranks=3, layout="zigzag")

    def test_the_bounds_of_the_reference_hold(self):
        q, k, v, dout = problem("f64")
        exact = ringlab.attention(q, k, v, mask="causal", dout=dout, with_error=True)
        allowed = independent.visible("causal", 5, 7, {})
        for b in range(2):
            own = independent.Exact(*wide((q, k, v), b), 3**-0.5, allowed, "f64", 9)
            self.assert_within(exact.o[b], own.o, own.o_bound + exact.o_error[b])
            self.assert_within(exact.lse[b], own.lse, own.lse_bound + exact.lse_error[b])
        for name in ("o", "lse", "dq", "dk", "dv"):
            error = getattr(exact, name + "_error")
            self.assertEqual(error.dtype, np.float64)
            self.assertTrue((error >= 0).all() and error.max() < 1e-12, name)

    def test_the_exact_reference_is_the_nearest_number_to_the_certified_one(self):
        for dtype in ("f64", "f32", "f16"):
            q, k, v, dout = problem(dtype)
            exact = ringlab.attention(q, k, v, mask="causal", dout=dout, exact=True)
            wide = ringlab.attention(*(x.astype(np.float64) for x in (q, k, v)), mask="causal",
                                     dout=dout.astype(np.float64), with_error=True)
            for name in ("o", "lse", "dq", "dk", "dv"):
                rounded, true = getattr(exact, name), getattr(wide, name)
                self.assertEqual(rounded.dtype, np.float32 if (dtype, name) == ("f16", "lse")
                                 else q.dtype)
                # Half a step, and what the certified value may be off.
                allowed = np.spacing(np.abs(rounded)).astype(np.float64) / 2
                self.assert_within(rounded.astype(np.float64), true,
                                   (allowed + getattr(wide, name + "_error")) * (1 + 1e-12))

    def test_what_is_returned_depends_on_what_is_asked_for(self):
        q, k, v, _ = problem("f16")
        o = ringlab.attention(q, k, v)
        again, lse = ringlab.attention(q, k, v, return_lse=True)
        self.assertIsInstance(o, np.ndarray)
        np.testing.assert_array_equal(o, again)
        self.assertEqual((o.dtype, o.shape), (np.float16, (2, 4, 5, 2)))
        self.assertEqual((lse.dtype, lse.shape), (np.float32, (2, 4, 5)))
        o[:] = 0  # results are the caller's own
        self.assertTrue(ringlab.attention(q, k, v).any())

    def test_views_in_any_memory_order_give_the_same_bits(self):
        for subject in ("reference", "optimized", "ring"):
            q, k, v, _ = problem("f32")
            expected = ringlab.attention(q, k, v, mask="causal", subject=subject)
            tokens_first = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
                            for x in (q, k, v)]
            backwards = [np.ascontiguousarray(x[:, ::-1, ::-1])[:, ::-1, ::-1] for x in (q, k, v)]
            sparse = [np.repeat(x, 3, axis=3)[..., ::3] for x in (q, k, v)]
            for views in (tokens_first, backwards, sparse):
                self.assertFalse(any(x.flags.c_contiguous for x in views))
                got = ringlab.attention(*views, mask="causal", subject=subject)
                np.testing.assert_array_equal(got, expected)
            for x in (q, k, v):
                x.flags.writeable = False
            got = ringlab.attention(q, k, v, mask="causal", subject=subject)
            np.testing.assert_array_equal(got, expected)

    def test_one_array_may_stand_for_many_heads(self):
        q, k, v, _ = problem("f32")
        shared = np.broadcast_to(k[:, :1], k.shape)
        np.testing.assert_array_equal(ringlab.attention(q, shared, v, subject="optimized"),
                                      ringlab.attention(q, shared.copy(), v, subject="optimized"))

    def test_a_matrix_is_a_mask_and_a_tuple_an_intersection(self):
        q, k, v, _ = problem("f64")
        causal = np.tri(5, 7, 2, dtype=bool)
        for subject in ("reference", "optimized"):
            expected = ringlab.attention(q, k, v, mask="causal+window:2,0", subject=subject)
            for mask in (np.asfortranarray(causal), ):
                got = ringlab.attention(q, k, v, mask=(mask, "window:2,0"), subject=subject)
                np.testing.assert_array_equal(got, expected)

    def test_masks_of_other_libraries_mean_the_same(self):
        q, k, v, dout = problem("f64", keys=5)
        causal = np.tri(5, dtype=bool)
        added = np.where(causal, 0, -np.inf).astype(np.float32)
        for subject in ("reference", "optimized"):
            expected = ringlab.attention(q, k, v, mask="causal+window:2,0", subject=subject)
            for wishes in ({"mask": (added, "window:2,0")}, {"mask": "window:2,0", "is_causal": True},
                           {"mask": (added[None, None], "window:2,0")}):
                got = ringlab.attention(q, k, v, subject=subject, **wishes)
                np.testing.assert_array_equal(got, expected)
        with self.assertRaisesRegex(ringlab.UsageError, "as many queries as keys.*top left"):
            ringlab.attention(q[:, :, :3], k, v, is_causal=True)
        with self.assertRaisesRegex(ringlab.UsageError, "0 and -inf.*alibi"):
            ringlab.attention(q, k, v, mask=added + 1)

    def test_masks_may_differ_from_head_to_head(self):
        q, k, v, _ = problem("f64")
        draw = np.random.default_rng(3)
        slopes, sinks = [0.5, 0.25, 0.125, 1.0], [0.1, 0.2, 0.3, 0.4]
        for shape in ((4, 5, 7), (2, 1, 5, 7), (2, 4, 5, 7)):
            masks = draw.random(shape) < 0.6
            whole = np.broadcast_to(masks, (2, 4, 5, 7))
            for subject in ("reference", "optimized"):
                o, lse = ringlab.attention(q, k, v, mask=(masks, "window:4,4"), alibi=slopes,
                                           sinks=sinks, subject=subject, return_lse=True)
                self.assertEqual((o.shape, lse.shape), ((2, 4, 5, 2), (2, 4, 5)))
                for b, h in np.ndindex(2, 4):
                    one, kv = np.s_[b:b + 1, h:h + 1], np.s_[b:b + 1, h // 2:h // 2 + 1]
                    right = ringlab.attention(q[one], k[kv], v[kv], mask=(whole[b, h], "window:4,4"),
                                              alibi=slopes[h], sinks=sinks[h], subject=subject)
                    np.testing.assert_array_equal(o[one], right)
        exact = ringlab.attention(q, k, v, mask=masks, with_error=True)
        self.assertLess(exact.o_error.max(), 1e-12)
        self.assertIsNone(exact.dq)
        k, v = np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1)
        got = ringlab.attention(q, k, v, mask=masks, dout=np.ones((2, 4, 5, 2)), subject="optimized")
        self.assertEqual((got.dq.shape, got.dk.shape, got.dv.shape), (q.shape, k.shape, v.shape))
        for wishes in ({"mask": masks[:, :3]}, {"mask": masks, "dropout": 0.5}):
            with self.assertRaisesRegex(ringlab.UsageError, "^mask"):
                ringlab.attention(q, k, v, **wishes)

    def test_sizes_of_zero_and_rows_that_see_nothing(self):
        for subject in ("reference", "optimized"):
            q, k, v, _ = problem("f32", queries=4, keys=0)
            o, lse = ringlab.attention(q, k, v, subject=subject, return_lse=True)
            self.assertTrue((o == 0).all() and (lse == -np.inf).all())
            o, lse = ringlab.attention(q[:, :, :0], k, v, subject=subject, return_lse=True)
            self.assertEqual((o.shape, lse.shape), ((2, 4, 0, 2), (2, 4, 0)))

    def test_modifiers_reach_the_engine_and_the_reference(self):
        q, k, v, _ = problem("f64")
        wishes = {"softcap": 2.0, "alibi": "default", "sinks": [0.5], "dropout": 0.3, "dropout_seed": 5}
        plain = ringlab.attention(q, k, v)
        for wish in wishes:
            if wish == "dropout_seed":
                continue
            one = {wish: wishes[wish] if wish != "sinks" else np.float32(0.5)}
            exact = ringlab.attention(q, k, v, with_error=True, **one)
            self.assertGreater(np.abs(exact.o - plain).max(), 1e-3, wish)
            got = ringlab.attention(q, k, v, subject="optimized", ranks=3, **one)
            np.testing.assert_allclose(got, exact.o, rtol=0, atol=1e-13)
        self.assertGreater(np.abs(ringlab.attention(q, k, v, dropout=0.3, dropout_seed=5) -
                                  ringlab.attention(q, k, v, dropout=0.3)).max(), 1e-3)

    def test_a_signal_ends_it_soon(self):
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        # Minutes of work, on a fast machine too.
        long, fast = np.ones((1, 1, 40000, 64)), np.ones((1, 4, 120000, 64), np.float32)
        for q, wishes in ((long, {}), (long, {"exact": True}),
                          (fast, {"subject": "optimized", "ranks": 3}), (fast, {"subject": "optimized"})):
            with self.subTest(**wishes):
                began = time.monotonic()
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                with self.assertRaises(KeyboardInterrupt):
                    ringlab.attention(q, q, q, **wishes)
                self.assertLess(time.monotonic() - began, 20)
        began = time.monotonic()
        heard = []
        signal.signal(signal.SIGALRM, lambda *_: heard.append(time.monotonic() - began))
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        some = long[:, :, :3000]
        ringlab.attention(some, some, some)  # a handler that raises nothing ends nothing
        self.assertLess(heard[0], time.monotonic() - began)

    def test_other_threads_run_meanwhile(self):
        q = np.zeros((1, 1, 1200, 64))
        ticks, done = [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        try:
            began = time.monotonic()
            ringlab.attention(q, q, q, threads=1)
            ended = time.monotonic()
        finally:
            done.set()
            thread.join()
        self.assertGreater(ended - began, 0.05)  # else this shows nothing
        inside = [t for t in ticks if began < t < ended]
        self.assertGreater(len(inside), 3)


class BadInput(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v, self.dout = problem("f32")

    def fails(self, error, pattern, *arrays, **wishes):
        with self.assertRaisesRegex(error, pattern) as caught:
            ringlab.attention(*(arrays or (self.q, self.k, self.v)), **wishes)
        self.assertIsInstance(caught.exception, ringlab.Error)
        self.assertIsInstance(caught.exception, ValueError)
        return caught.exception

    def test_inputs_whose_scores_may_overflow_are_said_to_be_such(self):
        q, k, v, _ = problem("f32")
        for subject in ("reference", "optimized", "ring"):
            with self.assertWarnsRegex(RuntimeWarning, "q·k may overflow: up to .* where f32 ends") as seen:
                ringlab.attention(np.float32(1e19) * q, np.float32(1e19) * k, v, subject=subject)
            self.assertEqual(pathlib.Path(seen.filename).name, pathlib.Path(__file__).name)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                ringlab.attention(q, k, v, subject=subject)
                ringlab.attention(*(1e19 * x.astype(np.float64) for x in (q, k)),
                                  v.astype(np.float64), subject=subject)
                with self.assertRaises(RuntimeWarning):
                    ringlab.attention(np.float32(1e19) * q, np.float32(1e19) * k, v)
        with self.assertWarnsRegex(RuntimeWarning, r"that scale · q·k may overflow: up to \d.*e\+30\d where"):
            ringlab.attention(q, k, v, scale=1e300)

    def test_shapes_that_do_not_fit_are_named(self):
        q, k, v = self.q, self.k, self.v
        self.fails(ringlab.InputError, "^k: expected", q, k[..., :2], v)
        self.fails(ringlab.InputError, "^v: expected", q, k, v[:, :, :3])
        self.fails(ringlab.InputError, "^k: expected", q, k[:1], v)
        self.fails(ringlab.InputError, "q_heads: expected a multiple of the 2", q[:, :3], k, v)
        self.fails(ringlab.InputError, "^q: expected 4 dimensions.*found 3", q[0], k, v)
        self.fails(ringlab.InputError, "^dout: expected", q, k, v, dout=self.dout[..., :1])
        self.fails(ringlab.InputError, "head_dim: expected at least 1", q[..., :0], k[..., :0], v)

    def test_dimensions_are_named_beside_masks_per_head_too(self):
        q, k, v, masks = self.q, self.k, self.v, np.ones((4, 5, 7), bool)
        for name, arrays in (("q", (q[0], k, v)), ("q", (q[0, 0], k, v)), ("k", (q, k[0, 0], v)),
                             ("v", (q, k, v[0]))):
            self.fails(ringlab.InputError, f"^{name}: expected 4 dimensions", *arrays, mask=masks)
        k, v = np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1)
        self.fails(ringlab.InputError, "^dout: expected 4 dim", q, k, v, mask=masks, dout=self.dout[0, 0])
        self.fails(ringlab.InputError, "^dout: expected a NumPy array", q, k, v, mask=masks, dout=1)

    def test_memory_that_no_protocol_describes_is_named(self):
        k, v = self.k, self.v
        odd = np.ndarray(self.q.shape, np.float32, np.zeros(9999, np.uint8), 0, (1360, 340, 68, 17))
        self.fails(ringlab.InputError,
                   r"^q: expected strides that are multiples of 4 bytes, found 17\. Copy it\.$", odd, k, v)
        ringlab.attention(odd.copy(), k, v)
        for dtype in ("M8[s]", "m8[s]", "V4", [("a", "f4")], "S4", "U1", "O", "g"):
            strange = np.zeros(self.q.shape, dtype)
            error = self.fails(ringlab.InputError, "^q: expected float64, float32, float16 or bfloat16",
                               strange, k, v)
            self.assertEqual(error.found, str(strange.dtype))
        record = np.zeros(self.q.shape, [("a", "f4")]).view(np.recarray)
        self.fails(ringlab.InputError, "^q: expected float64.*found .*record", record, k, v)

    def test_dtypes_that_do_not_fit_are_named(self):
        q, k, v = self.q, self.k, self.v
        self.fails(ringlab.InputError, "^k: expected the dtype of q, f32, found f64", q,
                   k.astype(np.float64), v)
        self.fails(ringlab.InputError, "^q: expected float64.*found int32", q.astype(np.int32), k, v)
        self.fails(ringlab.InputError, "^q: expected float64.*found uint16", q.astype(np.uint16), k, v)
        self.fails(ringlab.InputError, "^q: .*complex64", q.astype(np.complex64), k, v)
        self.fails(ringlab.InputError, "^q: expected the byte order", q.astype(">f4"), k, v)
        self.fails(ringlab.InputError, "^k: expected a NumPy array.*found list", q, k.tolist(), v)
        self.fails(ringlab.InputError, "^q: expected a NumPy array.*found list", q.tolist(), k, v)
        if ml_dtypes:
            self.fails(ringlab.InputError, "^k: expected the dtype of the others, bfloat16",
                       q.astype(ml_dtypes.bfloat16), k, v.astype(ml_dtypes.bfloat16))

    def test_values_that_cannot_be_computed_with_are_refused_by_the_reference(self):
        self.k[0, 0, 0, 0] = np.nan
        self.fails(ringlab.InputError, "score: expected a finite number")

    def test_masks_that_do_not_fit_are_refused(self):
        self.fails(ringlab.UsageError, "mask.*\"casual\"", mask="casual")
        self.fails(ringlab.InputError, "documents", mask="documents:3,3")
        error = self.fails(ringlab.UsageError, "Did you mean causal", mask="causl")
        self.assertTrue(error.expected.endswith("prefix:N, joined with +"), error.expected)
        for file in ("file:/etc/passwd", "file:", "file", "causal+file:x", "fil:x"):
            self.fails(ringlab.UsageError, "mask: expected a mask that needs no file, found .*Pass the matrix",
                       mask=file)
        self.fails(ringlab.UsageError, "mask: expected a text", mask=np.ones((5, 7)))
        self.fails(ringlab.InputError, r"^mask: expected an array \(5, 7\), found \(7, 5\)",
                   mask=np.ones((7, 5), dtype=bool))
        self.fails(ringlab.UsageError, "^mask: expected what NumPy", mask=[[True], [True, False]])

    def test_wishes_without_effect_are_refused(self):
        self.fails(ringlab.UsageError, "^ranks: expected a subject that runs on ranks", ranks=2)
        self.fails(ringlab.UsageError, "^schedule: expected", subject="ring", schedule="ring")
        self.fails(ringlab.UsageError, "^dout: expected a subject that has gradients", subject="ring",
                   dout=self.dout)
        self.fails(ringlab.UsageError, "^with_error", subject="optimized", with_error=True)
        self.fails(ringlab.UsageError, "^exact", subject="optimized", exact=True)
        self.fails(ringlab.UsageError, "^with_error", exact=True, with_error=True)
        self.fails(ringlab.UsageError, "soft-capping", exact=True, softcap=3.0)
        self.fails(ringlab.UsageError, "^softcap", subject="ring", softcap=3.0)

    def test_wishes_out_of_range_are_refused(self):
        error = self.fails(ringlab.UsageError, "^subject: expected one of", subject="rign")
        self.assertEqual((error.where, error.found), ("subject", '"rign"'))
        self.assertTrue(error.expected.startswith("one of") and error.hint)
        for wishes in ({"ranks": 0}, {"ranks": 10**9}, {"slots": 0}, {"threads": -1},
                       {"layout": "zag"}, {"schedule": "double:0"}, {"wire": "f8"}, {"timeout_s": 0.0}):
            self.fails(ringlab.UsageError, "expected", subject="optimized", **wishes)
        self.fails(ringlab.InputError, "scale", scale=float("nan"))
        self.fails(ringlab.UsageError, "^scale: expected a number, found 'x'", scale="x")
        self.fails(ringlab.UsageError, "^ranks: expected a whole number", ranks=1.5,
                   subject="optimized")
        for ranks in (2**70 + 1, -2**70):
            self.fails(ringlab.UsageError, f"^ranks: expected 1 to 4096, found {ranks}$", ranks=ranks,
                       subject="optimized")
        for seed in (2**64, -1):
            self.fails(ringlab.UsageError, f"^dropout_seed: .* from 0 to 2.64 - 1, found {seed}",
                       dropout=0.5, dropout_seed=seed)
        self.fails(ringlab.InputError, "slope", alibi=[1.0, 2.0])
        for name in ("alibi", "sinks"):
            for given in (object(), ["one"], np.ones((2, 2))):
                self.fails(ringlab.UsageError, f"^{name}: expected a number, or one per", **{name: given})
        self.fails(ringlab.InputError, "dropout", dropout=1.5)


if __name__ == "__main__":
    unittest.main()
