"""`ringlab plan`: its figures are those of `simulate` and `run`, and its choice keeps what was asked."""
import json
import pathlib
import re
import shlex
import unittest

from program import ProgramTest, npy, rendered, ringlab

ROOT = pathlib.Path(__file__).resolve().parents[3]
SMALL = ["--tokens", 480, "--heads", 4, "--kv-heads", 2, "--head-dim", 8, "--dtype", "f32", "--backward"]


class PlanTest(ProgramTest):
    def plan(self, *words):
        """What --json says, and the text."""
        found = self.folder / "plan.json"
        text = self.succeeds("plan", *words, "--json", found).out
        return json.loads(found.read_text()), text

    def test_the_default_fits_one_device(self):
        document, text = self.plan()
        self.assertEqual(document["choice"]["ranks"], 1)
        self.assertEqual([plan["ranks"] for plan in document["plans"]], [1, 2, 4, 8, 16, 32, 64])
        self.assertIn("choice        1 rank,", text)

    def test_it_is_the_fewest_ranks_whose_memory_suffices(self):
        document, text = self.plan("--tokens", 1048576, "--backward", "--memory", 10)
        for plan in document["plans"]:
            fits = any(way["memory_bytes"] <= 10e9 for way in plan["ways"])
            self.assertEqual(plan["holds"], fits)
            self.assertEqual(plan["ranks"] < document["choice"]["ranks"], not fits)
        self.assertEqual(document["choice"]["layout"], "zigzag")
        self.assertIn("too much memory", text)
        self.assertIn("ways of 16 ranks", text)

    def test_the_page_about_it_shows_what_it_says(self):
        said = self.plan("--tokens", 1048576, "--backward", "--memory", 10)[1]
        said = {" ".join(line.split()) for line in said.splitlines()}
        page = (ROOT / "docs" / "simulate.md").read_text().split("## Which ring to take")[1]
        shown = re.findall(r"^    (.+)$", page.split("## The model")[0], re.MULTILINE)
        self.assertGreater(len(shown), 12)
        for line in shown:
            self.assertIn(" ".join(line.split()), said)

    def test_its_reasons_are_the_costs_of_the_other_ways(self):
        document, text = self.plan("--tokens", 131072, "--ranks", 16, "--machine", "a100")
        choice, (plan,) = document["choice"], document["plans"]
        self.assertEqual([reason["part"] for reason in choice["reasons"]],
                         ["layout", "schedule", "slots"])
        other = next(way for way in plan["ways"] if way["layout"] == "contiguous" and
                     all(way.get(part) == choice.get(part) for part in ("schedule", "slots")))
        times = f"contiguous takes {other['seconds'] / choice['seconds']:.3g} times as long"
        self.assertIn(times, choice["reasons"][0]["sentence"])
        self.assertIn(choice["reasons"][2]["sentence"], text)
        self.assertGreater(choice["expected_seconds"], choice["seconds"])
        links, slow = choice["what_if"]
        self.assertGreaterEqual(links["seconds"], choice["seconds"])
        # All wait for the slow rank at every step, or for a part of what it is late.
        self.assertGreater(slow["seconds"], 1.05 * choice["seconds"])
        self.assertLess(slow["seconds"], 1.11 * choice["seconds"])
        self.assertTrue(slow["same_choice"])
        self.assertEqual(slow["best"]["seconds"], slow["seconds"])
        self.assertNotIn("what if", self.plan("--ranks", 1)[1])

    def test_slow_links_change_the_choice_where_another_way_hides_them(self):
        document, text = self.plan("--tokens", 32768, "--ranks", 16, "--machine", "h100", "--backward",
                                   "--node-bandwidth", 100)
        links = document["choice"]["what_if"][0]
        self.assertFalse(links["same_choice"])
        self.assertLess(links["best"]["seconds"], links["seconds"])
        self.assertIn(f"then with --ranks 16 --layout zigzag --schedule double:8 --slots "
                      f"{links['best']['slots']}", text)

    def test_it_is_as_fast_as_asked(self):
        free = self.plan("--memory", 1e6)[0]
        limit = free["plans"][3]["best"]["seconds"] * 1.001
        document, text = self.plan("--memory", 1e6, "--seconds", limit)
        self.assertEqual(document["choice"]["ranks"], 8)
        self.assertLessEqual(document["choice"]["seconds"], limit)
        self.assertIn("too slow", text)

    def test_its_ways_are_as_a_simulation_says(self):
        machine = ["--machine", "a100", "--node-ranks", 2]
        document, _ = self.plan(*SMALL, "--ranks", "5", "--mask", "window:60,0", *machine)
        simulated = self.folder / "simulated.json"
        ways = document["plans"][0]["ways"]
        self.assertEqual(len({json.dumps(way) for way in ways}), len(ways))
        for way in ways[::3]:
            options = [word for name in ("ranks", "layout", "schedule", "slots") if name in way
                       for word in ("--" + name, way[name])]
            self.succeeds("simulate", *SMALL, "--mask", "window:60,0", *machine, *options,
                          "--json", simulated)
            due = json.loads(simulated.read_text())
            for figure in ("seconds", "efficiency", "memory_bytes"):
                self.assertEqual(way[figure], due[figure], way)

    def test_its_memory_is_that_of_a_run(self):
        document, _ = self.plan(*SMALL, "--ranks", "4")
        run = self.folder / "run.json"
        for way in document["plans"][0]["ways"][::4]:
            options = [word for name in ("ranks", "layout", "schedule", "slots") if name in way
                       for word in ("--" + name, way[name])]
            self.succeeds("run", "optimized", "--random", *SMALL, "--mask", "causal", *options,
                          "--json", run)
            ranks = json.loads(run.read_text())["ranks"]
            self.assertEqual(way["memory_bytes"], max(rank["memory_bytes"] for rank in ranks), way)

    def test_the_command_that_it_ends_with_shows_the_choice(self):
        documents = "documents:100,380"
        document, text = self.plan(*SMALL, "--mask", documents, "--wire", "bf16", "--memory", "0.0002",
                                   "--latency", "2", "--ranks", "16,2")
        words = shlex.split(text.split("look at it    ringlab ")[1].splitlines()[0])
        simulated = self.folder / "simulated.json"
        self.succeeds(*words, "--json", simulated)
        found = json.loads(simulated.read_text())
        self.assertEqual(found["seconds"], document["choice"]["seconds"])
        self.assertEqual(found["configuration"]["mask"], documents)
        self.assertEqual(found["configuration"]["wire"], "bf16")

    def test_that_command_quotes_what_a_shell_would_split(self):
        mask = self.file("it's a mask.npy", npy([True] * 16, (4, 4), "|b1"))
        _, text = self.plan("--tokens", 4, "--ranks", 2, "--mask", f"file:{mask}")
        words = shlex.split(text.split("look at it    ringlab ")[1].splitlines()[0])
        self.assertIn(f"file:{mask}", words)
        self.succeeds(*words)

    def test_a_run_follows_the_plan(self):
        run = self.folder / "run.json"
        for mask, backward in (("causal", []), ("full", []), ("causal+window:7,0", ["--backward"])):
            shape = ["--tokens", 480, "--heads", 4, "--kv-heads", 2, "--head-dim", 8, "--dtype", "f32", "--mask", mask]
            plan = self.plan(*shape, *backward, "--ranks", 4, "--machine", "laptop")[0]["choice"]
            self.succeeds("run", "optimized", "--random", *shape, *backward, "--ranks", 4, "--auto", "laptop", "--check",
                          "--json", run)
            found = json.loads(run.read_text())["configuration"]
            for name in ("layout", "schedule", "slots"):
                self.assertEqual(found[name], plan[name], mask)

    def test_auto_is_refused_beside_what_it_chooses(self):
        for says, words in (("--slots", ["optimized", "--slots", 3]), ("with optimized", ["ring"]),
                            ("with optimized", ["optimized", "--transport", "mpi"])):
            self.assertIn(says, ringlab("run", *words, "--random", "--tokens", 8, "--ranks", 1, "--auto", "laptop").err)
        self.fails(2, "laptop", "run", "optimized", "--random", "--tokens", 8, "--auto", "lapdog")

    def test_numbers_of_ranks_are_sorted_and_counted_once(self):
        document, _ = self.plan(*SMALL, "--ranks", "8,2,8,3")
        self.assertEqual([plan["ranks"] for plan in document["plans"]], [2, 3, 8])

    def test_thousands_of_ranks_go_on_as_some_began(self):
        many, text = self.plan("--tokens", 104857600, "--ranks", "1024,16384", "--machine", "h100")
        for plan in many["plans"]:
            ranks = plan["ranks"]
            few = self.plan("--tokens", 104857600 // ranks * 64, "--ranks", 64, "--machine", "h100")[0]
            self.assertEqual(plan["best"]["memory_bytes"] // 2**20, few["plans"][0]["best"]["memory_bytes"] // 2**20)
            self.assertAlmostEqual(plan["best"]["seconds"] * 64 / ranks / few["plans"][0]["best"]["seconds"], 1,
                                   delta=0.05)
        words = shlex.split(text.split("look at it    ringlab ")[1].splitlines()[0])
        found = self.folder / "simulated.json"
        self.succeeds(*words, "--json", found)
        self.assertEqual(json.loads(found.read_text())["seconds"], many["choice"]["seconds"])
        self.fails(2, "at most 4096 with such a mask", "plan", "--tokens", 8192, "--ranks", 8192, "--mask",
                   "documents:8192")

    def test_rings_of_rings_are_as_executing_all_ranks_says(self):
        common = ["--tokens", 75 * 512, "--ranks", 75, "--machine", "h100", "--backward"]
        document, _ = self.plan(*common)
        ways = [way for way in document["plans"][0]["ways"] if way["schedule"].startswith("double")]
        simulated = self.folder / "simulated.json"
        for way in ways[::4]:
            self.succeeds("simulate", *common, "--layout", way["layout"], "--schedule", way["schedule"], "--slots",
                          way["slots"], "--json", simulated)
            due = json.loads(simulated.read_text())
            self.assertEqual(way["memory_bytes"], due["memory_bytes"], way)
            self.assertAlmostEqual(way["seconds"] / due["seconds"], 1, delta=0.08, msg=way)

    def test_the_page_of_pictures(self):
        page = self.folder / "plan.html"
        document, text = self.plan("--tokens", 32768, "--ranks", "16,64", "--machine", "h100", "--backward",
                                   "--node-bandwidth", 100, "--html", page)
        html = rendered(page)
        self.assertEqual(html.count("<svg"), 3)
        self.assertEqual(document["choice"]["ranks"], 16)
        for words in ("Attention on 16 h100", "16 ranks: ", "64 ranks: ", "links 0.125 times as fast",
                      "links 0.5 times as fast: best is zigzag double:8, slots 9", "16 of 16 ranks",
                      text.split("options       ")[1].splitlines()[0]):
            self.assertTrue(words in html, words)
        self.assertFalse(re.search(r'(src|href)="https?:', html))
        self.plan("--tokens", 1048576, "--ranks", 16, "--html", page)
        self.assertTrue("8 of 16 ranks" in rendered(page))
        self.plan("--ranks", 1, "--html", page)
        self.assertEqual(rendered(page).count("<svg"), 2)

    def test_more_ranks_than_tokens_are_weighed(self):
        document, _ = self.plan("--tokens", 3, "--ranks", "9")
        self.assertEqual(document["choice"]["ranks"], 9)

    def test_where_nothing_keeps_the_limits_it_says_what_comes_nearest(self):
        found = self.folder / "none.json"
        for words, says in [(["--memory", "0.00001"], "GB each"), (["--seconds", "1e-9"], "µs")]:
            result = ringlab("plan", *SMALL, *words, "--json", found)
            self.assertEqual(result.code, 4, result.err)
            self.assertIn(says, result.err)
            document = json.loads(found.read_text())
            self.assertIsNone(document["choice"])
            self.assertFalse(any(plan["holds"] for plan in document["plans"]))

    def test_what_cannot_be_is_refused(self):
        for words, says in [(["--ranks", "0"], "1 to 131072"), (["--ranks", "4,,8"], "--ranks"),
                            (["--ranks", ""], "--ranks"), (["--ranks", "200000"], "1 to 131072"),
                            (["--seconds", "-1"], "--seconds"), (["--memory", "0"], "--memory"),
                            (["--layout", "zigzag"], "layout"), (["--wire", "f8"], "fp8"),
                            (["--heads", "6", "--kv-heads", "4"], "a divisor")]:
            with self.subTest(words=words):
                self.fails(2, says, "plan", *words)


if __name__ == "__main__":
    unittest.main()
