"""`ringlab.verify` on functions in NumPy: right ones pass, wrong ones are found, and said to be."""
import dataclasses
import errno
import functools
import math
import signal
import sys
import threading
import time
import unittest

import numpy as np

import numpy_functions as functions
import ringlab

np.seterr(all="ignore")

# A law that each of them breaks, and what the report says.
FOUND_BY = {"mask_off_by_one": "equals_reference", "without_the_maximum": "P9",
            "scale_of_the_values": "equals_reference", "lse_in_base_2": "P26",
            "changes_its_input": "equals_reference", "previous_answer": "P7",
            "ignores_the_last_key": "U", "keys_in_half_precision": "equals_reference",
            "first_kv_head_for_all": "equals_reference", "top_left_causal": "P37",
            "gradient_without_scale": "gradients_equal_reference"}


# This one lets the clock go on for a second at times.
LAWS = [law.id for law in ringlab.laws() if law.id != "same_call"]
# Where one law is as good as another.
FEW = ["equals_reference", "gradients_equal_reference", "P1", "P9", "P26", "U"]


def verify(fn, **wishes):
    return ringlab.verify(fn, progress=False, **({"cases": 8, "laws": LAWS} | wishes))


class RightFunctions(unittest.TestCase):
    def passes(self, fn, **wishes):
        report = verify(fn, **wishes)
        self.assertTrue(report.passed, str(report))
        return report

    def test_a_right_one_passes_in_every_dtype(self):
        report = self.passes(functions.right, dtypes=("f64", "f32", "f16"), cases=16)
        self.assertGreater(sum(law.verdict == "held" for law in report.laws), 40)
        self.assertTrue(report.settings["gives_lse"])
        dtypes = {name for law in report.laws for name in law.classes if name.startswith("dtype")}
        self.assertEqual(len(dtypes), 3, dtypes)

    def test_bfloat16_is_that_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not there")

        def checked(q, k, v, **problem):
            self.assertEqual(q.dtype, ml_dtypes.bfloat16)
            return functions.right(q, k, v, **problem)

        self.passes(checked, dtypes=["bf16"])

    def test_without_an_lse_the_laws_about_it_are_skipped(self):
        report = self.passes(functions.right_without_lse, laws=FEW)
        self.assertFalse(report.settings["gives_lse"])
        self.assertEqual([law.skipped for law in report.laws if law.id == "P26"], ["gives no lse"])

    def test_gradients_are_compared_too(self):
        report = self.passes(functions.right_with_gradients, backward=True, laws=FEW)
        held = {law.id for law in report.laws if law.verdict == "held"}
        self.assertIn("gradients_equal_reference", held)

    def test_partial_gradients_in_a_small_dtype_are_promised(self):
        in_parts = ringlab.Profile(rounds_weights=True, queries_per_store=4, keys_per_store=4)
        self.passes(functions.gradients_in_parts, dtypes=["f16"], backward=True, profile=in_parts, cases=4)
        for wish in ("queries_per_store", "keys_per_store"):
            silent = dataclasses.replace(in_parts, **{wish: 0})
            report = verify(functions.gradients_in_parts, dtypes=["f16"], backward=True, profile=silent,
                            cases=100, laws=["gradients_equal_reference"])
            self.assertFalse(report.passed, wish)

    def test_q_and_k_that_are_scaled_first_are_promised(self):
        wishes = {"backward": True, "limits": ringlab.Limits(nonpositive_scale=False),
                  "laws": ["gradients_equal_reference"], "cases": 300}
        self.passes(functions.scales_first, profile=ringlab.Profile(prescaled=True), **wishes)
        report = verify(functions.scales_first, **wishes)
        self.assertFalse(report.passed)
        self.assertIn("Profile(prescaled=True)", report.passes_if)

    def test_the_reference_and_the_engine_pass_their_own_laws(self):
        def engine(q, k, v, *, mask, scale, **problem):
            problem["alibi"] = problem.pop("alibi_slopes", None)
            return ringlab.attention(q, k, v, mask=mask, scale=scale, return_lse=True,
                                     subject="optimized", threads=1, **problem)

        strict = ringlab.Limits(masked_may_be_nan=True, same_bits_per_row=True, divides_last=True,
                                sums_keys_in_order=True)
        report = self.passes(engine, limits=strict, backward=True, modifiers=True)
        skipped = {law.skipped for law in report.laws} - {""}
        self.assertEqual(len(skipped), 2, skipped)  # ranks and slots, which it does not show

    def test_only_the_kinds_of_modifiers_that_it_knows_reach_it(self):
        seen = set()

        def with_softcap(q, k, v, *, mask, scale, **problem):
            seen.update(problem)
            return ringlab.attention(q, k, v, mask=mask, scale=scale, return_lse=True, **problem)

        law = {"laws": ["equals_reference"], "cases": 60, "isolate": False}
        for modifiers in ("softcap", ["softcap"]):
            seen.clear()
            report = self.passes(with_softcap, modifiers=modifiers, **law)
            self.assertEqual(seen, {"softcap"})
            self.assertEqual(report.settings["modifiers"], ["softcap"])
        seen.clear()
        self.passes(with_softcap, **law)
        self.assertEqual(seen, set())
        with self.assertRaisesRegex(ringlab.UsageError, "modifiers.*softcap, alibi.*'alibis'"):
            ringlab.verify(with_softcap, modifiers=["alibis"])

    def test_bounds_that_zeros_keep_show_nothing(self):
        def zeros(q, k, v, *, mask, scale):
            o, lse = functions.right(q, k, v, mask=mask, scale=scale)
            return np.zeros_like(o), np.where(np.isinf(lse), lse, 0).astype(lse.dtype)

        absurd = ringlab.Profile(u_accumulate=0.9)
        for wishes in ({"laws": ["equals_reference", "P14"]}, {"laws": ["equals_reference", "P4"]},
                       {"laws": ["P1"], "require": ["P14"]}, {"laws": ["P4", "P14"], "strict": True}):
            report = verify(zeros, profile=absurd, **wishes)
            self.assertFalse(report.passed or report.broken, str(report))
            held = {law.id for law in report.laws if law.verdict == "held"}
            self.assertFalse(held & {"equals_reference", "P14"})
            self.assertIn("% of what was compared unbounded", report.headline())
            self.assertTrue(report.gaps)

    def test_what_it_cannot_do_is_discarded_and_said(self):
        def causal_only(q, k, v, *, mask, scale):
            if mask.kind != "causal" or q.shape[1] != k.shape[1]:
                raise NotImplementedError("causal without groups only")
            return functions.right(q, k, v, mask=mask, scale=scale)

        report = verify(causal_only)
        self.assertFalse(report.passed or report.broken)
        self.assertIn("not checked", report.headline())
        self.assertIn("it refused", report.gaps[0])
        self.assertTrue(any("causal without groups only" in law.skipped for law in report.laws))
        report = self.passes(causal_only, masks=("full", "causal"), laws=FEW,
                             limits=ringlab.Limits(grouped_heads=False))
        self.assertGreater(sum(law.refused for law in report.laws), 0)

    def test_one_that_answers_less_than_a_third_does_not_pass(self):
        def answers(share):
            calls = iter(range(10**9))

            def fn(q, k, v, *, mask, scale):
                if next(calls) * 3 % 10 >= 10 * share:  # 3 and 10 share no factor
                    raise NotImplementedError("not this time")
                return functions.right(q, k, v, mask=mask, scale=scale)
            return verify(fn, laws=["equals_reference"], cases=40, isolate=False)

        for share, passes in ((0.3, False), (0.4, True)):
            report = answers(share)
            self.assertEqual((report.passed, report.broken), (passes, ()), report)
            self.assertEqual("it refused" in str(report.gaps), not passes)

    def test_arrays_may_be_made_by_any_callable(self):
        report = self.passes(functions.right, laws=["U"], arrays=functools.partial(np.asarray))
        self.assertEqual(report.settings["arrays"], "partial")
        self.assertIn('"partial"', report.to_json())

    def test_what_was_tried_is_said(self):
        report = self.passes(functions.right, laws=["equals_reference"], cases=40)
        least, most = report.tried["forward"]["sizes"]["kv_tokens"]
        self.assertLess(least, most)
        self.assertIn("causal", report.tried["forward"]["kinds"]["mask"])
        self.assertIn("tried, forward", str(report))
        self.assertFalse(verify(functions.right, laws=["P1"], cases=1, strict=True).passed)

    def test_laws_and_classes_can_be_required(self):
        wishes = {"laws": ["equals_reference"], "cases": 40}
        self.passes(functions.right, require=["equals_reference", "mask full"], **wishes)
        report = verify(functions.right, require=["P1"], **wishes)
        self.assertEqual(report.gaps, ("required, but no case held: P1",))
        self.passes(functions.right, require=["mask full x keys 1 … 15"], **wishes)
        report = verify(functions.right, require=["keys 8192 … × mask full", "gradients: dtype f32 × batch 1"], **wishes)
        self.assertEqual(report.gaps[0], "required, but no case held: keys 8192 … × mask full")
        with self.assertRaisesRegex(ringlab.UsageError, "require"):
            verify(functions.right, require=["mask fully"])

    def test_a_function_that_is_compiled_for_every_shape_sees_few(self):
        shapes = {"any": set(), "few": set()}
        for wish, seen in shapes.items():
            def watched(q, k, v, *, mask, scale, seen=seen):
                seen.add((q.shape, k.shape, v.shape))
                return functions.right(q, k, v, mask=mask, scale=scale)

            self.passes(watched, shapes=wish, isolate=False,
                        laws=["equals_reference", "P1", "P9", "U", "many_keys"])
        self.assertLess(len(shapes["few"]), 25)
        self.assertGreater(len(shapes["any"]), 40)

    def test_lengths_masks_and_scales_can_be_left_out(self):
        def narrow(q, k, v, *, mask, scale):
            if q.shape[2] % 4 or k.shape[2] % 4:
                raise ValueError("lengths that 4 does not divide")
            if mask.kind != "causal" or not scale > 0 or 0 in q.shape + k.shape:
                raise NotImplementedError("not this mask, scale or size")
            return functions.right(q, k, v, mask=mask, scale=scale)

        limits = ringlab.Limits(token_multiple=4, nonpositive_scale=False, no_tokens=False)
        report = self.passes(narrow, limits=limits, masks=["causal"])
        self.assertEqual(sum(law.refused for law in report.laws), 0)
        self.assertEqual(report.findings, ())
        self.assertGreater(sum(law.verdict == "held" for law in report.laws), 15)
        self.assertNotIn("full", report.tried["forward"]["kinds"]["mask"])
        self.assertNotIn("scale 0", report.tried["claimed_not_tried"])

    def test_a_refusal_is_answered_with_the_limit_that_would_help(self):
        def advice(refuses, error=NotImplementedError, **wishes):
            def narrow(q, k, v, *, mask, scale):
                if refuses(q, k, mask, scale):
                    raise error("not this")
                return functions.right(q, k, v, mask=mask, scale=scale)
            return verify(narrow, laws=FEW, cases=20, **wishes).findings[-1:]

        for limit, refuses in {
                "Limits(token_multiple=4)": lambda q, k, mask, scale: q.shape[2] % 4 or k.shape[2] % 4,
                "Limits(nonpositive_scale=False)": lambda q, k, mask, scale: scale <= 0,
                "Limits(no_tokens=False)": lambda q, k, mask, scale: 0 in q.shape + k.shape,
                'with masks without "full"': lambda q, k, mask, scale: mask.kind == "full",
                "Limits(grouped_heads=False, rectangular=False)":
                    lambda q, k, mask, scale: q.shape[2] != k.shape[2] or q.shape[1] != k.shape[1]}.items():
            self.assertIn(limit, "".join(advice(refuses)))
        raised = advice(lambda q, k, mask, scale: q.shape[2] != k.shape[2], ValueError)
        self.assertIn("Limits(rectangular=False)", raised[0])
        self.assertEqual(advice(lambda q, k, mask, scale: q.size % 7 == 3), ())
        self.assertEqual(advice(lambda *_: False), ())

    def test_masks_and_limits_keep_cases_away(self):
        def narrow(q, k, v, *, mask, scale):
            self.assertIn(mask.kind, ("full", "causal"))
            self.assertEqual(q.shape[1:3], k.shape[1:3])
            self.assertEqual(q.shape[3], v.shape[3])
            self.assertEqual(q.shape[3] % 4, 0)
            self.assertLessEqual(q.shape[3], 8)
            self.assertEqual(scale, 1 / math.sqrt(q.shape[3]))
            self.assertTrue(mask.matrix().any(axis=1).all() and 0 not in q.shape + k.shape)
            return functions.right(q, k, v, mask=mask, scale=scale)

        self.passes(narrow, masks=("full", "causal"), limits=ringlab.Limits(
            grouped_heads=False, rectangular=False, other_v_dim=False, no_tokens=False,
            empty_rows=False, any_scale=False, max_head_dim=8, head_dim_multiple=4))

    def test_masks_are_described_in_words_and_pairs(self):
        kinds = set()

        def watched(q, k, v, *, mask, scale):
            kinds.add(mask.kind)
            pairs = mask.matrix()
            self.assertEqual(pairs.shape, (q.shape[2], k.shape[2]))
            self.assertTrue(pairs.flags.writeable)
            p = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
            j = np.arange(k.shape[2])[None, :]
            own = np.ones_like(pairs)
            for term in mask.terms:
                if term.kind == "causal":
                    own &= j <= p
                elif term.kind == "window":
                    own &= (j >= p - (np.inf if term.left is None else term.left))
                    own &= (j <= p + (np.inf if term.right is None else term.right))
                elif term.kind == "prefix":
                    own &= (j < term.tokens) | (j <= p)
                elif term.kind == "matrix":
                    own &= term.pairs
                else:
                    starts = np.cumsum((0, *term.lengths))
                    document = np.searchsorted(starts, p, side="right")
                    inside = (p >= 0) & (p < k.shape[2])
                    own &= inside & (document == np.searchsorted(starts, j, side="right"))
            np.testing.assert_array_equal(pairs, own)
            return functions.right(q, k, v, mask=mask, scale=scale)

        self.passes(watched, cases=200, laws=["equals_reference"], isolate=False)
        self.assertEqual(kinds, {"full", "causal", "window", "documents", "prefix", "matrix",
                                 "intersection"})


