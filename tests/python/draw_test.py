"""What the program says, asked from Python, and its pictures."""
import os
import pathlib
import re
import sys
import unittest

import ringlab

os.environ["MPLBACKEND"] = "Agg"
try:
    import matplotlib  # noqa: F401
except ImportError:
    matplotlib = None


class Asked(unittest.TestCase):
    def test_a_command_of_the_program_answers_as_json(self):
        run = ringlab.ask("run", "ring", "--random", "--tokens", 16, "--ranks", 2)
        self.assertEqual([rank["pairs"] for rank in run["ranks"]], [128, 128])

    def test_a_wrong_subject_is_an_answer(self):
        with self.assertRaisesRegex(ringlab.UsageError, "tokens"):
            ringlab.ask("run", "ring", "--random", "--tokens", "many")
        with self.assertRaises(ringlab.RunError):
            ringlab.ask("run", "ring", "--input", "/nowhere.npz")
        with self.assertRaisesRegex(ringlab.UsageError, "expected a command with JSON"):
            ringlab.ask("plan", "--help")

    def test_a_trace_has_every_block_once(self):
        events = ringlab.trace("run", "ring", "--random", "--tokens", 16, "--ranks", 2)
        blocks = [(event["args"]["rank"], event["args"]["owner"]) for event in events
                  if event["cat"] == "compute"]
        self.assertEqual(sorted(blocks), [(0, 0), (0, 1), (1, 0), (1, 1)])

    def test_a_trace_is_drawn_by_notebooks(self):
        picture = ringlab.trace("simulate", "--tokens", 1024, "--ranks", 3)._repr_html_()
        self.assertTrue(picture.startswith("<svg"), picture[:80])
        for rank in range(3):
            self.assertIn(f"rank {rank}", picture)


class Drawn(unittest.TestCase):
    def setUp(self):
        if not matplotlib:
            self.skipTest("no matplotlib")
        import ringlab.draw
        self.draw = ringlab.draw

    def tearDown(self):
        import matplotlib.pyplot
        matplotlib.pyplot.close("all")

    def test_blocks_say_hop_and_pairs_of_every_pair_of_ranks(self):
        axes, = self.draw.blocks("--ranks", 3, "--mask", "causal", tokens=6).axes
        said = {text.get_position(): text.get_text() for text in axes.texts}
        self.assertEqual(said[0, 0], "hop 0\n3")
        self.assertEqual(said[0, 2], "hop 2\n4")
        self.assertEqual(said[2, 0], "hop 1\n0")
        self.assertEqual(len(said), 9)
        hatched = [patch for patch in axes.patches if patch.get_hatch()]
        self.assertEqual(len(hatched), 3)

    def test_bars_add_up_to_the_pairs_of_each_rank(self):
        axes, = self.draw.work("--ranks", 3, "--mask", "causal", tokens=6).axes
        heights = {}
        for bar in axes.patches:
            rank = round(bar.get_x() + bar.get_width() / 2)
            heights[rank] = heights.get(rank, 0) + bar.get_height()
        self.assertEqual(heights, {0: 3, 1: 7, 2: 11})

    def test_lanes_have_every_rank_and_kind(self):
        axes, = self.draw.lanes("--tokens", 4096, "--ranks", 2).axes
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()],
                         ["rank 0", "rank 1"])
        kinds = [text.get_text() for text in axes.get_legend().get_texts()]
        self.assertEqual(kinds[0], "compute")
        self.assertLessEqual({"send", "receive"}, set(kinds))

    def test_what_the_manual_shows_runs(self):
        manual = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
        shown, = re.findall(r"## Ask the program.*?```python\n(.*?)```", manual.read_text(), re.DOTALL)
        exec(shown, {"print": lambda pairs: self.assertEqual(sum(pairs), 64 * 65 // 2)})

    def test_nothing_happened_is_a_picture_too(self):
        self.assertEqual(len(self.draw.draw_events([]).axes), 1)


class WithoutMatplotlib(unittest.TestCase):
    def test_it_says_what_to_install(self):
        import ringlab.draw
        hidden = {name: sys.modules.pop(name) for name in list(sys.modules)
                  if name.split(".")[0] == "matplotlib"}
        sys.modules["matplotlib"] = None
        try:
            with self.assertRaisesRegex(ringlab.RunError, "pip install"):
                ringlab.draw.draw_events([])
        finally:
            del sys.modules["matplotlib"]
            sys.modules.update(hidden)


if __name__ == "__main__":
    unittest.main()
