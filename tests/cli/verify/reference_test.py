"""`ringlab run reference`, certified and exact, against the golden vectors."""
import json
import pathlib
import struct
import unittest

from program import ProgramTest

GOLDEN = pathlib.Path(__file__).parents[2] / "reference" / "precise" / "golden"
CASES = {"full": ["--mask", "full"], "causal": ["--mask", "causal"],
         "window": ["--mask", "window:2,1"], "documents": ["--mask", "documents:2,0,4"],
         "prefix": ["--mask", "prefix:3"], "causal_window": ["--mask", "causal+window:1,0"],
         "alibi_sinks_dropout": ["--mask", "causal", "--alibi", "0.5,0.0625", "--sinks", "0.25,-1",
                                 "--dropout", "0.25", "--dropout-seed", "7"]}


def payloads(path):
    """The bytes of every tensor in a .safetensors file."""
    content = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    return {name: content[start + at["data_offsets"][0]:start + at["data_offsets"][1]]
            for name, at in header.items() if name != "__metadata__"}


class Reference(ProgramTest):
    def run_on(self, dtype, *words):
        out, said = self.folder / "out.safetensors", self.folder / "said.json"
        self.succeeds("run", "reference", "--input", GOLDEN / f"{dtype}.safetensors", "--scale",
                      "0.75", "--backward", "--output", out, "--json", said, *words)
        return payloads(out), json.loads(said.read_text())

    def test_exact_results_are_the_golden_vectors_bit_for_bit(self):
        for dtype in ("f64", "f32", "f16", "bf16"):
            golden = payloads(GOLDEN / f"{dtype}.safetensors")
            for case, words in CASES.items():
                with self.subTest(dtype=dtype, case=case):
                    got, said = self.run_on(dtype, "--exact", *words)
                    for name in ("o", "lse", "dq", "dk", "dv"):
                        self.assertEqual(got[name], golden[f"{case}/{name}"], name)
                    self.assertEqual(said["exact"]["elements"], 30)
                    self.assertEqual(said["exact"]["gradients_undecided"], 0)

    def test_the_certified_reference_is_within_its_error_of_them(self):
        golden = payloads(GOLDEN / "f64.safetensors")
        got, said = self.run_on("f64", "--mask", "causal")
        for name in ("o", "lse", "dq", "dk", "dv"):
            count = len(got[name]) // 8
            allowed = said["certified"][f"{name}_error"]
            self.assertLess(allowed, 1e-13)
            pairs = zip(struct.unpack(f"<{count}d", got[name]),
                        struct.unpack(f"<{count}d", golden[f"causal/{name}"]))
            for a, b in pairs:
                self.assertLessEqual(abs(a - b), allowed + abs(b) * 2**-53, name)

    def test_it_is_a_subject_like_the_others(self):
        given = ["--input", GOLDEN / "f32.safetensors"]
        text = self.succeeds("run", "reference", *given, "--check").out
        self.assertIn("check  lse  ok", text)
        self.assertNotIn("K/V held", text)  # nobody holds parts
        text = self.succeeds("verify", "reference", "--quick", "--cases", "2").out
        self.assertIn("1 of 1 subjects pass", text)
        self.assertRegex(self.succeeds("list").out, r"(?m)^reference +the exact reference")

    def test_what_it_cannot_do_is_refused(self):
        given = ["--input", GOLDEN / "f32.safetensors"]
        self.fails(2, "soft-capping", "run", "reference", *given, "--softcap", "5", "--exact")
        self.fails(2, "--ranks", "run", "reference", *given, "--ranks", "2")
        self.fails(2, "--exact", "run", "reference", *given, "--exact", "--check")
        self.fails(2, "--exact", "run", "optimized", *given, "--exact")


if __name__ == "__main__":
    unittest.main()