class WrongFunctions(unittest.TestCase):
    laws = sorted(set(FOUND_BY.values()))

    def test_every_mistake_is_found_and_the_law_is_named(self):
        for fn in functions.WRONG:
            with self.subTest(fn=fn.__name__):
                report = verify(fn, cases=24, laws=self.laws, backward=fn in functions.WRONG_GRADIENTS)
                self.assertFalse(report.passed)
                if fn == functions.changes_its_input:
                    self.assertIn("it changed its input", str(report))
                    continue
                broken = {law.id: law.failure for law in report.broken}
                self.assertIn(FOUND_BY[fn.__name__], broken)
                failure = broken[FOUND_BY[fn.__name__]]
                self.assertTrue(failure.token.startswith(f"{fn.__name__}/{FOUND_BY[fn.__name__]}/"))
                self.assertIn(report.broken[0].failure.token, str(report))

    def test_a_changed_input_is_named(self):
        report = verify(functions.changes_its_input, laws=["equals_reference"])
        self.assertIn("it changed its input q", report.first_call)

    def test_an_exception_is_a_verdict_with_its_traceback(self):
        def fails(q, k, v, *, mask, scale):
            raise KeyError("no such weight")

        def fails_later(q, k, v, *, mask, scale):
            return fails(q, k, v, mask=mask, scale=scale) if q.shape[2] > 2 else functions.right(
                q, k, v, mask=mask, scale=scale)

        for message in (verify(fails, laws=["U"]).first_call,
                        verify(fails_later, laws=["U"]).broken[0].failure.message):
            self.assertIn("KeyError: 'no such weight'", message)
            self.assertIn("in fails", message)
            self.assertNotIn("_callable.py", message)

    def test_where_the_first_call_fails_nothing_else_is_tried_and_it_says_what_is_wanted(self):
        calls = []

        def positional(q, k, v, causal):
            calls.append(1)

        report = verify(positional)
        self.assertFalse(report.passed)
        self.assertEqual((report.laws, calls), ((), []))
        text = str(report)
        self.assertIn("its first call failed", report.headline())
        self.assertIn("TypeError", text)
        self.assertIn("(batch, q_heads, q_tokens, head_dim)", text)
        self.assertLess(len(text.splitlines()), 30)
        self.assertIn("TypeError", report._repr_html_())
        self.assertIn("TypeError", report.to_dict()["first_call"])

    def test_one_mistake_is_told_once(self):
        def no_groups(q, k, v, *, mask, scale):
            if q.shape[1] != k.shape[1]:
                raise ValueError("no groups")
            return functions.right(q, k, v, mask=mask, scale=scale)

        report = verify(no_groups)
        self.assertGreater(len(report.broken), 10)
        text = str(report)
        self.assertEqual(text.count("Traceback"), 1)
        self.assertIn("and breaks ", text)
        self.assertLess(len(text.splitlines()), 25)

    def test_a_known_mistake_has_its_name(self):
        report = verify(functions.lse_in_base_2, laws=FEW)
        self.assertIn("this is: ", report.diagnosis)
        self.assertIn("this is: ", str(report))

    def test_arithmetic_that_could_be_declared_is_named(self):
        rounds = functions.rounds_weights
        report = verify(rounds, dtypes=["f16"], laws=FEW)
        self.assertTrue(report.broken)
        self.assertIn("passes if weights are rounded to f16", report.passes_if)
        self.assertIn("rounds_weights=True", report.passes_if)
        self.assertTrue(verify(rounds, dtypes=["f16"], laws=FEW,
                               profile=ringlab.Profile(rounds_weights=True)).passed)
        self.assertEqual(verify(functions.scale_of_the_values, dtypes=["f16"], laws=FEW).passes_if, "")

    def test_arithmetic_that_is_named_passes_where_it_is_declared(self):
        laws = ["equals_reference", "P9"]
        report = verify(functions.merges_pairs, laws=laws, cases=40)
        self.assertIn("Profile(lse_merges=32)", report.passes_if)
        for profile, passes in ((ringlab.Profile(u_accumulate=2**-10), False),
                                (ringlab.Profile(lse_merges=32), True)):
            again = verify(functions.merges_pairs, laws=laws, cases=40, profile=profile)
            self.assertEqual(again.passed, passes, str(again))

    def test_a_failure_that_does_not_come_back_is_said_to_be_one(self):
        calls = []

        def sometimes(q, k, v, *, mask, scale):
            calls.append(1)
            o, lse = functions.right(q, k, v, mask=mask, scale=scale)
            return o, lse + (len(calls) * 2654435761 % 2**32 < 2**30)

        report = verify(sometimes, laws=["equals_reference"])
        self.assertRegex(report.broken[0].failure.doubt, r"broke in \d+ of 50 more runs")
        self.assertIn("of 50 more runs", str(report))
        again = report.replay()
        self.assertEqual(again.verdict, "broken")
        self.assertTrue(again.runs in (1, 51) and again.runs_broken > 0, str(again))
        self.assertEqual(report.replay(functions.right).runs, 51)

    def test_a_machine_that_has_no_more_is_no_verdict(self):
        for error in (MemoryError("for 3 GiB"), OSError(errno.EMFILE, "too many"),
                      RuntimeError("can't start new thread")):
            def fn(q, k, v, **_):
                raise error
            with self.assertRaisesRegex(ringlab.RunError, type(error).__name__):
                ringlab.verify(fn, laws=["equals_reference"], cases=2, progress=False)

    def test_results_of_another_form_are_verdicts(self):
        for returned, expected in ((None, "returned None for o"), ((1, 2, 3), "returned 3 arrays"),
                                   (7, "returned int for o"),
                                   (np.zeros((1, 1, 1), np.float32), "o: expected"),
                                   (np.zeros((1, 1, 1, 1), np.int32), "o as int32, expected float32"),
                                   (np.zeros((70, 1, 1, 1), np.float32), "o: expected")):
            report = verify(lambda q, k, v, returned=returned, **_: returned, laws=["U"])
            self.assertIn(expected, report.first_call)

    def test_another_dtype_than_that_of_the_inputs_is_a_verdict(self):
        def wide(q, k, v, *, mask, scale):
            o, lse = functions.right(q, k, v, mask=mask, scale=scale)
            return o.astype(np.float64), lse.astype(np.float64)

        report = verify(wide, laws=["U"], cases=5)
        self.assertIn("it returned o as float64, expected float32", report.first_call)
        self.assertTrue(verify(wide, laws=["U"], cases=5, dtypes=["f64"]))

    def test_a_missing_lse_is_a_verdict_where_there_was_one(self):
        def forgets(q, k, v, *, mask, scale):
            o, lse = functions.right(q, k, v, mask=mask, scale=scale)
            return (o, lse) if q.shape[2] < 3 else o

        report = verify(forgets, laws=["U"], cases=40)
        self.assertIn("it returned no lse", report.broken[0].failure.message)

    def test_the_smallest_case_found_can_be_run_again(self):
        report = verify(functions.ignores_the_last_key, laws=["U"])
        again = report.replay()
        self.assertEqual((again.verdict, again.message),
                         ("broken", report.broken[0].failure.message))
        self.assertTrue(report.replay(functions.right).passed)
        token = report.broken[0].failure.token
        self.assertEqual(ringlab.replay(functions.ignores_the_last_key, token).verdict, "broken")
        self.assertTrue(ringlab.replay(functions.right, token).passed)

    def test_looking_up_the_answers_of_another_verification_does_not_pass(self):
        known = {}

        def key(q, k, v, mask, scale):
            arrays = (q, k, v, mask.matrix())
            return scale, *((x.shape, x.tobytes()) for x in arrays)

        def records(q, k, v, *, mask, scale):
            known[key(q, k, v, mask, scale)] = functions.right(q, k, v, mask=mask, scale=scale)
            return known[key(q, k, v, mask, scale)]

        def looks_up(q, k, v, *, mask, scale):
            nothing = np.zeros((*q.shape[:3], v.shape[3]), q.dtype), np.zeros(q.shape[:3])
            return known.get(key(q, k, v, mask, scale), nothing)

        wishes = {"laws": ["U", "equals_reference"], "cases": 40, "isolate": False}
        self.assertTrue(verify(records, **wishes).passed)
        self.assertFalse(verify(looks_up, **wishes).passed)

    def test_inputs_lie_somewhere_else_in_every_call(self):
        last = [None]

        def watched(q, k, v, *, mask, scale):
            address = q.ctypes.data
            self.assertTrue(q.size == 0 or address != last[0])
            last[0] = address
            return functions.right(q, k, v, mask=mask, scale=scale)

        self.assertTrue(verify(watched).passed)


