"""`ringlab simulate`: what it says follows from closed forms, and it does what `ringlab run` does."""
import collections
import json
import pathlib
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

from program import PROGRAM, ProgramTest, rendered

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCHEDULES = ["broadcast", "allgather", "ring", "bidirectional", "double:2"]
FREE = ["--bandwidth", "1e9", "--node-bandwidth", "1e9", "--latency", "0", "--node-latency", "0",
        "--block-overhead", "0"]
HEADER_BYTES = 120  # of a message, which the model leaves out


class SimulateTest(ProgramTest):
    def simulate(self, *words):
        """What --json says, and the text."""
        found = self.folder / "simulated.json"
        text = self.succeeds("simulate", *words, "--json", found).out
        return json.loads(found.read_text()), text

    def test_the_default_is_a_ring_that_hides_its_messages(self):
        document, text = self.simulate()
        self.assertGreater(document["efficiency"], 0.99)
        self.assertEqual(len(document["ranks"]), 8)
        self.assertTrue(all(rank["wait_seconds"] == 0 for rank in document["ranks"]))
        self.assertIn("machine         h200", text)
        self.assertIn("efficiency    99.", text)

    def test_the_help_names_as_many_ranks_as_are_taken(self):
        self.assertIn("number of ranks, 1 … 131072 (8)", self.succeeds("simulate", "--help").out)
        self.fails(2, "from 1 to 131072", "simulate", "--ranks", 131073)

    def test_layouts_have_the_efficiency_of_their_closed_forms(self):
        ranks, chunk = 6, 1024
        due = {"contiguous": (ranks * chunk + 1) / ((2 * ranks - 1) * chunk + 1), "zigzag": 1,
               "striped": (ranks * chunk + 1) / (ranks * (chunk + 1))}
        for layout, efficiency in due.items():
            document, _ = self.simulate("--ranks", ranks, "--tokens", ranks * chunk, "--layout", layout,
                                        *FREE)
            self.assertAlmostEqual(document["efficiency"], efficiency, 4, layout)

    def test_a_type_and_its_channels_have_a_speed_of_their_own(self):
        seconds = {}
        for dtype, head_dim in (("bf16", 128), ("f16", 128), ("f32", 128), ("bf16", 64)):
            words = ["--machine", "h100", "--dtype", dtype, "--head-dim", head_dim, "--ranks", 1]
            seconds[dtype, head_dim] = self.simulate(*words)[0]["seconds"]
        self.assertEqual(seconds["f16", 128], seconds["bf16", 128])
        self.assertAlmostEqual(seconds["f32", 128] / seconds["bf16", 128], 648 / 40, 2)
        self.assertAlmostEqual(seconds["bf16", 64] / seconds["bf16", 128], 648 / 497 / 2, 2)
        self.fails(2, ["machine h800", "f64", "--tflops"], "simulate", "--machine", "h800", "--dtype", "f64")
        given, _ = self.simulate("--machine", "h800", "--dtype", "f64", "--tflops", 10,
                                 "--backward-tflops", 9)
        self.assertEqual(given["configuration"]["forward_flops_per_s"], 10e12)

    def test_a_machine_may_be_a_file(self):
        text = (ROOT / "reference/model/machines/h800.json").read_text()
        path = self.folder / "mine.json"
        path.write_text(text.replace('"name": "h800"', '"name": "mine"'))
        mine, _ = self.simulate("--machine", path)
        h800, _ = self.simulate("--machine", "h800")
        self.assertEqual(mine["configuration"]["machine"], "mine")
        self.assertEqual(mine["seconds"], h800["seconds"])
        path.write_text(text.replace('"gb_per_s": {"value": 200', '"gb_per_s": {"value": -200'))
        self.fails(3, [str(path), "gb_per_s: value: expected a number above 0", "found -200", "docs/formats.md"],
                   "simulate", "--machine", path)
        path.write_text(text[:-5])
        self.fails(3, [str(path), "JSON machine"], "simulate", "--machine", path)
        self.fails(3, ["none.json"], "simulate", "--machine", self.folder / "none.json")

    def test_what_is_expected_stands_below_the_ideal(self):
        document, text = self.simulate("--machine", "h800", "--tokens", 65536)
        expected = document["expected"]
        self.assertLess(expected["efficiency"], document["efficiency"])
        self.assertIn("links at 80 %, kernels by mask and length, merges of 60 bytes a number", text)
        numbers = 32 * 128 * 8192  # of a rank's output; 7 merges, and blocks at their own speeds
        merged = 7 * 60 * numbers / 3.35e12
        blocks = 4 * 32 * 128 * 8192**2 * (0.5 / 325e12 + 7 * 0.5 / 370e12)
        self.assertAlmostEqual(expected["seconds"], merged + blocks + 8 * 5e-6, 4)
        nothing, text = self.simulate("--machine", "ethernet", "--ranks", 2)
        self.assertIsNone(nothing["expected"])
        self.assertNotIn("expected  ", text)

    def test_hops_hide_from_the_chunk_on_that_it_names(self):
        common = ["--ranks", 4, "--mask", "full", "--layout", "contiguous", "--node-ranks", 4, *FREE]
        common[common.index("--bandwidth") + 1] = "25"
        threshold = self.simulate("--tokens", 4096, *common)[0]["hidden_from_tokens"]["inside"]
        self.assertGreater(threshold, 1000)
        for chunk, hides in [(int(threshold) - 1, False), (int(threshold) + 1, True)]:
            document, _ = self.simulate("--tokens", 4 * chunk, *common)
            self.assertEqual(document["chunk_tokens"], chunk)
            waiting = sum(rank["wait_seconds"] for rank in document["ranks"])
            self.assertEqual(waiting < 1e-9, hides, chunk)

    def test_every_token_is_held_by_one_rank(self):
        simulated, _ = self.simulate("--ranks", 3, "--tokens", 20, "--layout", "zigzag")
        self.assertEqual([rank["positions"] for rank in simulated["ranks"]],
                         [[[0, 1, 4], [17, 1, 3]], [[4, 1, 4], [14, 1, 3]], [[8, 1, 6]]])

    def test_a_slow_rank_slows_all(self):
        quick, _ = self.simulate("--mask", "full", "--layout", "contiguous", *FREE)
        slow, _ = self.simulate("--mask", "full", "--layout", "contiguous", "--slow", "2:3", *FREE)
        self.assertAlmostEqual(slow["seconds"], 3 * quick["seconds"], 6)

    def test_a_slow_rank_is_the_straggler_of_its_trace(self):
        trace, found = self.folder / "t.json", self.folder / "summary.json"
        self.simulate("--ranks", 2, "--slow", "1:3", "--trace", trace)
        self.succeeds("trace", trace, "--json", found)
        self.assertEqual(json.loads(found.read_text())["straggler"], 1)

    def test_more_jitter_takes_longer_and_a_seed_repeats_it(self):
        def seconds(*words):
            return self.simulate("--slots", 2, *words)[0]["seconds"]
        self.assertLess(seconds(), seconds("--jitter", "0.5"))
        self.assertEqual(seconds("--jitter", "0.5"), seconds("--jitter", "0.5", "--seed", 1))
        self.assertNotEqual(seconds("--jitter", "0.5"), seconds("--jitter", "0.5", "--seed", 2))

    def test_it_does_what_a_run_does(self):
        def did(path):
            """How often each thing was done, waits and times left out; bytes of each message."""
            names = ["rank", "step", "owner", "peer", "slot", "gradient", "pass"]
            events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
            keys = [(e["cat"], *(e["args"][name] for name in names)) for e in events]
            return (collections.Counter(key for key in keys if key[0] != "wait"),
                    {key: e["args"]["bytes"] for key, e in zip(keys, events)
                     if key[0] in ("send", "receive")})
        shape = ["--tokens", 120, "--heads", 4, "--kv-heads", 2, "--head-dim", 8, "--dtype", "f32",
                 "--ranks", 5, "--backward"]
        simulated, run = self.folder / "simulated_trace.json", self.folder / "run_trace.json"
        for schedule in SCHEDULES:
            for mask, layout in [("full", "contiguous"), ("causal", "zigzag"), ("window:20,0", "striped")]:
                words = [*shape, "--schedule", schedule, "--mask", mask, "--layout", layout]
                self.succeeds("simulate", *words, "--trace", simulated)
                self.succeeds("run", "optimized", "--random", *words, "--trace", run)
                (does, sends), (did_so, sent) = did(simulated), did(run)
                self.assertEqual(does, did_so, words)
                headers = {sent[message] - sends[message] for message in sends}
                self.assertEqual(headers, {HEADER_BYTES}, words)

    def test_its_trace_and_pictures_are_those_of_a_run(self):
        trace, svg, page = (self.folder / name for name in ("t.json", "t.svg", "t.html"))
        document, _ = self.simulate("--trace", trace, "--svg", svg, "--html", page, "--backward")
        found = self.folder / "summary.json"
        self.succeeds("trace", trace, "--json", found)
        self.assertAlmostEqual(json.loads(found.read_text())["seconds"], document["seconds"], 7)
        self.assertTrue(xml.fromstring(svg.read_text()).tag.endswith("svg"))
        self.assertIn("<svg", rendered(page))

    def test_long_tables_are_cut(self):
        document, text = self.simulate("--ranks", 20)
        self.assertIn("… and 4 more", text)
        self.assertEqual(len(document["ranks"]), 20)

    def test_thousands_of_ranks_go_on_as_some_began(self):
        many, text = self.simulate("--tokens", 16384 * 6400, "--ranks", 16384, "--machine", "h100", "--backward")
        few, _ = self.simulate("--tokens", 64 * 6400, "--ranks", 64, "--machine", "h100", "--backward")
        self.assertIn("32 and 64 with chunks as long are executed; the line through both goes on to 16384", text)
        self.assertEqual((many["executed_ranks"], many["ranks"], len(few["ranks"])), (64, None, 64))
        for figure in ("memory_bytes", "chunk_tokens", "hidden_from_tokens"):
            self.assertEqual(many[figure], few[figure], figure)
        for times, of_few in ((many, few), (many["expected"], few["expected"])):
            self.assertAlmostEqual(times["seconds"] / of_few["seconds"] * 64 / 16384, 1, delta=0.05)
            self.assertAlmostEqual(times["efficiency"], of_few["efficiency"], delta=0.05)

    def test_of_windows_as_many_ranks_as_they_reach_are_executed(self):
        common = ("--tokens", 8192 * 1024, "--ranks", 8192, "--layout", "contiguous", "--mask")
        near, text = self.simulate(*common, "window:1023,0")
        self.assertIn("64 with chunks as long are executed: the window reaches across no more", text)
        self.assertEqual(near["executed_ranks"], 64)
        far, text = self.simulate(*common, "window:1048575,0")
        self.assertIn("32 and 64 with chunks as long are executed; the line through both goes on to 1025, "
                      "as far as the window reaches", text)
        self.assertEqual(far["executed_ranks"], 64)

    def test_what_is_continued_is_what_executing_all_ranks_finds(self):
        for ranks, words in ((264, []), (261, []), (300, ["--mask", "full"])):
            common = ["--ranks", ranks, "--tokens", ranks * 256, "--schedule", "double:8", "--backward", *words]
            continued, executed = (self.simulate(*common, *all_ranks)[0] for all_ranks in ([], ["--slow", "0:1"]))
            self.assertEqual((continued["ranks"], len(executed["ranks"])), (None, ranks))
            self.assertEqual(continued["memory_bytes"], executed["memory_bytes"])
            self.assertAlmostEqual(continued["seconds"] / executed["seconds"], 1, delta=0.08)

    def test_windows_are_continued_where_neighbours_stay_the_same(self):
        window = ["--ranks", 400, "--tokens", 400 * 256, "--mask", "window:20000,0"]
        for layout, ranks in (("contiguous", None), ("striped", 400), ("zigzag", 400)):
            document, _ = self.simulate(*window, "--layout", layout)
            self.assertEqual(document["ranks"] and len(document["ranks"]), ranks)
        for words, delta in (([], 0.02), (["--schedule", "double:8", "--backward"], 0.09)):
            continued, executed = (self.simulate(*window, "--layout", "contiguous", *words, *all_ranks)[0]
                                   for all_ranks in ([], ["--slow", "0:1"]))
            self.assertAlmostEqual(continued["seconds"] / executed["seconds"], 1, delta=delta)
            self.assertEqual(continued["memory_bytes"], executed["memory_bytes"])
        self.fails(2, ["at most 4096 with windows on such a layout", "--layout contiguous"], "simulate", "--ranks",
                   8192, "--mask", "window:100,0")

    def test_fewer_tokens_than_ranks_take_as_long_with_any_number_of_ranks(self):
        quick, many = (self.simulate("--tokens", 1, "--ranks", ranks)[0]["seconds"] for ranks in (256, 257))
        self.assertEqual(quick, many)

    def test_thousands_of_ranks_take_no_more_memory_than_hundreds(self):
        def peak_bytes(ranks):
            program = [PROGRAM, "simulate", "--ranks", str(ranks), "--tokens", str(ranks * 64)]
            measure = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
                       "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10)")
            return int(subprocess.run([sys.executable, "-c", measure, *program], check=True, capture_output=True).stdout)
        self.assertLess(peak_bytes(16384), 2 * peak_bytes(256))

    def test_what_needs_each_rank_is_refused_for_thousands(self):
        many = ["simulate", "--ranks", 8192, "--tokens", 8192 * 64]
        for words in (["--svg", self.folder / "s.svg"], ["--trace", self.folder / "t.json"], ["--slow", "1:2"],
                      ["--jitter", 1]):
            self.fails(2, ["at most 4096 with", words[0], "--ranks 64 --tokens 4096"], *many, *words)
        self.fails(2, "at most 4096 with schedules that hold all chunks", *many, "--schedule", "allgather")
        self.fails(2, "at most 4096 with such a mask", *many, "--mask", f"documents:{8192 * 64}")
        self.fails(2, "at most 4096 with nodes of so many ranks", *many, "--node-ranks", 1024)

    def test_ranks_without_tokens_and_single_ranks_are_simulated(self):
        self.assertEqual(self.simulate("--ranks", 1, *FREE)[0]["efficiency"], 1)
        self.assertEqual(len(self.simulate("--ranks", 9, "--tokens", 3)[0]["ranks"]), 9)

    def test_what_cannot_be_is_refused(self):
        for words, says in [(["--machine", "abacus"], "one of h200"), (["--slow", "8:2"], "0 to 7"),
                            (["--slow", "2"], "RANK:TIMES"), (["--slow", "2:0"], "--slow"),
                            (["--seed", "3"], "--jitter"), (["--tokens", "0"], "--tokens"),
                            (["--bandwidth", "0"], "--bandwidth"), (["--latency", "-1"], "--latency"),
                            (["--tflops", "nan"], "--tflops"), (["--wiring", "wireless"], "switched"),
                            (["--heads", "6", "--kv-heads", "4"], "a divisor"),
                            (["--schedule", "double:9"], "double:W"), (["--ranks", "200000"], "1 to 131072"),
                            (["--svg", "-"], "--svg")]:
            with self.subTest(words=words):
                self.fails(2, says, "simulate", *words)


if __name__ == "__main__":
    unittest.main()
