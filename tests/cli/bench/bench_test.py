"""`ringlab bench`: its lines, its sizes, and what it refuses. Never how fast anything is."""
import json
import os
import pathlib
import unittest

from program import ProgramTest, rendered, ringlab

PLUGINS = pathlib.Path(os.environ.get("RINGLAB_TEST_PLUGINS", "build/plugins"))
TITLES = ["subject", "tokens", "heads", "head_dim", "ranks", "time", "p10", "Gflop/s", "moved",
          "GB/s", "K/V held", "/ first", "error/bound"]
SMALL = ["--heads", 1, "--head-dim", 8, "--rounds", 2]


class BenchTest(ProgramTest):
    def bench(self, *words):
        """What it prints below its configuration, and its document."""
        path = self.folder / "bench.json"
        out = self.succeeds("bench", *words, "--json", path).out
        return out.split("\n\n")[-1].splitlines(), json.loads(path.read_text())

    def test_every_size_has_a_line_for_every_subject(self):
        lines, document = self.bench("broadcast", "ring", "optimized", "--tokens", "16:70:x2,48",
                                     "--ranks", "2,4", *SMALL)
        self.assertEqual(lines[0].split(), " ".join(TITLES).split())
        self.assertTrue(all(line.endswith("  ok") for line in lines[1:]), lines)
        self.assertEqual(len({line.index("  ok") for line in lines[1:]}), 1, "aligned")
        sizes = [(ranks, tokens, subject) for ranks in (2, 4) for tokens in (16, 32, 64, 48)
                 for subject in ("broadcast", "ring", "optimized")]
        self.assertEqual([(int(words[4]), int(words[1]), words[0]) for words in map(str.split, lines[1:])],
                         sizes)
        found = document["lines"]
        self.assertEqual([(one["ranks"], one["tokens"], one["subject"]) for one in found], sizes)
        self.assertIs(document["complete"], True)
        self.assertEqual(document["configuration"]["subjects"], ["broadcast", "ring", "optimized"])
        for one in found:
            self.assertIs(one["right"], True)
            self.assertLessEqual(one["worst_ratio"], 1)
            self.assertGreater(one["flops_per_s"], 0)
            self.assertLessEqual(one["seconds"]["p10"], one["seconds"]["median"])
            everything = 2 * one["tokens"] * 8 * 4  # K and V of one head of 8 channels, 4 bytes
            if one["subject"] == "broadcast":
                self.assertEqual(one["ratio"], {"median": 1, "p10": 1, "p90": 1})
                self.assertEqual(one["peak_kv_bytes"], everything)
            if one["subject"] == "ring":
                self.assertEqual(one["peak_kv_bytes"], 2 * everything // one["ranks"])
                self.assertEqual(one["sent_bytes"], (one["ranks"] - 1) * everything)
                self.assertGreater(one["sent_bytes_per_s"], 0)

    def test_a_page_shows_the_lines(self):
        page = self.folder / "bench.html"
        self.succeeds("bench", "ring", "broadcast", "--tokens", "64,96", "--rounds", 2, "--html", page)
        shown = rendered(page)
        for words in ("ring, 64 tokens", "broadcast, 96 tokens", "Every answer that was checked is right"):
            self.assertIn(words, shown)

    def test_without_words_the_engine_is_measured(self):
        lines, document = self.bench("--rounds", 1)
        self.assertEqual([line.split()[:2] for line in lines[1:]],
                         [["optimized", str(tokens)] for tokens in (1024, 2048, 4096, 8192)])
        self.assertEqual(document["configuration"]["mask"], "causal")
        self.assertEqual(document["configuration"]["layout"], "zigzag")
        self.assertIn("processor", document["machine"])

    def test_options_of_a_run_have_their_effect(self):
        words = ["slotted_ring", "--tokens", 60, "--ranks", 5, *SMALL, "--mask", "full"]
        held = [self.bench(*words, "--slots", slots)[1]["lines"][0]["peak_kv_bytes"] for slots in (1, 3)]
        self.assertEqual(held[1], 2 * held[0])
        _, document = self.bench("optimized", "--tokens", 64, *SMALL, "--schedule", "bidirectional",
                                 "--dtype", "bf16", "--wire", "fp8", "--queries", 7)
        self.assertEqual(document["configuration"]["schedule"], "bidirectional")
        self.assertEqual((document["lines"][0]["queries"], document["lines"][0]["tokens"]), (7, 64))
        both = [self.bench("optimized", "--tokens", 64, *SMALL, *backward)[1]["lines"][0]["sent_bytes"]
                for backward in ([], ["--backward"])]
        self.assertGreater(both[1], 2 * both[0])

    def test_a_wrong_subject_is_told_and_fails(self):
        wrong = PLUGINS / "libbroken_plugin.so"
        result = self.fails_with_lines(wrong, "optimized", "--tokens", "32,100", "--ranks", 1, *SMALL)
        lines = result.out.split("\n\n")[-1].splitlines()[1:]
        self.assertEqual([line.split()[-1] for line in lines], ["WRONG", "ok"] * 2)

    def fails_with_lines(self, *words):
        result = ringlab("bench", *words)
        self.assertEqual(result.code, 1, result.out + result.err)
        return result

    def test_what_is_no_size_is_refused(self):
        for wrong in ("x", "1:2", "4:2:x2", "1:4:x1", "1:99999999999999:x2", "1:4:*2", "0", "1,,2", "-3"):
            for name in ("--tokens", "--ranks"):
                self.fails(2, name, "bench", f"{name}={wrong}")
        self.fails(2, "at most 1000", "bench", "--tokens", "1:5000:+1")
        self.fails(2, "--rounds", "bench", "--rounds", "0")

    def test_what_has_no_effect_is_refused_before_anything_is_measured(self):
        self.fails(2, "--slots", "bench", "broadcast", "--slots", "2")
        self.fails(2, "--backward", "bench", "optimized", "ring", "--backward")
        self.fails(2, "--kv-heads", "bench", "--heads", "4,6", "--kv-heads", "4")
        self.fails(2, "--ranks", "bench", "reference", "--ranks", "1,2")
        self.fails(4, "memory", "bench", "--tokens", "64,1073741824")


if __name__ == "__main__":
    unittest.main()