class Stopping(unittest.TestCase):
    def test_an_interruption_ends_it_and_is_raised(self):
        calls = []

        def interrupted(q, k, v, *, mask, scale):
            calls.append(1)
            if len(calls) == 30:
                raise KeyboardInterrupt
            return functions.right(q, k, v, mask=mask, scale=scale)

        with self.assertRaises(KeyboardInterrupt):
            verify(interrupted, isolate=False)
        self.assertEqual(len(calls), 30)

    def test_a_signal_is_an_interruption(self):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with self.assertRaises(KeyboardInterrupt):
            verify(functions.right, cases=100000)

    def test_a_signal_is_not_lost_wherever_it_comes(self):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for moment in range(50):
            signal.setitimer(signal.ITIMER_REAL, 0.03 + 0.001 * moment)
            with self.assertRaises(KeyboardInterrupt, msg=f"moment {moment}"):
                verify(functions.right, laws=["U"], cases=20000)

    def test_an_interruption_while_results_are_read_is_one(self):
        class Interrupted(np.ndarray):
            def __dlpack__(self, **wishes):
                raise KeyboardInterrupt

        def fn(q, k, v, *, mask, scale):
            o, lse = functions.right(q, k, v, mask=mask, scale=scale)
            return (o.view(Interrupted) if q.shape[2] > 3 else o), lse

        with self.assertRaises(KeyboardInterrupt):
            verify(fn, laws=["U"], isolate=False)

    def test_laws_that_were_not_reached_in_time_are_skipped_by_name(self):
        report = verify(functions.right, cases=100000, seconds=1.0)
        self.assertLess(report.seconds, 30)
        late = [law for law in report.laws if "no time was left" in law.skipped]
        self.assertGreater(len(late), 10)
        self.assertTrue(report.passed)  # what was looked at held

    def test_what_is_broken_has_a_name_when_time_is_up(self):
        def slow(q, k, v, *, mask, scale):
            time.sleep(0.005)
            return functions.ignores_the_last_key(q, k, v, mask=mask, scale=scale)

        report = verify(slow, seconds=3.0)
        self.assertTrue(any("no time was left" in law.skipped for law in report.laws))
        self.assertIn("this is: ", report.diagnosis)

    def test_nothing_held_is_no_pass(self):
        def unable(q, k, v, *, mask, scale):
            raise NotImplementedError

        report = verify(unable, laws=["U", "S"])
        self.assertFalse(report.passed or report.broken)
        self.assertIn("not checked", report.headline())

    def test_it_runs_in_any_thread(self):
        reports = []
        thread = threading.Thread(target=lambda: reports.append(verify(functions.right, laws=["U"])))
        thread.start()
        thread.join()
        self.assertTrue(reports[0].passed)


