"""`ringlab run STAGE` on random problems against attention in NumPy: O and lse inside its bounds."""
import json
import pathlib
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

CASES_PER_STAGE = 40
SEED = 20240611


def random_mask(rng, queries, keys):
    def term():
        kind = rng.choice(["full", "causal", "window", "prefix", "documents", "file"])
        if kind == "window":
            sides = [rng.choice(["inf", str(rng.randrange(0, 9))]) for _ in range(2)]
            return "window:" + ",".join(sides)
        if kind == "prefix":
            return f"prefix:{rng.randrange(0, keys + 2)}"
        if kind == "documents" and keys > 0:
            cuts = sorted(rng.randrange(0, keys + 1) for _ in range(rng.randrange(0, 4)))
            ends = cuts + [keys]
            return "documents:" + ",".join(str(b - a) for a, b in zip([0] + cuts, ends))
        return kind if kind in ("causal", "file") else "full"
    return [term() for _ in range(rng.choice([1, 1, 2]))]


class Problem:
    """One random problem, its files in `folder` and its command line. `coarse`: of numbers that a
    wire of four bits carries as they are."""

    def __init__(self, seed, folder, coarse=False):
        rng = random.Random(seed)
        self.dtype = rng.choice(["f32", "f32", "f64", "f16", "bf16"])
        group, kv_heads = rng.choice([1, 2, 3]), rng.choice([1, 2])
        queries = rng.choice([1, 2, 3, 7, 17, 40, rng.randrange(0, 70)])
        keys = queries if rng.random() < 0.6 else rng.randrange(0, 70)
        d, c = rng.randrange(1, 10), rng.randrange(1, 10)
        self.ranks = rng.choice([1, 2, 3, 4, 5, 9])
        layout = rng.choice(["contiguous", "striped", "zigzag"])
        self.scale = rng.choice([None, 1.0, 0.125, -0.7])
        numbers = np.random.default_rng(seed)
        spread = rng.choice([0.3, 1.0, 3.0])

        def draw(*shape):
            x = (numbers.standard_normal(shape) * spread).astype(np.float32)
            if coarse:
                x = np.clip(np.round(x * 2), -15, 15) / 2
            return na.round_to(self.dtype, x)
        self.q, self.k = draw(group * kv_heads, queries, d), draw(kv_heads, keys, d)
        self.v = draw(kv_heads, keys, c)
        self.matrices = {}
        terms = random_mask(rng, queries, keys)
        for index, name in enumerate(terms):
            if name == "file":
                path = str(folder / f"mask{index}.npy")
                self.matrices[path] = numbers.random((queries, keys)) < 0.6
                np.save(path, self.matrices[path])
                terms[index] = f"file:{path}"
        self.mask = "+".join(terms)
        self.words = ["--dtype", self.dtype, "--mask", self.mask, "--ranks", self.ranks, "--layout",
                      layout, "--direction", rng.choice(["next", "previous"]),
                      "--tile-queries", rng.randrange(1, 9), "--tile-keys", rng.randrange(1, 9)]
        if self.scale is not None:
            self.words += ["--scale", self.scale]
        if rng.random() < 0.3:
            self.words += ["--transport", "simulated", "--delay-seed", rng.randrange(1000)]
        self.write(rng, folder)

    def write(self, rng, folder):
        self.output = folder / rng.choice(["out", "out.safetensors"])
        if rng.random() < 0.5:
            self.input = folder / "in"
            self.input.mkdir()
            stored = {"f64": np.float64, "f16": np.float16}.get(self.dtype, np.float32)
            for name in "qkv":
                np.save(self.input / f"{name}.npy", getattr(self, name).astype(stored))
        else:
            self.input = folder / "in.safetensors"
            tensors = {name: na.stored(self.dtype, getattr(self, name)) for name in "qkv"}
            self.input.write_bytes(safetensors(tensors))

    def results(self):
        if self.output.is_dir():
            return [np.load(self.output / f"{n}.npy").astype(np.float64) for n in ("o", "lse")]
        tensors = na.read_safetensors(self.output)
        return [tensors[name] for name in ("o", "lse")]


class StageAgreementTest(ProgramTest):
    def agrees(self, stage, seed, folder):
        problem = Problem(seed, folder, coarse=stage == "compressed_wire")
        line = ["run", stage, "--input", problem.input, "--output", problem.output, *problem.words]
        said = "ringlab " + " ".join(map(str, line)) + f" (seed {seed})"
        result = ringlab(*line)
        self.assertEqual(result.code, 0, f"{said}\n{result.err}")
        o, lse = problem.results()
        queries, keys = problem.q.shape[1], problem.k.shape[1]
        scale = 1 / np.sqrt(problem.q.shape[2]) if problem.scale is None else problem.scale
        exact = na.Exact(problem.q, problem.k, problem.v, scale,
                         na.visible(problem.mask, queries, keys, problem.matrices), problem.dtype,
                         rescales=keys + problem.ranks)
        self.assertEqual(o.shape, exact.o.shape, said)
        self.assertEqual(lse.shape, exact.lse.shape, said)
        worst = max(na.worst_ratio(o, exact.o, exact.o_bound),
                    na.worst_ratio(lse, exact.lse, exact.lse_bound))
        self.assertLessEqual(worst, 1, said)
        return worst

    def test_every_stage_agrees_with_numpy(self):
        listed = json.loads(self.succeeds("list", "--json", "-").out)["subjects"]
        self.assertGreaterEqual(len(listed), 1)
        here = [subject["name"] for subject in listed
                if "cpu" in subject["devices"] and subject["name"] != "reference"]
        for index, stage in enumerate(here):
            worst = 0.0
            for case in range(CASES_PER_STAGE):
                seed = SEED + 1000 * index + case
                folder = pathlib.Path(self.folder / f"{stage}-{case}")
                folder.mkdir()
                with self.subTest(stage=stage, seed=seed):
                    worst = max(worst, self.agrees(stage, seed, folder))
            print(f"{stage}: {CASES_PER_STAGE} problems, worst error / bound {worst:.3f}")
            self.assertGreater(worst, 1e-3, "a bound this loose shows nothing")

    def test_the_bound_notices_a_wrong_scale(self):
        folder = self.folder / "wrong"
        folder.mkdir()
        problem = Problem(SEED, folder)
        problem.dtype, problem.q = "f32", problem.q + 1
        allowed = np.ones((problem.q.shape[1], problem.k.shape[1]), dtype=bool)
        right = na.Exact(problem.q, problem.k, problem.v, 0.5, allowed, "f32", 8)
        wrong = na.Exact(problem.q, problem.k, problem.v, 0.5001, allowed, "f32", 8)
        self.assertGreater(na.worst_ratio(wrong.o, right.o, right.o_bound), 1)
        self.assertGreater(na.worst_ratio(wrong.lse, right.lse, right.lse_bound), 1)


if __name__ == "__main__":
    unittest.main()
