"""`ringlab run optimized --backward` against attention in NumPy: o, lse, dq, dk, dv in their bounds.

Every combination of layout, schedule, slots and number of ranks runs once; a problem is run in
several of them, one command line each.
"""
import itertools
import json
import random
import sys
import unittest

from program import ProgramTest, SKIPPED, ringlab, safetensors

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(SKIPPED)

import numpy_attention as na

SEED = 20240923
LAYOUTS = ["contiguous", "striped", "zigzag"]
RING_SCHEDULES = ["ring", "bidirectional", "double:2", "double:3"]
SCHEDULES = ["broadcast", "allgather", *RING_SCHEDULES]
SLOTS = [1, 2, 3]
RANKS = range(1, 10)
MASKS = ["full", "causal", "window", "documents", "prefix"]
DTYPES = ["f32", "f64", "f16", "bf16"]
RUNS_PER_PROBLEM = 9
NAMES = ("o", "lse", "dq", "dk", "dv")


def largest_node(schedule):
    """W of double:W, which is at most the number of ranks; 1 for the others."""
    return int(schedule.partition(":")[2] or 1)


def configurations():
    """All (layout, schedule, slots, ranks), shuffled; the first two schedules take no slots."""
    ways = [(schedule, None) for schedule in SCHEDULES[:2]]
    ways += itertools.product(RING_SCHEDULES, SLOTS)
    all_of_them = [(layout, *way, ranks)
                   for layout, way, ranks in itertools.product(LAYOUTS, ways, RANKS)
                   if largest_node(way[0]) <= ranks]
    random.Random(SEED).shuffle(all_of_them)
    return all_of_them


def problems():
    """(mask word, dtype, configurations) of each problem."""
    chosen = configurations()
    kinds = itertools.cycle(itertools.product(MASKS, DTYPES))
    return [(*kind, chosen[first:first + RUNS_PER_PROBLEM])
            for first, kind in zip(range(0, len(chosen), RUNS_PER_PROBLEM), kinds)]


def mask_words(kind, rng, keys):
    if kind == "window":
        return "window:" + ",".join(rng.choice(["inf", str(rng.randrange(0, 9))]) for _ in "lr")
    if kind == "prefix":
        return f"prefix:{rng.randrange(0, keys + 2)}"
    if kind == "documents":
        cuts = sorted(rng.randrange(0, keys + 1) for _ in range(rng.randrange(0, 4)))
        lengths = [b - a for a, b in zip([0] + cuts, cuts + [keys])]
        words = "documents:" + ",".join(map(str, lengths))
        return words + "+causal" if rng.random() < 0.5 else words
    return kind


class Problem:
    """Random tensors of (batch, heads, tokens, channels), and what attention makes of them."""

    def __init__(self, seed, kind, dtype):
        rng, numbers = random.Random(seed), np.random.default_rng(seed)
        self.dtype = dtype
        batch, kv_heads, group = rng.choice([1, 1, 2]), rng.choice([1, 2]), rng.choice([1, 2, 3])
        queries = rng.choice([1, 2, 5, 7, 11, 17, 23, rng.randrange(20, 50)])
        keys = queries if rng.random() < 0.6 else rng.randrange(1, 50)
        d, c = rng.randrange(1, 9), rng.randrange(1, 9)
        spread = rng.choice([0.3, 1.0, 2.0])

        def draw(*shape):
            values = numbers.standard_normal(shape) * spread
            return values if dtype == "f64" else na.round_to(dtype, na.round_to("f32", values))
        self.tensors = {"q": draw(batch, group * kv_heads, queries, d),
                        "k": draw(batch, kv_heads, keys, d), "v": draw(batch, kv_heads, keys, c),
                        "do": draw(batch, group * kv_heads, queries, c)}
        self.mask = mask_words(kind, rng, keys)
        given = rng.choice([None, 1.0, -0.7])
        self.scale = 1 / np.sqrt(d) if given is None else given
        self.words = ["--mask", self.mask] + ([] if given is None else ["--scale", given])
        self.rng = rng

    def write(self, path):
        path.write_bytes(safetensors({name: na.stored(self.dtype, x)
                                      for name, x in self.tensors.items()}))

    def exact(self):
        """{name: (values, bounds)}, each (batch, heads, tokens[, channels])."""
        queries, keys = self.tensors["q"].shape[2], self.tensors["k"].shape[2]
        allowed = na.visible(self.mask, queries, keys, {})
        found = {name: ([], []) for name in NAMES}
        for inputs in zip(*(self.tensors[name] for name in ("q", "k", "v", "do"))):
            forward = na.Exact(*inputs[:3], self.scale, allowed, self.dtype,
                               rescales=keys + max(RANKS))
            gradients = na.ExactGradients(inputs, self.scale, allowed, forward, self.dtype,
                                          merges=max(RANKS))
            values = {"o": forward.o, "lse": forward.lse, **gradients.values}
            bounds = {"o": forward.o_bound, "lse": forward.lse_bound, **gradients.bounds}
            for name in NAMES:
                found[name][0].append(values[name])
                found[name][1].append(bounds[name])
        return {name: tuple(map(np.stack, pair)) for name, pair in found.items()}

    def random_words(self):
        """Options that change nothing but the order of sums and the moments of messages."""
        words = ["--tile-queries", self.rng.randrange(1, 9), "--tile-keys", self.rng.randrange(1, 9),
                 "--direction", self.rng.choice(["next", "previous"]),
                 "--integrity", self.rng.choice(["headers", "full"])]
        if self.rng.random() < 0.3:
            words += ["--transport", "simulated", "--delay-seed", self.rng.randrange(1000)]
        return words