class BadArguments(unittest.TestCase):
    def test_they_are_refused_by_name(self):
        for pattern, wishes in (("^dtypes: .*'f8'", {"dtypes": ["f8"]}), ("^dtypes", {"dtypes": []}),
                                ("^masks: .*'casual'", {"masks": ["casual"]}), ("^cases", {"cases": 0}),
                                ("^arrays", {"arrays": "jux"}), ("^seconds", {"seconds": 0}),
                                ("^seconds: .*at most 1000000000 seconds", {"seconds": 1e12}),
                                ("^timeout", {"timeout": 0}), ("^timeout: .*None", {"timeout": None}),
                                ("^timeout", {"timeout": math.inf}), ("^timeout", {"timeout": "1"}),
                                ("^cases", {"cases": 2**32}),
                                (r"^seed: .*from 0 to 2\^64 - 1, found 18446744073709551616",
                                 {"seed": 2**64}),
                                ("law", {"laws": ["P1000"]}),
                                ("u_lse", {"profile": ringlab.Profile(u_lse=-1.0)}),
                                ("head_dim_multiple",
                                 {"limits": ringlab.Limits(head_dim_multiple=0)})):
            with self.subTest(wishes), self.assertRaisesRegex(ringlab.UsageError, pattern):
                verify(functions.right, **wishes)
        with self.assertRaisesRegex(ringlab.UsageError, "^fn: expected a function"):
            verify(3)
        with self.assertRaisesRegex(ringlab.UsageError, "token"):
            ringlab.replay(functions.right, "right/U/b1.h1")
        for timeout in (None, math.inf, 0):
            with self.assertRaisesRegex(ringlab.UsageError, "^timeout"):
                ringlab.replay(functions.right, "right/U/b1.h1", timeout=timeout)

    def test_long_times_are_allowed(self):
        for times in ({"timeout": 1e9}, {"seconds": math.inf}, {"seconds": 1e9}):
            self.assertTrue(verify(functions.right, laws=["U"], **times))


if __name__ == "__main__":
    sys.exit(unittest.main())
