"""--random and --check-rows: rows that are made where they are needed, and some of them checked."""
import json
import unittest

from program import ProgramTest, ringlab

SIZES = ["--tokens", "96", "--heads", "4", "--kv-heads", "2", "--head-dim", "16"]


class RandomInputTest(ProgramTest):
    def document(self, *words):
        path = self.folder / "run.json"
        self.succeeds("run", *words, "--json", path)
        return json.loads(path.read_text())

    def test_rows_made_by_the_ranks_are_those_that_the_check_makes_again(self):
        for dtype in ("f64", "f32", "f16", "bf16"):
            for layout, ranks in (("zigzag", 4), ("striped", 5), ("contiguous", 1)):
                with self.subTest(dtype=dtype, layout=layout):
                    document = self.document(
                        "optimized", "--random", *SIZES, "--dtype", dtype, "--layout", layout,
                        "--ranks", ranks, "--mask", "causal", "--check-rows", 20)
                    self.assertTrue(document["passed"])
                    self.assertTrue(document["as_expected"])
                    rows = document["checked_rows"]
                    self.assertEqual(len(rows), 20)
                    self.assertEqual((rows[0], rows[-1]), (0, 95))
                    o, lse = document["check"]["tensors"]
                    self.assertEqual(o["compared"], 20 * 4 * 16)
                    self.assertEqual(lse["compared"], 20 * 4)

    def test_what_has_no_bound_is_not_called_right(self):
        words = ["optimized", "--random", "--tokens", 64, "--head-dim", 16, "--mask", "causal", "--wire", "fp8"]
        said = self.succeeds("run", *words, "--ranks", 4, "--scale", 1, "--check").out
        self.assertRegex(said, r"check  o    open .*, [0-9 ]+ have bounds as wide as the answer\n")
        tensors = self.document(*words, "--ranks", 4, "--scale", 1, "--check")["check"]["tensors"]
        self.assertGreater(tensors[0]["unbounded"], 1000)
        nothing = ringlab("run", *words, "--ranks", 4, "--scale", 25, "--check")
        self.assertEqual(nothing.code, 1, nothing.out + nothing.err)
        self.assertRegex(nothing.out, r"check  o    OPEN .*, 4 096 have bounds as wide as the answer\n")
        self.assertEqual({one["unbounded"] for one in self.document(*words, "--check")["check"]["tensors"]}, {0})

    def test_more_ranks_than_tokens_and_a_single_row(self):
        for tokens, ranks, rows in ((3, 7, 3), (1, 1, 1), (1, 4, 1), (9, 2, 1)):
            document = self.document("optimized", "--random", "--tokens", tokens, "--ranks", ranks,
                                     "--layout", "zigzag", "--mask", "causal", "--check-rows", rows)
            self.assertTrue(document["passed"])
            self.assertEqual(len(document["checked_rows"]), rows)

    def test_whole_tensors_have_the_same_numbers_as_rows(self):
        for words in (["--check"], ["--output", self.folder / "o.safetensors"]):
            whole = self.document("optimized", "--random", *SIZES, *words)
            self.assertIn(whole["passed"], (True, None))
        # What a stage, which is given whole tensors, computes of them is what the rows' check expects.
        self.assertTrue(self.document("ring", "--random", *SIZES, "--ranks", 3, "--check-rows",
                                      40)["passed"])

    def test_fewer_queries_are_the_last_ones_of_a_text(self):
        text = self.folder / "text"
        text.write_text("Every token but the last few is a key only.\n" * 2)
        rows = []
        for queries in (40, 5):
            out = self.folder / f"out{queries}"
            self.succeeds("run", "ring", "--text", text, "--tokens", 40, "--queries", queries,
                          "--heads", 1, "--head-dim", 4, "--output", out)
            o = (out / "o.npy").read_bytes()
            rows.append(o[10 + int.from_bytes(o[8:10], "little"):])
        self.assertEqual(rows[0][-5 * 4 * 4:], rows[1])

    def test_fewer_queries_are_made_by_the_ranks_that_hold_them(self):
        document = self.document("optimized", "--random", *SIZES, "--queries", 3, "--ranks", 4,
                                 "--check-rows", 3)
        self.assertEqual(document["configuration"]["q"], [1, 4, 3, 16])
        self.assertEqual(document["configuration"]["k"], [1, 2, 96, 16])
        self.assertTrue(document["passed"])
        self.fails(2, ["--queries", "97"], "run", "ring", "--random", *SIZES, "--queries", 97)

    def test_another_seed_makes_other_numbers(self):
        outputs = []
        for seed in (1, 2, 1):
            path = self.folder / "o.safetensors"
            self.succeeds("run", "optimized", "--random", *SIZES, "--seed", seed, "--output", path)
            outputs.append(path.read_bytes())
        self.assertEqual(outputs[0], outputs[2])
        self.assertNotEqual(outputs[0], outputs[1])

    def test_gradients_are_checked_by_their_sums(self):
        result = self.succeeds("run", "optimized", "--random", *SIZES, "--ranks", 3, "--backward",
                               "--check-rows", 7)
        self.assertIn("o and lse of 7 of 96 query rows, all 4 heads; gradients by sums over all tokens",
                      result.out)
        self.assertIn("P40  ok     sum of dv = sum of dout", result.out)
        self.assertIn("every rank are as computed", result.out)
        sums = self.document("optimized", "--random", *SIZES, "--ranks", 3, "--backward",
                             "--check-rows", 7)["identities"]
        self.assertEqual([one["law"] for one in sums], ["P40", "P42", "P43"])
        for one in sums:
            self.assertTrue(one["holds"])
            self.assertGreater(one["off_over_likely"], 0)
            self.assertIn("K/V head", one["where"])

    def test_gradients_of_other_input_are_left_out_and_the_check_says_so(self):
        text = self.file("text.txt", "It was the best of times, it was the worst of times. " * 4)
        result = self.succeeds("run", "optimized", "--text", text, "--tokens", 100, "--backward",
                               "--check-rows", 9)
        self.assertIn("; the gradients were not checked", result.out)
        self.assertNotIn("P40", result.out)

    def test_any_input_can_be_checked_by_rows(self):
        text = self.file("text.txt", "It was the best of times, it was the worst of times. " * 4)
        document = self.document("optimized", "--text", text, "--tokens", 100, "--ranks", 3,
                                 "--check-rows", 9)
        self.assertTrue(document["passed"])
        self.assertEqual(len(document["checked_rows"]), 9)

    def test_the_memory_of_the_process_is_told_beside_that_of_the_closed_forms(self):
        document = self.document("optimized", "--random", *SIZES, "--ranks", 3)
        self.assertEqual(document["expected_memory_bytes"],
                         sum(rank["memory_bytes"] for rank in document["ranks"]))
        self.assertGreater(document["peak_resident_bytes"], document["expected_memory_bytes"])

    def test_long_sequences_are_held_once_and_in_their_own_type(self):
        document = self.document("optimized", "--random", "--tokens", 262144, "--heads", 4,
                                 "--kv-heads", 4, "--head-dim", 64, "--dtype", "bf16", "--mask",
                                 "window:16,0", "--ranks", 4, "--schedule", "ring", "--slots", 1)
        # Besides: the program itself, messages under way, and what the kernels work on.
        self.assertLess(document["peak_resident_bytes"],
                        1.5 * document["expected_memory_bytes"] + 2**26)

    def test_bad_command_lines_are_refused(self):
        text = self.file("text.txt", "words")
        run = ["run", "optimized"]
        for message, words in (
                ("one source of q, k, v", ["--random", "--text", text]),
                ("one source of q, k, v", ["--random", "--input", text]),
                ("one kind of check", ["--random", "--check", "--check-rows", "3"]),
                ("at most 8", ["--random", "--tokens", "8", "--check-rows", "9"]),
                ("at most 5", ["--text", text, "--check-rows", "9"]),
                ("--check-rows", ["--random", "--check-rows", "0"]),
                ("--check-rows", ["--random", "--check-rows", "-1"]),
                ("--check-rows", ["--random", "--check-rows", "all"]),
                ("--tokens", ["--random", "--tokens", "0"]),
                ("--kv-heads", ["--random", "--heads", "4", "--kv-heads", "3"]),
                ("--random", ["--random", "--random"])):
            with self.subTest(words=words):
                self.fails(2, message, *run, *words)

    def test_what_cannot_fit_into_memory_is_refused_before_anything_is_made(self):
        for words in ([], ["--check-rows", "4"], ["--check"]):
            self.fails(4, "tensors that fit in", "run", "optimized", "--random", "--tokens",
                       2**31, "--heads", "512", *words)
        # Few bytes in very many messages, all of them under way at once.
        self.fails(4, "channels or ranks", "run", "optimized", "--random", "--tokens", 4096,
                   "--ranks", 4096, "--schedule", "allgather")


if __name__ == "__main__":
    unittest.main()
