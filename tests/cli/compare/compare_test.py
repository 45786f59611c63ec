"""`ringlab compare`: every way is run, counted and judged."""
import json
import struct
import unittest

from program import ProgramTest, safetensors

SMALL = ["--tokens", 240, "--heads", 6, "--kv-heads", 3, "--head-dim", 8]


class CompareTest(ProgramTest):
    def compare(self, *words):
        found = self.folder / "ways.json"
        text = self.succeeds("compare", *words, "--json", found).out
        document = json.loads(found.read_text())
        return {way["way"]: way for way in document["ways"]}, text

    def test_exact_ways_are_right_and_send_what_their_closed_forms_say(self):
        for words in ([], ["--ranks", 1], ["--ranks", 5, "--mask", "full"],
                      ["--ranks", 3, "--mask", "window:20,5", "--dtype", "bf16"],
                      ["--random", "--ranks", 4, "--queries", 1, "--mask", "full"]):
            with self.subTest(words):
                ways, text = self.compare(*SMALL, *words)
                for way in ways.values():
                    self.assertEqual(way["sent_bytes"], way["stated_sent_bytes"], way)
                    if way["exact"]:
                        self.assertTrue(way["passed"], way)
                self.assertIn("closed forms  bytes sent are as computed in every row", text)

    def test_the_help_names_what_is_taken(self):
        path = self.folder / "compare.json"
        self.succeeds("compare", "--tokens", 32, "--json", path)
        configuration = json.loads(path.read_text())["configuration"]
        text = " ".join(self.succeeds("compare", "--help").out.split())
        self.assertIn(f"query heads to make ({configuration['q'][1]})", text)
        self.assertIn(f"for their intersection ({configuration['mask']})", text)

    def test_all_exact_ways_compute_the_same_pairs(self):
        ways, _ = self.compare(*SMALL)
        pairs = 6 * 240 * 241 // 2
        self.assertEqual({way["pairs"] for way in ways.values() if way["exact"]}, {pairs})
        self.assertEqual(ways["blocks of 30 alone"]["pairs"], 6 * 8 * 30 * 31 // 2)

    def test_idle_shares_are_those_of_the_layouts(self):
        ways, _ = self.compare(*SMALL, "--ranks", 4)
        chunk = 60  # the last rank sees all keys, and its own up to the diagonal
        most = 3 * chunk * chunk + chunk * (chunk + 1) // 2
        self.assertAlmostEqual(ways["ring, contiguous"]["idle"], 1 - 240 * 241 / 2 / (4 * most))
        self.assertEqual(ways["ring, zigzag"]["idle"], 0)
        self.assertEqual(ways["all-to-all over heads"]["idle"], 0.25)  # 3 heads on 4 ranks

    def test_approximations_are_told_by_how_much_they_are_off(self):
        ways, text = self.compare(*SMALL)
        for name in ("window of 30", "blocks of 30 alone"):
            self.assertFalse(ways[name]["exact"])
            self.assertGreater(ways[name]["worst_error"], ways[name]["allowed_there"])
            self.assertGreater(ways[name]["wrong_numbers"], 0)
        self.assertRegex(text, r"blocks of 30 alone .* off by \S+, \S+ % of numbers")
        narrow = ways["ring, zigzag, fp8 wire"]
        self.assertLess(narrow["sent_bytes"], ways["ring, zigzag"]["sent_bytes"] / 2)
        self.assertGreater(narrow["worst_error"], ways["ring, zigzag"]["worst_error"])

    def test_means_are_sent_once_to_every_rank_that_sees_them(self):
        for mask, seen in (("causal", 3 + 2 + 1), ("full", 4 * 3)):
            ways, _ = self.compare(*SMALL, "--ranks", 4, "--mask", mask)
            means = ways["means of 16 beyond a chunk"]
            groups, chunk = 4, 60  # the last group has 12 tokens
            self.assertFalse(means["exact"])
            self.assertEqual(means["sent_bytes"], seen * groups * 3 * (8 + 8) * 4)
            own = chunk * (chunk + 1) // 2 if mask == "causal" else chunk * chunk
            self.assertEqual(means["pairs"], 6 * (4 * own + seen * groups * chunk))
            self.assertGreater(means["wrong_numbers"], 0)
        self.assertNotIn("means of 16 beyond a chunk", self.compare(*SMALL, "--ranks", 1)[0])
        self.assertNotIn("means of 16 beyond a chunk", self.compare(*SMALL, "--mask", "window:9,0")[0])

    def test_means_of_tokens_that_are_alike_are_exact(self):
        heads, channels, group = 2, 8, 16

        def alike(tokens):
            def rows(seed, same):
                return struct.pack(f"<{tokens * heads * channels}f", *(
                    ((token // same * 7919 + head * 31 + c * 104729 + seed) % 1000 - 500) / 250
                    for head in range(heads) for token in range(tokens) for c in range(channels)))
            return self.file("alike.safetensors", safetensors({
                name: ("F32", (1, heads, tokens, channels), rows(seed, same))
                for name, seed, same in (("q", 1, 1), ("k", 2, group), ("v", 3, group))}))
        # The last group of a causal chunk may be half of one; others would lie across two chunks.
        for mask, tokens in (("causal", 176), ("full", 192)):
            ways, _ = self.compare("--input", alike(tokens), "--ranks", 2, "--mask", mask)
            means = ways["means of 16 beyond a chunk"]
            self.assertTrue(means["passed"], (mask, means))
            self.assertLess(means["sent_bytes"], ways["ring, contiguous"]["sent_bytes"] / 10)

    def test_a_window_that_sees_all_is_no_approximation(self):
        ways, text = self.compare(*SMALL, "--mask", "window:10,0")
        self.assertTrue(ways["window of 30"]["passed"])
        self.assertNotRegex(text, r"window of 30 .* off by")

    def test_bad_words_are_usage_errors(self):
        self.fails(2, ["--ranks", "0"], "compare", "--ranks", 0)
        self.fails(2, ["from 1 to 64"], "compare", "--ranks", 65)
        self.assertIn("1 … 64 (4)", self.succeeds("compare", "--help").out)
        self.fails(2, ["h300"], "compare", "--machine", "h300")
        self.fails(2, ["softcap"], "compare", "--softcap", 3)


if __name__ == "__main__":
    unittest.main()
