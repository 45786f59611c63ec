"""`ringlab plan --model`: its figures add up, are those of `simulate`, and its choice keeps what was asked."""
import json
import pathlib
import re
import shlex
import time
import unittest

from program import ProgramTest, rendered, ringlab

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/plan.md").read_text().split("## Serving")[0]
MODEL = {"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
         "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 100, "unknown": {"a": [1, None]}}


class PlanModelTest(ProgramTest):
    def plan(self, *words):
        found = self.folder / "plan.json"
        text = self.succeeds("plan", *words, "--json", found).out
        return json.loads(found.read_text()), text

    def config(self, **changes):
        return self.file("config.json", json.dumps(MODEL | changes).encode())

    def test_the_page_shows_what_it_says(self):
        command = re.search(r"^    ringlab (plan .*h100)$", PAGE, re.MULTILINE)[1]
        said = {" ".join(line.split()) for line in self.succeeds(*shlex.split(command)).out.splitlines()}
        shown = [line for line in re.findall(r"^    (.+)$", PAGE, re.MULTILINE)
                 if not line.startswith("ringlab ")]
        self.assertGreater(len(shown), 15)
        for line in shown:
            self.assertIn(" ".join(line.split()), said)

    def test_parts_add_up(self):
        document, _ = self.plan("--model", "llama-3.1-8b", "--tokens", 65536, "--devices", 16)
        self.assertGreater(len(document["ways"]), 50)
        for way in document["ways"]:
            self.assertEqual(way["context"] * way["tensor"] * way["stages"] * way["replicas"], 16)
            self.assertAlmostEqual(sum(way["memory"].values()) / way["memory_bytes"], 1)
            self.assertAlmostEqual(sum(way["time"].values()) / way["seconds"], 1)
            self.assertLess(way["utilisation"], 1)

    def test_the_choice_is_the_fastest_that_fits(self):
        document, text = self.plan("--model", "llama-3.1-8b", "--tokens", 65536, "--devices", 16,
                                   "--memory", 40)
        fits = [way for way in document["ways"] if way["memory_bytes"] <= 40e9]
        self.assertLess(len(fits), len(document["ways"]))
        choice = document["choice"]
        self.assertLessEqual(choice["memory_bytes"], 40e9)
        self.assertLessEqual(choice["seconds"], 1.01 * min(way["seconds"] for way in fits))
        self.assertGreater(choice["expected_seconds"], choice["seconds"])
        for reason in choice["reasons"]:
            self.assertIn(reason["sentence"], text)

    def test_the_ring_is_that_of_simulate(self):
        simulated = self.folder / "simulated.json"
        # 64 ranks: the plan asks a ring of few, with chunks as long, for its memory.
        for context, tensor in ((4, 1), (8, 2), (64, 1)):
            document, _ = self.plan("--model", "llama-3.1-8b", "--tokens", 131072, "--sequences", 1, "--machine",
                                    "h100", "--devices", context * tensor, "--context", context, "--tensor",
                                    tensor, "--keep", "everything", "--memory", 1000, "--by-heads", 1)
            way = next(way for way in document["ways"] if way["schedule"] == "ring")
            self.succeeds("simulate", "--tokens", 131072, "--heads", 32 // tensor, "--kv-heads", 8 // tensor,
                          "--ranks", context, "--node-ranks", 8 // tensor, "--layout", "zigzag", "--backward",
                          "--machine", "h100", "--json", simulated)
            due = json.loads(simulated.read_text())
            self.assertAlmostEqual(way["memory"]["ring at work"] / due["memory_bytes"], 1, delta=0.02)
            self.assertAlmostEqual(way["time"]["attention"] / (32 * due["seconds"]), 1, delta=0.02)

    def test_heads_are_dealt_where_hops_do_not_hide(self):
        asked = [*shlex.split(re.search(r"^    ringlab (plan .*--context 32)$", PAGE, re.MULTILINE)[1])[1:]]
        document, text = self.plan(*asked)
        choice = document["choice"]
        self.assertEqual(choice["by_heads"], 8)
        said = re.search(r"`--context 32 --by-heads 8` takes ([\d.]+) s, a ring of 32 ([\d.]+) times as long", PAGE)
        self.assertEqual(f"{choice['seconds']:.1f}", said[1])
        ring = self.plan(*asked, "--by-heads", 1)[0]["choice"]
        self.assertEqual(f"{ring['seconds'] / choice['seconds']:.3g}", said[2])
        self.assertEqual(ring["time"]["head exchange"], 0)
        self.assertIn(f"1 takes {said[2]} times as long", text)
        self.assertIn("--by-heads 8", text)

    def test_slow_links_change_the_choice(self):
        document, text = self.plan("--model", "llama-3.1-70b", "--tokens", 131072, "--devices", 128, "--machine", "h100")
        what = document["choice"]["what_if"][0]
        self.assertFalse(what["same_choice"])
        self.assertGreater(what["seconds"], document["choice"]["seconds"])
        halves = ["--bandwidth", 225, "--node-bandwidth", 25]
        slow = self.plan("--model", "llama-3.1-70b", "--tokens", 131072, "--devices", 128, "--machine", "h100", *halves)[0]
        self.assertAlmostEqual(slow["choice"]["seconds"] / what["best"]["seconds"], 1)
        self.assertIn(f"then with --context {what['best']['context']} ", text)

    def test_the_page_of_pictures(self):
        page = self.folder / "plan.html"
        self.succeeds("plan", "--model", "llama-3.1-8b", "--tokens", 1048576, "--devices", 64, "--machine", "h100",
                      "--html", page)
        html = rendered(page)
        self.assertEqual(html.count("<svg"), 6)
        for words in ("A step of llama-3.1-8b on 64 h100", "74.5 GiB of a device", "4 194 304 tokens", "256 devices",
                      "links 0.125 times as fast", "8 of 16 ranks", "context 16 · tensor 1"):
            self.assertIn(words, html)
        self.assertNotRegex(html, r'(src|href)="https?:')

    def test_a_configuration_of_ones_own(self):
        document, text = self.plan("--model", self.config(), "--tokens", 512, "--devices", 2)
        matrices = 64 * 8 * 12 * 2 + 3 * 64 * 128
        self.assertEqual(document["configuration"]["parameters"],
                         4 * (matrices + 2 * 64) + 2 * 100 * 64 + 64)
        self.assertIn("4 layers of 64 channels", text)

    def test_a_window_is_seen(self):
        wide = self.plan("--model", self.config(), "--tokens", 65536, "--devices", 4)[0]
        narrow = self.plan("--model", self.config(sliding_window=128), "--tokens", 65536, "--devices", 4)[0]
        self.assertLess(narrow["choice"]["time"]["attention"], wide["choice"]["time"]["attention"] / 10)

    def test_windows_are_in_the_layers_that_have_them(self):
        for changes, windowed in (
                ({}, 12), ({"sliding_window_pattern": 6}, 10), ({"sliding_window_pattern": 5}, 10), ({"model_type": "gemma2"}, 6),
                ({"model_type": "gemma3_text"}, 10), ({"model_type": "cohere2"}, 9),
                ({"model_type": "gemma3_text", "sliding_window_pattern": 4}, 9), ({"use_sliding_window": False}, 0),
                ({"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 8}, 4),
                ({"model_type": "mistral", "max_window_layers": 8}, 12),
                ({"layer_types": ["sliding_attention", "full_attention"] * 6, "sliding_window_pattern": 3}, 6)):
            config = self.config(num_hidden_layers=12, sliding_window=128, **changes)
            text = self.plan("--model", config, "--tokens", 512, "--devices", 2)[1]
            self.assertEqual(f"a window of 128 in {windowed} layers" in text, windowed > 0, (changes, text))
            self.assertEqual("a window of" in text, windowed > 0, (changes, text))

    def test_heads_of_keys_have_several_names(self):
        for changes, heads in (({}, 8), ({"multi_query": True}, 1), ({"multi_query": True, "num_kv_heads": 4}, 4)):
            text = self.plan("--model", self.config(num_key_value_heads=None, **changes), "--tokens", 512, "--devices", 2)[1]
            self.assertRegex(text, rf"\({heads} of keys\)", changes)

    def test_what_cannot_be_is_refused(self):
        for changes, says in (({"hidden_size": None}, "hidden_size"), ({"num_hidden_layers": 0}, "1 to 1024"),
                              ({"num_key_value_heads": 3}, "a divisor of 8"), ({"kv_lora_rank": 512}, "not modelled"),
                              ({"attn_layer_period": 8}, "not modelled"), ({"attention_chunk_size": 8192}, "not modelled"),
                              ({"layer_types": ["linear_attention"] * 4}, "another kind"), ({"layer_types": []}, "for each layer"),
                              ({"vocab_size": "many"}, '"many"'), ({"hidden_size": 1e30}, "1 to 262144")):
            self.fails(3, says, "plan", "--model", self.config(**changes), "--tokens", 64)
        self.fails(3, "configuration", "plan", "--model", self.file("broken.json", b"{"))
        self.fails(2, "llama-3.1-8b", "plan", "--model", "lama")

    def test_splits_that_are_none_are_refused(self):
        gpt2 = ("plan", "--model", "gpt2", "--machine", "h100")
        for code, says, words in ((2, "product is 8", [*gpt2, "--context", 3]), (2, "--heads", [*gpt2, "--heads", 3]),
                                  (4, "Ask for more --devices", ["plan", "--model", "llama-3.1-405b", "--devices", 2])):
            result = ringlab(*words)
            self.assertEqual(result.code, code, result.err)
            self.assertIn(says, result.err)

    def test_the_command_that_it_ends_with_shows_the_ring(self):
        document, text = self.plan("--model", "llama-3.1-8b", "--tokens", 1048576, "--devices", 64, "--machine", "h100",
                                   "--keep", "everything", "--tensor", 2, "--memory", 200)
        words = shlex.split(text.split("look at it    ringlab ")[1].splitlines()[0])
        simulated = self.folder / "simulated.json"
        self.succeeds(*words, "--json", simulated)
        rounds = 4 / document["choice"]["replicas"]
        self.assertAlmostEqual(document["choice"]["time"]["attention"] /
                               (32 * rounds * json.loads(simulated.read_text())["seconds"]), 1, delta=0.001)

    def test_the_ring_at_work_holds_what_all_of_its_ranks_do(self):
        document, text = self.plan("--model", "llama-3.1-8b", "--tokens", 262144, "--sequences", 1, "--devices", 128,
                                   "--context", 128, "--by-heads", 1, "--machine", "h100")
        words = shlex.split(text.split("look at it    ringlab ")[1].splitlines()[0])
        simulated = self.folder / "simulated.json"
        self.succeeds(*words, "--json", simulated)
        self.assertEqual(document["choice"]["memory"]["ring at work"], json.loads(simulated.read_text())["memory_bytes"])

    def test_no_fewer_tokens_fit_than_were_asked_for(self):
        asked = 13000000
        document, _ = self.plan("--model", "llama-3.1-8b", "--tokens", asked, "--sequences", 1, "--devices", 64,
                                "--machine", "h100")
        self.assertEqual(document["choice"]["longest_context"], asked)

    def test_device_hours_are_by_the_expected_time(self):
        document, _ = self.plan("--model", "llama-3.1-8b", "--tokens", 131072, "--sequences", 8, "--devices", 64,
                                "--machine", "h100")
        choice = document["choice"]
        hours = 64 * choice["expected_seconds"] / 3600 / (8 * 131072) * 1e9
        self.assertAlmostEqual(choice["device_hours_per_billion_tokens"] / hours, 1, delta=1e-9)

    def test_thousands_of_devices(self):
        begin = time.monotonic()
        document, _ = self.plan("--model", "llama-3.1-405b", "--tokens", 104857600, "--devices", 16384)
        self.assertLess(document["choice"]["memory_bytes"], 141e9)
        self.assertLess(time.monotonic() - begin, 60)  # seconds; a few where nothing else runs


if __name__ == "__main__":
    unittest.main()
