"""The node tests of ONNX's Attention operator, from its package; skipped where there is none."""
import os
import sys
import unittest
import warnings

try:
    os.environ.setdefault("ONNX_ML", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other operators' cases are made, too
        import ml_dtypes
        from onnx.backend.test.case.node import collect_testcases
        CASES = [case for case in collect_testcases("Attention") if not case.name.endswith("_expanded")]
except ImportError as error:
    print(f"tests/python: Skipped\nonnx cannot be imported: {error}")
    sys.exit(77)

import numpy as np

import ringlab

INPUTS = ("q", "k", "v", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")


class Node:
    """A case of the operator in ringlab's terms: q, k, v with four axes, `visible` with one axis each of
    batch, heads, queries and keys, y as ONNX gives it. `unsaid` is the reason for which it has none."""

    def __init__(self, case):
        node, = case.model.graph.node
        (inputs, outputs), = case.data_sets
        present = iter(inputs)
        given = {name: next(present) for name, wanted in zip(INPUTS, node.input) if wanted}
        self.set = {one.name: one.f if one.type == 1 else one.i for one in node.attribute}
        self.q, self.k, self.v = (self.with_heads(given[name], heads) for name, heads in
                                  (("q", "q_num_heads"), ("k", "kv_num_heads"), ("v", "kv_num_heads")))
        past = 0
        if "past_key" in given:
            past = given["past_key"].shape[2]
            self.k = np.concatenate([given["past_key"], self.k], axis=2)
            self.v = np.concatenate([given["past_value"], self.v], axis=2)
        self.y = self.with_heads(outputs[0], "q_num_heads")
        self.scale, self.softcap = self.set.get("scale"), self.set.get("softcap") or None
        lengths = given.get("nonpad_kv_seqlen")
        self.visible = self.seen_by_position(past, lengths)
        self.unsaid = self.take_mask(given.get("attn_mask"))

    def with_heads(self, x, heads):
        """(batch, tokens, heads · width) as (batch, heads, tokens, width)."""
        if x.ndim == 4:
            return x
        return x.reshape(*x.shape[:2], self.set[heads], -1).swapaxes(1, 2)

    def seen_by_position(self, past, lengths):
        """(batch, heads, queries, keys): is_causal, windows, and keys behind a batch entry's length."""
        batch, heads, queries = self.q.shape[:3]
        keys = np.arange(self.k.shape[2])
        visible = np.ones((batch, heads, queries, keys.size), bool)
        for entry in range(batch):
            first = past if lengths is None else lengths[entry] - queries
            behind = (first + np.arange(queries))[:, None] - keys
            if lengths is not None:
                visible[entry] &= keys < lengths[entry]
            if self.set.get("is_causal"):
                visible[entry] &= behind >= 0
            left, right = (self.set.get(side + "_window_size", -1) for side in ("left", "right"))
            if left >= 0:
                visible[entry] &= behind <= left
            if right >= 0:
                visible[entry] &= -behind <= right
        return visible

    def take_mask(self, mask):
        """Keys behind a mask's last column are hidden."""
        if mask is None:
            return ""
        if mask.dtype != bool:
            mask = mask.astype(np.float64)
            if not np.isin(mask, (0, -np.inf)).all():
                return "a bias"
            mask = mask == 0
        columns = mask.shape[-1]
        if columns > 1:
            self.visible[..., columns:] = False
            self.visible[..., :columns] &= mask
        else:
            self.visible &= mask
        return ""

    def attention(self, v=None, **wishes):
        return ringlab.attention(self.q, self.k, self.v if v is None else v, mask=self.visible,
                                 scale=self.scale, softcap=self.softcap, **wishes)

    def allowed(self):
        """The error of attention that is written down step by step in the dtype of q: sums of products
        in any order, exp and the cap within 2 ulp, the difference to the maximum."""
        u = float(ml_dtypes.finfo(self.q.dtype).eps) / 2
        q, k, v = (np.abs(np.nan_to_num(x.astype(np.float64))) for x in (self.q, self.k, self.v))
        k = np.repeat(k, q.shape[1] // k.shape[1], axis=1)
        scale = self.scale or q.shape[3] ** -0.5
        largest = np.where(self.visible, scale * (q @ k.swapaxes(2, 3)), 0).max(axis=3, keepdims=True)
        relative = np.expm1(4 * (q.shape[3] + 8) * u * largest) + (2 * k.shape[2] + 8) * u
        mean = self.attention(v.astype(self.v.dtype), with_error=True).o
        return relative * mean + float(ml_dtypes.finfo(self.q.dtype).tiny)


class Nodes(unittest.TestCase):
    def test_agree_with_the_reference_and_the_engine_on_two_ranks(self):
        unsaid = []
        for case in CASES:
            node = Node(case)
            if node.unsaid:
                unsaid.append(case.name)
                continue
            with self.subTest(case=case.name):
                exact = node.attention(with_error=True)
                allowed = node.allowed() + exact.o_error
                for o in (node.y, node.attention(subject="optimized", ranks=2)):
                    self.assertTrue((np.abs(o.astype(np.float64) - exact.o) <= allowed).all())
        print(f"{len(CASES) - len(unsaid)} of {len(CASES)} cases agree; {len(unsaid)} add a bias", file=sys.stderr)
        self.assertGreaterEqual(len(CASES) - len(unsaid), 54)


if __name__ == "__main__":
    unittest.main()