class EngineAgreementTest(ProgramTest):
    def run_once(self, problem, configuration, *more):
        """The results of one command line, and that line."""
        layout, schedule, slots, ranks = configuration
        paths = {name: self.folder / name for name in ("g.safetensors", "run.json")}
        for path in paths.values():
            path.unlink(missing_ok=True)
        line = ["run", "optimized", "--backward", "--input", self.folder / "f.safetensors",
                "--output", paths["g.safetensors"], "--json", paths["run.json"], "--layout", layout,
                "--schedule", schedule, "--ranks", ranks, *problem.words, *problem.random_words(),
                *more]
        line += [] if slots is None else ["--slots", slots]
        said = "ringlab " + " ".join(map(str, line))
        result = ringlab(*line, timeout=60)
        self.assertEqual(result.code, 0, f"{said}\n{result.err}")
        self.check_counts(json.loads(paths["run.json"].read_text()), ranks, said)
        return na.read_safetensors(paths["g.safetensors"]), said

    def check_counts(self, document, ranks, said):
        each = document["ranks"]
        self.assertEqual(len(each), ranks, said)
        for rank in each:
            for name in ("sent_bytes", "received_bytes", "peak_bytes", "peak_kv_bytes"):
                self.assertIsInstance(rank[name], int, said)
                self.assertGreaterEqual(rank[name], 0, said)
            self.assertGreaterEqual(rank["peak_bytes"], rank["peak_kv_bytes"], said)
        sent = sum(rank["sent_bytes"] for rank in each)
        self.assertEqual(document["sent_bytes"], sent, said)
        self.assertEqual(sum(rank["received_bytes"] for rank in each), sent, said)
        self.assertEqual(document["peak_bytes_per_rank"], max(r["peak_bytes"] for r in each), said)
        self.assertGreater(document["peak_bytes_per_rank"], 0, said)
        self.assertEqual(document["leftover_messages"], 0, said)
        if ranks == 1:
            self.assertEqual(sent, 0, said)

    def test_every_configuration_agrees_with_numpy(self):
        worst = {(dtype, name): 0.0 for dtype in DTYPES for name in NAMES}
        runs = 0
        for number, (kind, dtype, chosen) in enumerate(problems()):
            problem = Problem(SEED + number, kind, dtype)
            problem.write(self.folder / "f.safetensors")
            exact = problem.exact()
            for configuration in chosen:
                with self.subTest(problem=number, configuration=configuration):
                    got, said = self.run_once(problem, configuration)
                    self.assertEqual(set(got), set(NAMES), said)
                    for name, (values, bounds) in exact.items():
                        self.assertEqual(got[name].shape, values.shape, f"{name}: {said}")
                        ratio = na.worst_ratio(got[name], values, bounds)
                        self.assertLessEqual(ratio, 1, f"{name} of problem {number}: {said}")
                        worst[dtype, name] = max(worst[dtype, name], ratio)
                    runs += 1
        for (dtype, name), ratio in worst.items():
            print(f"{dtype:<4} {name:<3} worst error / bound {ratio:.3f} in {runs} runs")
            self.assertGreater(ratio, 1e-3, "a bound this loose shows nothing")

    def test_a_lossy_wire_leaves_the_bounds_of_everything_it_can_spoil(self):
        problem = Problem(SEED, "full", "f32")
        problem.scale, problem.words = 1.0, ["--scale", 1.0]
        numbers = np.random.default_rng(SEED)
        for name, channels in [("q", 6), ("k", 6), ("v", 4), ("do", 4)]:
            problem.tensors[name] = na.round_to("f32", numbers.standard_normal((1, 2, 19, channels)))
        problem.write(self.folder / "f.safetensors")
        exact = problem.exact()
        for schedule in SCHEDULES:
            slots = 2 if schedule in RING_SCHEDULES else None
            with self.subTest(schedule=schedule):
                got, said = self.run_once(problem, ("zigzag", schedule, slots, 4), "--wire", "bf16")
                for name, (values, bounds) in exact.items():
                    self.assertGreater(na.worst_ratio(got[name], values, bounds), 1,
                                       f"{name}: {said}")


