"""Runs every command of every lesson, and holds the lessons' figures and outcomes against runs.

Of a sentence its figures and its `code` have to stand in one paragraph of the lesson, in this order; the words
around them are free, but where there is no more than one digit.
"""
import json
import math
import pathlib
import re
import shlex
import sys
import unittest

import numpy

STAGES = pathlib.Path(__file__).resolve().parents[2] / "stages"
sys.path.insert(0, str(STAGES.parent / "tests" / "cli"))

from program import ProgramTest, fenced_lines  # noqa: E402

FOLDERS = re.findall(r"^\d\d_\w+", (STAGES / "stages.txt").read_text(), re.MULTILINE)
LESSONS = {folder[3:]: (STAGES / folder / "lesson.md").read_text() for folder in FOLDERS}
# A command of a lesson takes as long as its reader likes; here it only has to work.
SHORTER = {"run": ["--tokens", "400"],
           "verify": ["--cases", "1", "--quick", "--rows", "256"], "bench": [], "simulate": []}


FIGURE = re.compile(r"(?<!`)`[^`\n]+`(?!`)|-?\d+(?:\.\d+)?")


def commands(lesson):
    return [shlex.split(line) for line in fenced_lines(lesson) if line.startswith("build/bin/ringlab")]


def in_order(wanted, said):
    rest = iter(said)
    return all(figure in rest for figure in wanted)


class LessonTest(ProgramTest):
    def says(self, stage, sentence):
        figures = FIGURE.findall(sentence)
        paragraphs = [re.sub(r"\s+", " ", paragraph) for paragraph in re.split(r"\n\s*\n", LESSONS[stage])]
        if len("".join(figures)) < 2:  # one digit stands in many a paragraph
            found = [sentence in paragraph for paragraph in paragraphs]
        else:
            found = [in_order(figures, FIGURE.findall(paragraph)) for paragraph in paragraphs]
        self.assertTrue(any(found), f"{stage}/lesson.md: {sentence}")

    def run_of(self, stage, *words):
        """What a run's JSON says."""
        return json.loads(self.succeeds("run", stage, "--json", "-", *words).out)

    def ranks_of(self, stage, *words):
        return self.run_of(stage, "--random", "--mask", "causal", *words)["ranks"]

    def output_of(self, stage, *words):
        path = self.folder / str(len(list(self.folder.iterdir())))
        self.succeeds("run", stage, "--random", "--tokens", 250, "--output", path, *words)
        return (path / "o.npy").read_bytes() + (path / "lse.npy").read_bytes()

    def check_of(self, stage, *words):
        result = self.succeeds("run", stage, "--check", *words)
        return float(re.search(r"check +o +ok +worst error/bound (\S+)", result.out)[1])


class Commands(LessonTest):
    def test_of_every_lesson_succeed(self):
        for stage, lesson in LESSONS.items():
            with self.subTest(stage):
                found = commands(lesson)
                self.assertTrue(found)
                for words in found:
                    shorter = SHORTER[words[1]] if "--tokens" not in words else []
                    self.succeeds(*words[1:], *shorter, cwd=STAGES.parent)


