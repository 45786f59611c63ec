"""`ringlab plan --model --phase prefill` and `decode`: bytes are those of runs, parts add up, wishes are kept."""
import json
import pathlib
import re
import shlex
import unittest

from program import ProgramTest, rendered, ringlab

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/plan.md").read_text().split("## Serving")[1]
SHAPE = ["--heads", 8, "--kv-heads", 4, "--head-dim", 8, "--dtype", "bf16"]
MODEL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 8,
         "num_key_value_heads": 4, "vocab_size": 100}
LLAMA = ["--model", "llama-3.1-8b", "--machine", "h100"]


class PlanServeTest(ProgramTest):
    def plan(self, phase, *words):
        found = self.folder / "plan.json"
        text = self.succeeds("plan", "--phase", phase, *words, "--json", found).out
        return json.loads(found.read_text()), text

    def refused(self, code, says, *words):
        """Not before what was asked is echoed."""
        result = ringlab(*words)
        self.assertEqual(result.code, code, result.err)
        self.assertIn(says, result.err)

    def small(self):
        return self.file("config.json", json.dumps(MODEL).encode())

    def sent(self, subject, tokens, queries, *words):
        """Bytes that a run sends."""
        found = self.folder / "run.json"
        self.succeeds("run", subject, "--random", *SHAPE, "--tokens", tokens, "--queries", queries, "--ranks", 4,
                      *words, "--json", found)
        return json.loads(found.read_text())["sent_bytes"]

    def test_the_page_shows_what_it_says(self):
        for block in re.split(r"^    ringlab ", PAGE, flags=re.MULTILINE)[1:]:
            command, _, rest = block.partition("\n")
            said = {" ".join(line.split()) for line in self.succeeds(*shlex.split(command)).out.splitlines()}
            shown = re.findall(r"^    (.+)$", rest, re.MULTILINE)
            self.assertGreater(len(shown), 2)
            for line in shown:
                self.assertIn(" ".join(line.split()), said)

    def test_the_page_says_how_far_it_is_from_published_prefills(self):
        for tokens, words in ((1048576, "is expected to take {:.1f} s, where"), (131072, "131 072 tokens {:.1f} s for")):
            document, _ = self.plan("prefill", "--model", "llama-3.1-405b", "--machine", "h100", "--tokens", tokens,
                                    "--devices", 128, "--context", 16, "--tensor", 8, "--memory", 200)
            self.assertIn(words.format(document["choice"]["expected_seconds"]), PAGE)

    def test_bytes_of_a_prefill_are_those_of_runs(self):
        document, text = self.plan("prefill", "--model", self.small(), "--tokens", 20, "--cached", 44, "--devices", 4,
                                   "--context", 4, "--by-heads", 1)
        choice = document["choice"]
        # Stages have no headers; a ring in which everybody needs everything, and the stage whose queries travel.
        self.assertEqual(choice["keys_bytes"], self.sent("ring", 64, 20, "--layout", "contiguous"))
        self.assertEqual(choice["queries_bytes"], self.sent("decode", 64, 20))
        self.assertIn("pass ", text)

    def test_bytes_of_a_decode_are_those_of_runs(self):
        document, _ = self.plan("decode", "--model", self.small(), "--tokens", 63, "--sequences", 1, "--devices", 4,
                                "--context", 4, "--by-heads", 1)
        self.assertEqual(document["choice"]["queries_bytes"], self.sent("decode", 64, 1))
        four, _ = self.plan("decode", "--model", self.small(), "--tokens", 63, "--sequences", 4, "--devices", 4,
                            "--context", 4, "--by-heads", 1)
        self.assertEqual(four["choice"]["queries_bytes"], 4 * self.sent("decode", 64, 1))

    def test_parts_add_up_and_the_choice_is_the_fastest_that_fits(self):
        for phase, words in (("prefill", ["--cached", 4096]), ("decode", ["--sequences", 16])):
            document, text = self.plan(phase, *LLAMA, "--tokens", 65536, "--devices", 16, *words)
            self.assertGreater(len(document["ways"]), 8)
            for way in document["ways"]:
                self.assertEqual(way["context"] * way["tensor"] * way["stages"], 16)
                self.assertAlmostEqual(sum(way["memory"].values()) / way["memory_bytes"], 1)
                self.assertAlmostEqual(sum(way["time"].values()) / way["seconds"], 1)
                tokens = 16 if phase == "decode" else 65536
                self.assertAlmostEqual(way["tokens_per_second"] * way["seconds"] / tokens, 1)
            choice = document["choice"]
            fits = [way["seconds"] for way in document["ways"] if way["memory_bytes"] <= 80e9]
            self.assertLessEqual(choice["seconds"], 1.01 * min(fits))
            self.assertGreaterEqual(choice["expected_seconds"], choice["seconds"])
            for reason in choice["reasons"]:
                self.assertIn(reason["sentence"], text)

    def test_a_ring_of_keys_is_that_of_simulate(self):
        document, _ = self.plan("prefill", *LLAMA, "--tokens", 131072, "--devices", 8, "--context", 8, "--pass", "keys")
        simulated = self.folder / "simulated.json"
        self.succeeds("simulate", "--tokens", 131072, "--heads", 32, "--kv-heads", 8, "--ranks", 8, "--machine", "h100",
                      "--json", simulated)
        self.assertAlmostEqual(document["choice"]["time"]["attention"] /
                               (32 * json.loads(simulated.read_text())["seconds"]), 1)

    def test_a_long_cache_and_few_tokens_pass_queries(self):
        slow = ["--bandwidth", 25, "--devices", 8, "--context", 8, "--by-heads", 1]
        few, text = self.plan("prefill", *LLAMA, "--tokens", 512, "--cached", 1000000, *slow)
        self.assertEqual(few["choice"]["pass"], "queries")
        self.assertLess(512, few["choice"]["queries_pay_below_tokens"])
        self.assertIn("keys and values", text)
        self.assertEqual(self.plan("prefill", *LLAMA, "--tokens", 131072, *slow)[0]["choice"]["pass"], "keys")
        other = self.plan("prefill", *LLAMA, "--tokens", 512, "--cached", 1000000, *slow, "--pass", "keys")[0]
        self.assertEqual(other["choice"]["pass"], "keys")
        self.assertGreater(other["choice"]["seconds"], few["choice"]["seconds"])

    def test_the_next_token_of_a_prefill_is_that_of_a_decode(self):
        prefill = self.plan("prefill", *LLAMA, "--tokens", 65536, "--devices", 8)[0]["choice"]
        same = ["--context", prefill["context"], "--tensor", prefill["tensor"], "--stages", prefill["stages"]]
        decode = self.plan("decode", *LLAMA, "--tokens", 65536, "--devices", 8, *same)[0]["choice"]
        self.assertAlmostEqual(prefill["next_token_seconds"] / decode["seconds"], 1)

    def test_the_longest_context_fits_and_more_does_not(self):
        document, text = self.plan("decode", *LLAMA, "--tokens", 8192, "--sequences", 8, "--devices", 8)
        longest = document["choice"]["longest_context"]
        self.assertIn("of each sequence fit", text)
        asked = ["plan", "--phase", "decode", *LLAMA, "--sequences", 8, "--devices", 8, "--tokens"]
        self.succeeds(*asked, longest - 1)
        self.refused(4, "Ask for more --devices", *asked, longest * 9 // 8)

    def test_heads_that_are_dealt_shorten_rings(self):
        long = ["--tokens", 1048576, "--devices", 512, "--context", 512]
        best = self.plan("prefill", *LLAMA, *long)[0]["choice"]
        self.assertEqual(best["by_heads"], 8)
        ring, text = self.plan("prefill", *LLAMA, *long, "--by-heads", 1)
        self.assertGreater(ring["choice"]["seconds"], 2 * best["seconds"])
        self.assertEqual({way["by_heads"] for way in ring["ways"]}, {1})
        for phase in ("prefill", "decode"):
            document, text = self.plan(phase, *LLAMA, "--tokens", 65536, "--devices", 8, "--context", 8, "--by-heads", 4)
            self.assertIn("--context 8 --by-heads 4", text)
            self.assertGreater(document["choice"]["time"]["head exchange"], 0)

    def test_slow_links_change_the_choice(self):
        words = [*LLAMA, "--tokens", 4096, "--cached", 1048576, "--devices", 16, "--context", 16, "--by-heads", 1]
        what = self.plan("prefill", *words)[0]["choice"]["what_if"][0]
        slow = self.plan("prefill", *words, "--bandwidth", 225, "--node-bandwidth", 25)[0]
        self.assertAlmostEqual(slow["choice"]["seconds"] / what["best"]["seconds"], 1)

    def test_pages_of_pictures(self):
        page = self.folder / "plan.html"
        for phase, words, pictures, says in (
                ("prefill", ["--tokens", 4096, "--cached", 1048576, "--context", 16, "--by-heads", 1], 7,
                 ("A prompt of llama-3.1-8b on 16 h100", "16 384 tokens", "8 of 16 ranks", "keys and values go round")),
                ("decode", ["--tokens", 65536, "--sequences", 8], 6,
                 ("A token of llama-3.1-8b on 16 h100", "32 sequences: ", "262 148 keys", "64 devices"))):
            self.succeeds("plan", "--phase", phase, *LLAMA, *words, "--devices", 16, "--html", page)
            html = rendered(page)
            self.assertEqual(html.count("<svg"), pictures)
            for word in (*says, "links 0.125 times as fast", "74.5 GiB of a device"):
                self.assertIn(word, html)
            self.assertNotRegex(html, r'(src|href)="https?:')

    def test_what_has_no_effect_is_refused(self):
        for option, words in (("--cached", ["--cached", 5]), ("--pass", ["--pass", "keys"]),
                              ("--phase", ["--phase", "prefill"])):
            self.fails(2, option, "plan", "--tokens", 64, *words)
        for option, phase, words in (("--sequences", "prefill", ["--sequences", 2]), ("--cached", "decode", ["--cached", 2]),
                                     ("--pass", "decode", ["--pass", "keys"]), ("--keep", "decode", ["--keep", "inputs"]),
                                     ("--replicas", "prefill", ["--replicas", 2]), ("--cached", "train", ["--cached", 2])):
            self.fails(2, option, "plan", "--model", "gpt2", "--phase", phase, *words)

    def test_what_cannot_be_is_refused(self):
        gpt2 = ["plan", "--model", "gpt2", "--phase"]
        self.fails(2, "prefill", *gpt2, "serve")
        self.fails(2, "keys", *gpt2, "prefill", "--pass", "values")
        self.fails(2, "2 to", *gpt2, "prefill", "--tokens", 1)
        self.fails(2, "1 to 131072", *gpt2, "prefill", "--devices", 262144)
        self.refused(2, "product is 8", *gpt2, "decode", "--context", 3)
        self.refused(4, "Ask for more --devices", "plan", "--model", "llama-3.1-405b", "--phase", "decode", "--devices", 2,
                     "--machine", "h100")


if __name__ == "__main__":
    unittest.main()