class CoverageTest(unittest.TestCase):
    def test_every_combination_runs_and_every_mask_and_dtype_meets_every_value(self):
        runs = [(mask, dtype, *configuration) for mask, dtype, chosen in problems()
                for configuration in chosen]
        self.assertEqual({run[2:] for run in runs}, set(configurations()))
        ways = 2 + len(RING_SCHEDULES) * len(SLOTS)
        larger_nodes = (1 + 2) * len(SLOTS)  # double:2 on 1 rank, double:3 on 1 and 2
        self.assertEqual(len(runs), len(LAYOUTS) * (ways * len(RANKS) - larger_nodes))
        values = [MASKS, DTYPES, LAYOUTS, SCHEDULES, SLOTS, RANKS]
        for a, b in itertools.combinations(range(len(values)), 2):
            if (a, b) in [(3, 4), (3, 5)]:
                continue  # slots and ranks that a schedule cannot have; the product above has the rest
            met = {(run[a], run[b]) for run in runs}
            self.assertEqual(set(itertools.product(values[a], values[b])) - met, set())

    def test_some_problems_have_more_ranks_than_tokens_and_uneven_shards(self):
        tokens = [(Problem(SEED + number, kind, dtype).tensors["q"].shape[2], configuration[3])
                  for number, (kind, dtype, chosen) in enumerate(problems())
                  for configuration in chosen]
        self.assertGreater(sum(n < ranks for n, ranks in tokens), 20)
        self.assertGreater(sum(n > ranks and n % ranks != 0 for n, ranks in tokens), 100)


class BoundTest(unittest.TestCase):
    """What a kernel may not get wrong leaves the bounds of some gradient."""

    def setUp(self):
        numbers = np.random.default_rng(SEED)
        q, k, v, dout = (na.round_to("f32", numbers.standard_normal(shape))
                         for shape in [(4, 13, 5), (2, 13, 5), (2, 13, 3), (4, 13, 3)])
        self.inputs = [q, k, v, dout]
        self.allowed = na.visible("causal", 13, 13, {})
        self.right = self.gradients(self.inputs, 0.5, self.allowed)

    def gradients(self, inputs, scale, allowed):
        forward = na.Exact(*inputs[:3], scale, allowed, "f32", rescales=22)
        return na.ExactGradients(inputs, scale, allowed, forward, "f32", merges=9)

    def ratios(self, values):
        return {name: na.worst_ratio(values[name], self.right.values[name], self.right.bounds[name])
                for name in values}

    def test_it_notices_a_slightly_wrong_scale(self):
        for ratio in self.ratios(self.gradients(self.inputs, 0.5002, self.allowed).values).values():
            self.assertGreater(ratio, 1)

    def test_it_notices_one_key_too_many(self):
        allowed = self.allowed.copy()
        allowed[5, 6] = True
        for ratio in self.ratios(self.gradients(self.inputs, 0.5, allowed).values).values():
            self.assertGreater(ratio, 1)

    def test_it_notices_a_contribution_left_out_or_taken_twice(self):
        allowed = self.allowed.copy()
        allowed[12, 3] = False
        forward = na.Exact(*self.inputs[:3], 0.5, self.allowed, "f32", rescales=22)
        fewer = na.ExactGradients(self.inputs, 0.5, allowed, forward, "f32", merges=9).values
        self.assertGreater(self.ratios({"dv": fewer["dv"]})["dv"], 1)
        twice = {name: 2 * x - fewer[name] for name, x in self.right.values.items()}
        self.assertGreater(self.ratios({"dv": twice["dv"]})["dv"], 1)

    def test_its_gradients_are_those_of_finite_differences(self):
        for index, name in enumerate(["dq", "dk", "dv"]):
            shape = self.inputs[index].shape
            for at in [(0, 0, 0), tuple(n - 1 for n in shape), (1, 6, 1)]:
                coarse, fine = (self.slope(index, at, step) for step in (2.0**-11, 2.0**-12))
                # The error of central differences falls by four from step to step, down to that of
                # the loss itself, which is below 2^-46 here, over the step.
                self.assertAlmostEqual(fine, self.right.values[name][at],
                                       delta=abs(fine - coarse) + 2.0**-46 / 2.0**-12)

    def slope(self, index, at, step):
        """Of sum dO o along one element of q, k or v."""
        moved = []
        for sign in (1, -1):
            inputs = [x.copy() for x in self.inputs]
            inputs[index][at] += sign * step
            forward = na.Exact(*inputs[:3], 0.5, self.allowed, "f64", rescales=22)
            moved.append((forward.o * self.inputs[3]).sum())
        return (moved[0] - moved[1]) / (2 * step)


if __name__ == "__main__":
    unittest.main()