class Figures(LessonTest):
    def test_of_attention(self):
        scores = numpy.array([0.0, 1, 5, 2])
        weights = numpy.exp(scores - 5)
        shown = [("e^(s - 5)", weights), ("e^s", numpy.exp(scores)),
                 ("weight", weights / weights.sum())]
        for name, numbers in shown:
            self.says("attention", f"{name} " + " ".join(f"{x:.4f}" for x in numbers))
        self.says("attention", f"sum {weights.sum():.4f} lse = 5 + ln {weights.sum():.4f} = "
                               f"{5 + math.log(weights.sum()):.3f}")
        whole = numpy.exp(scores).sum()
        self.says("attention", f"sum {whole:.3f} lse = ln {whole:.3f} = {math.log(whole):.3f}")
        self.says("attention", "In f32 the second way ends at a score of 89")
        with numpy.errstate(over="ignore"):
            grown = [numpy.exp(numpy.float32(score)) for score in (88, 89)]
        self.assertEqual([bool(numpy.isinf(x)) for x in grown], [False, True])
        terms = [numpy.float32(1 / n) for n in range(1, 1001)]
        left, right = (sum(row, numpy.float32(0)) for row in (terms, terms[::-1]))
        self.says("attention", f"is {left:.6f} from the left and {right:.6f} from the right, and "
                               f"{math.fsum(1 / n for n in range(1, 1001)):.6f} exactly.")
        self.says("attention", "\"worst error/bound\" is below 1")
        self.assertLess(self.check_of("attention", "--random", "--tokens", 1024), 1)
        self.says("attention", "Rank 0 sends as many bytes as there are K and V, three times over")
        ranks = self.ranks_of("attention", "--tokens", 512, "--ranks", 4)
        everything = ranks[1]["peak_kv_bytes"]
        self.assertEqual([rank["sent_bytes"] for rank in ranks],
                         [3 * everything] + [everything // 4] * 3)

    def test_of_broadcast(self):
        self.says("broadcast", "Each rank sends its chunk P−1 times.")
        of_4, of_8 = (self.ranks_of("broadcast", "--tokens", 512, "--ranks", p) for p in (4, 8))
        self.assertEqual(len({rank["peak_kv_bytes"] for rank in of_4 + of_8}), 1)
        held = of_4[0]["peak_kv_bytes"]
        self.assertTrue(all(rank["sent_bytes"] == 3 * held // 4 for rank in of_4))
        self.says("broadcast", "Halve N, with `--tokens 512`, and watch it shrink to a quarter.")
        text = ["--text", STAGES.parent / "README.md", "--ranks", 4, "--mask", "causal"]
        peaks = [self.run_of("broadcast", *text, *more)["peak_bytes_per_rank"]
                 for more in ([], ["--tokens", 512])]
        self.assertAlmostEqual(peaks[0] / peaks[1], 4, delta=0.5)

    def test_of_online_softmax(self):
        """The rows of the picture, by the recurrence that the lesson gives."""
        row_max, row_sum, sums = -math.inf, 0.0, []
        for score in (0, 1, 5, 2):
            top = max(row_max, score)
            row_sum = row_sum * math.exp(row_max - top) + math.exp(score - top)
            row_max = top
            sums.append(f"{row_sum:.4g}" if row_sum > 1 else "1")
        self.says("online_softmax", "row_sum " + " ".join(sums))
        self.says("online_softmax", f"lse = 5 + ln 1.075 = {row_max + math.log(row_sum):.3f}")
        beside = [r["peak_bytes"] - r["peak_kv_bytes"] for n in (512, 1024) for r in
                  self.ranks_of("online_softmax", "--tokens", n, "--ranks", 4)[:1]]
        self.assertLess(beside[1] / beside[0], 2.1)
        self.says("online_softmax", "\"worst error/bound\" is smaller than in stage 01")
        text = ["--text", STAGES.parent / "README.md", "--ranks", 4]
        self.assertLess(self.check_of("online_softmax", *text), self.check_of("broadcast", *text))

    def test_of_flash_blocks(self):
        self.says("flash_blocks", "Change the tile sizes, also to 7 and 5, which divide nothing: "
                                  "the answer stays inside the bound, and peak memory changes by a "
                                  "few KiB of tiles.")
        peaks = []
        for queries, keys in ((32, 32), (7, 5)):
            words = ["--tile-queries", queries, "--tile-keys", keys, "--random", "--ranks", 4]
            self.assertLessEqual(self.check_of("flash_blocks", *words), 1)
            peaks.append(self.run_of("flash_blocks", *words)["peak_bytes_per_rank"])
        self.assertLess(abs(peaks[0] - peaks[1]), 64 << 10)

    def test_of_merge(self):
        self.says("merge", "overflows in f32 when the second part is 89 nats ahead")
        with numpy.errstate(over="ignore"):
            grown = [numpy.exp(numpy.float32(nats)) for nats in (88, 89)]
        self.assertEqual([bool(numpy.isinf(x)) for x in grown], [False, True])
        self.says("merge", "The error does not grow with `--ranks`")
        ratios = [self.check_of("merge", "--random", "--tokens", 512, "--ranks", p)
                  for p in (2, 16)]
        self.assertLess(ratios[1], 2 * ratios[0])

    def test_of_ring(self):
        self.says("ring", "2 chunks instead of P.")
        everything = self.ranks_of("broadcast", "--tokens", 512, "--ranks", 8)[0]["peak_kv_bytes"]
        ranks = self.ranks_of("ring", "--tokens", 512, "--ranks", 8)
        self.assertEqual({rank["peak_kv_bytes"] for rank in ranks}, {2 * everything // 8})
        self.says("ring", "most of rank 0's steps are for nothing")
        idle = [visit for visit in ranks[0]["visits"] if visit["pairs"] == 0]
        self.assertEqual(len(idle), 7)

    def test_of_causal_ring(self):
        words = ["--tokens", 512, "--ranks", 8]
        pairs = [rank["pairs"] for rank in self.ranks_of("causal_ring", *words)]
        self.assertGreater(pairs[-1], 10 * pairs[0])
        self.says("causal_ring", "With `--layout zigzag` all ranks have the same number")
        zigzag = self.ranks_of("causal_ring", *words, "--layout", "zigzag")
        self.assertEqual(len({rank["pairs"] for rank in zigzag}), 1)
        self.says("causal_ring", "24 bytes per run; one run for a contiguous or striped chunk, at "
                                 "most two for zigzag")
        chunk = self.ranks_of("ring", *words)[0]["sent_bytes"]
        for layout, runs in (("contiguous", 1), ("striped", 1), ("zigzag", 2)):
            sent = self.ranks_of("causal_ring", *words, "--layout", layout)[0]["sent_bytes"]
            lie_beside = 1 if layout == "zigzag" else 0  # both parts of the last rank
            self.assertEqual(sent - chunk, 24 * (7 * runs - lie_beside), layout)

    def test_of_slotted_ring(self):
        words = ["--tokens", 500, "--ranks", 5]
        chunk = self.ranks_of("ring", *words)[0]["peak_kv_bytes"] // 2
        for slots in (1, 2, 3):
            ranks = self.ranks_of("slotted_ring", *words, "--slots", slots)
            self.assertEqual({r["peak_kv_bytes"] for r in ranks}, {(1 + slots) * chunk})
        self.says("slotted_ring", "The answers have the bits of stage 05 for every S.")
        self.assert_bits_of("ring", "slotted_ring")

    def test_of_overlapped_ring(self):
        self.says("overlapped_ring", "The answers have the bits of stages 05 and 07 for every S, "
                                     "every delay and every transport")
        self.assert_bits_of("ring", "overlapped_ring")
        self.says("overlapped_ring", "23.0 ms with one slot")
        self.says("overlapped_ring", "13.4 ms with two. A third buys nothing")
        self.says("overlapped_ring", "with `--bandwidth 10 --jitter 1` it is 61.8 ms with one slot, "
                                     "41.5 with two, 40.8 with three.")
        self.assertEqual([self.simulated(slots, "20") for slots in (1, 2, 3)],
                         ["23.0", "13.4", "13.4"])
        self.assertEqual([self.simulated(slots, "10", "--jitter", 1) for slots in (1, 2, 3)],
                         ["61.8", "41.5", "40.8"])

    def simulated(self, slots, bandwidth, *words):
        """Milliseconds of the ring that lesson 08 simulates."""
        result = self.succeeds("simulate", "--tokens", 65536, "--mask", "full", "--layout",
                               "contiguous", "--bandwidth", bandwidth, "--slots", slots, *words)
        return re.search(r"^time +(\S+) ms$", result.out, re.MULTILINE)[1]

    def assert_bits_of(self, before, stage, *words):
        expected = self.output_of(before, "--ranks", 5, *words)
        for slots in (1, 2, 3, 4):
            for transport in ("threads", "simulated"):
                self.assertEqual(expected, self.output_of(
                    stage, "--ranks", 5, "--slots", slots, "--transport", transport, *words))

    def test_of_dealt_ring(self):
        """The picture: pairs of each rank at each step, and the busiest rank's added up."""
        self.says("dealt_ring", "busiest rank of each step, added up: 228")
        self.says("dealt_ring", "sum: 132 = all pairs / 4")
        self.says("dealt_ring", "sum: 144")
        self.says("dealt_ring", "36, 32, 32, 32 pairs")
        steps = {layout: self.pairs_by_step(layout) for layout in
                 ("contiguous", "striped", "zigzag")}
        busiest = {layout: sum(max(of_step) for of_step in zip(*pairs))
                   for layout, pairs in steps.items()}
        self.assertEqual(busiest, {"contiguous": 228, "striped": 144, "zigzag": 132})
        self.assertEqual(steps["zigzag"], [[36, 32, 32, 32]] * 4)
        self.says("dealt_ring", "(24 bytes; none for the last rank, whose two parts meet in the middle)")
        sent = {layout: [rank["sent_bytes"] for rank in self.ranks_of(
            "dealt_ring", "--tokens", 32, "--ranks", 4, "--layout", layout)]
            for layout in ("contiguous", "zigzag")}
        # A rank passes on all chunks but the next rank's own: rank 2 does not have that of rank 3.
        self.assertEqual([more - less for more, less in zip(sent["zigzag"], sent["contiguous"])],
                         [2 * 24, 2 * 24, 3 * 24, 2 * 24])
        self.says("dealt_ring", "rank 0 36 28 28 28")
        self.says("dealt_ring", "rank 3 36 36 36 36")
        self.assertEqual([steps["striped"][0], steps["striped"][3]],
                         [[36, 28, 28, 28], [36, 36, 36, 36]])
        self.says("dealt_ring", "contiguous (P c + 1) / ((2P - 1) c + 1)")
        self.says("dealt_ring", "striped (P c + 1) / (P (c + 1))")
        total, ranks, c = sum(map(sum, steps["zigzag"])), 4, 8
        self.assertAlmostEqual(total / ranks / 228, (ranks * c + 1) / ((2 * ranks - 1) * c + 1))
        self.assertAlmostEqual(total / ranks / 144, (ranks * c + 1) / (ranks * (c + 1)))

    def pairs_by_step(self, layout):
        ranks = self.ranks_of("dealt_ring", "--tokens", 32, "--heads", 1, "--kv-heads", 1,
                              "--ranks", 4, "--layout", layout)
        at = [{visit["hop"]: visit["pairs"] for visit in rank["visits"]} for rank in ranks]
        return [[pairs.get(hop, 0) for hop in range(4)] for pairs in at]

    def test_of_balanced_ring(self):
        self.says("balanced_ring", "all rows are right, and of the 16 parts of 8 ranks all but the "
                                   "first end up at somebody else's token")
        parts = 16
        dealt = [part for rank in range(parts // 2) for part in (rank, parts - 1 - rank)]
        self.assertEqual([i for i, part in enumerate(dealt) if i == part], [0])

    def test_of_skipping_ring(self):
        self.says("skipping_ring", "The answers have the bits of stage 06")
        self.assert_bits_of("causal_ring", "skipping_ring", "--mask", "causal", "--layout", "zigzag")
        self.says("skipping_ring", "chunks 1, 2, 3 lie in rank 0's future: skipped")
        rank_0, *_, rank_3 = self.ranks_of("skipping_ring", "--tokens", 64, "--ranks", 4,
                                           "--direction", "previous")
        self.assertEqual([visit["owner"] for visit in rank_0["visits"]], [0])
        self.assertEqual([visit["owner"] for visit in rank_3["visits"]], [3, 0, 1, 2])

    def test_of_overlapped_causal_ring(self):
        self.assert_bits_of("overlapped_causal_ring", "overlapped_causal_ring", "--mask", "causal")

    def test_of_pairwise_ring(self):
        self.says("pairwise_ring", "The promised error is larger than that of stage 05")
        words = ["--text", STAGES.parent / "README.md", "--ranks", 4]
        self.assertLess(self.check_of("pairwise_ring", *words), self.check_of("ring", *words))

    def most_counted(self, stage, figure, *words):
        """Of all ranks, and the same as it is stated; None where the stage states nothing."""
        ranks = self.ranks_of(stage, "--tokens", 500, *words)
        due = [rank.get("expected_" + figure) for rank in ranks]
        if due[0] is not None:
            self.assertEqual([rank[figure] for rank in ranks], due)
        return max(rank[figure] for rank in ranks)

    def test_of_bidirectional(self):
        self.says("bidirectional", "3 for 6 ranks, 2 for 5, where stage 05 makes 5 and 4.")
        for stage, exchanges in (("bidirectional", [3, 2]), ("ring", [5, 4])):
            self.assertEqual(exchanges, [
                self.most_counted(stage, "exchanges", "--ranks", ranks) for ranks in (6, 5)])
        sent = [[rank["sent_bytes"] for rank in self.ranks_of(stage, "--ranks", 5, "--tokens", 500)]
                for stage in ("ring", "bidirectional")]
        self.assertEqual(*sent)

    def test_of_hierarchical(self):
        self.says("hierarchical", "2 for both runs, K and V of one chunk.")
        self.says("hierarchical", "the rank at the border of a node sends 2 (P - 1): 14, and 8.")
        for ranks, width, of_ring in ((8, 4, 14), (5, 3, 8)):
            nodes = ["--ranks", ranks, "--schedule", f"double:{width}"]
            self.assertEqual(self.most_counted("hierarchical", "node_messages", *nodes), 2)
            self.assertEqual(self.most_counted("ring", "sent_messages", "--ranks", ranks), of_ring)

    def test_of_heads(self):
        self.says("heads", "5, whatever P is.")
        for ranks in (2, 3, 4):
            self.assertEqual(self.most_counted("heads", "exchanges", "--ranks", ranks), 5)
        ranks = self.ranks_of("heads", "--tokens", 300, "--heads", 4, "--kv-heads", 2, "--ranks", 5)
        self.assertEqual(sum(not rank["visits"] for rank in ranks), 3)

    def test_of_documents_and_windows(self):
        stage = "documents_and_windows"
        self.says(stage, "hop 1 of 3 hops 1 and 3 of 3")
        for mask, hops in (("window:3,0", 1), ("documents:6,6,4", 2)):
            ranks = self.run_of(stage, "--random", "--tokens", 16, "--ranks", 4, "--mask", mask)
            self.assertEqual(max(rank["exchanges"] for rank in ranks["ranks"]), hops, mask)
        self.says(stage, "1 of 7 in the first run, for a window of 100 tokens and chunks of 128. "
                         "Make the window 129 wide: 2.")
        for window, exchanges in ((100, 1), (128, 1), (129, 2)):
            ranks = self.run_of(stage, "--text", STAGES.parent / "README.md", "--ranks", 8,
                                "--mask", f"window:{window},0")["ranks"]
            self.assertEqual(max(rank["exchanges"] for rank in ranks), exchanges, window)

    def test_of_compressed_wire(self):
        stage = "compressed_wire"
        row, scale = [3.1, -0.52, 0.004, 0.0001], 2**7
        self.says(stage, "times 2^7 " + " ".join(f"{x * scale:.4g}" for x in row))
        codes = [self.nearest_e4m3(x * scale) for x in row]
        self.says(stage, "as e4m3 " + " ".join(f"{x:.3g}" for x in codes))
        self.says(stage, "divided 3.0 -0.5 0.0039 0.00011")
        self.assertEqual([f"{x / scale:.2g}" for x in codes], ["3", "-0.5", "0.0039", "0.00011"])
        moved, allowed = [], []
        for words in ([stage], ["ring"], ["optimized", "--wire", "bf16"]):
            result = self.run_of(*words, "--text", STAGES.parent / "LICENSE", "--ranks", 4, "--check")
            moved.append(result["sent_bytes"])
            allowed.append(f"±{result['check']['tensors'][0]['worst']['allowed']:.3g}")
        self.says(stage, f"{moved[0] / 2**10:.0f} KiB, {moved[1] / 2**20:.2f} MiB and {moved[2] / 2**10:.0f} KiB;")
        self.says(stage, "{}, {} and {} are allowed.".format(*allowed))

    @staticmethod
    def nearest_e4m3(x):
        """Four significant bits, and multiples of 2^-9."""
        step = 2.0 ** max(math.frexp(x)[1] - 4, -9)
        return round(x / step) * step

    def test_of_decode(self):
        words = ["--text", STAGES.parent / "README.md", "--tokens", 1000, "--layout", "striped",
                 "--ranks", 4]
        one, kv = (self.run_of(stage, *words, "--queries", 1) for stage in ("decode", "bidirectional"))
        prefill = self.run_of("decode", *words)
        self.says("decode", f"{one['sent_bytes'] / 2**10:.2f} KiB with the query on its way, "
                            f"{kv['sent_bytes'] / 2**20:.2f} MiB with keys and values.")
        self.says("decode", f"it is the other way round: {prefill['sent_bytes'] / 2**20:.2f} MiB.")
        self.assertGreater(prefill["sent_bytes"], kv["sent_bytes"])
        pairs = [[sum(v["pairs"] for v in rank["visits"]) for rank in run["ranks"]] for run in (one, kv)]
        self.assertEqual(pairs, [[250] * 4, [1000, 0, 0, 0]])
        for ranks in (2, 3, 5):
            self.assertEqual(self.most_counted("decode", "exchanges", "--ranks", ranks), 2)


if __name__ == "__main__":
    unittest.main()
