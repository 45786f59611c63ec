"""Bytes, messages and memory of `ringlab run` are what can be worked out on paper."""
import itertools
import json
import pathlib
import unittest

from program import ProgramTest

RANKS = 4
CHANNELS = 64
HEADS = 2
LAYOUTS = ["contiguous", "striped", "zigzag"]
SLOTS = [1, 2, 3]
WAYS = [("broadcast", None), ("allgather", None),
        *itertools.product(["ring", "bidirectional", "double:2", "double:3"], SLOTS)]
FIGURES = ["sent_bytes", "sent_messages", "received_bytes", "received_messages", "peak_bytes",
           "peak_kv_bytes"]
STATED = ["sent_bytes", "sent_messages", "peak_kv_bytes"]  # by stages
STAGES = pathlib.Path(__file__).resolve().parents[3] / "stages"
AGREEMENT = 24  # bytes of each of the ceil(log2 P) messages by which ranks agree on the problem
HEADER = 80 + 8 * RANKS  # bytes before each chunk


def chunks_held(schedule, slots):
    """Chunks a rank holds besides its own when every rank needs all chunks."""
    if slots is None:
        return RANKS - 1
    both_ways = schedule == "bidirectional" and slots > 1
    return min(RANKS - 1, slots * (2 if both_ways else 1))


class RunCostsTest(ProgramTest):
    def run_one(self, layout, schedule, slots, *words, tokens):
        path = self.folder / "run.json"
        words = [*words] + ([] if slots is None else ["--slots", slots])
        text = self.file("text.txt", "It was the best of times, it was the worst of times. " * 80)
        result = self.succeeds("run", "optimized", "--text", text, "--tokens", tokens, "--heads",
                               HEADS, "--kv-heads", HEADS, "--head-dim", CHANNELS, "--ranks", RANKS,
                               "--layout", layout, "--schedule", schedule, "--json", path, *words)
        self.assertIn("every rank are as computed", result.out)
        document = json.loads(path.read_text())
        self.assertTrue(document["as_expected"])
        for rank in document["ranks"]:
            for figure in FIGURES:
                self.assertEqual(rank[figure], rank[f"expected_{figure}"], figure)
            self.assertEqual(rank["memory_bytes"],
                             rank["input_bytes"] + rank["output_bytes"] + rank["peak_bytes"])
        wire = document["wire"]
        self.assertEqual(wire["sent_bytes"], wire["expected_sent_bytes"])
        self.assertEqual(wire["sent_bytes"], sum(r["sent_bytes"] for r in document["ranks"]))
        self.assertEqual(wire["sent_messages"], wire["expected_sent_messages"])
        return document

    def check_by_hand(self, document, schedule, slots, tokens):
        rows = tokens // RANKS
        chunk = 2 * HEADS * rows * CHANNELS * 4  # K and V, f32
        query = output = HEADS * rows * CHANNELS * 4
        state = HEADS * rows * (CHANNELS + 2) * 4
        simple = query + output + state + (1 + chunks_held(schedule, slots)) * chunk
        for rank in document["ranks"]:
            moved = 2 * AGREEMENT + (RANKS - 1) * (HEADER + chunk)
            self.assertEqual(rank["received_bytes"], moved)
            self.assertEqual(rank["received_messages"], 2 + 3 * (RANKS - 1))
            self.assertLessEqual(abs(rank["memory_bytes"] - simple), 0.02 * simple,
                                 (schedule, slots, rank))

    def test_every_schedule_layout_and_number_of_slots(self):
        for layout, (schedule, slots) in itertools.product(LAYOUTS, WAYS):
            with self.subTest(layout=layout, schedule=schedule, slots=slots):
                document = self.run_one(layout, schedule, slots, tokens=512)
                self.check_by_hand(document, schedule, slots, 512)

    def test_a_longer_sequence(self):
        document = self.run_one("zigzag", "ring", 2, tokens=4096)
        self.check_by_hand(document, "ring", 2, 4096)

    def test_masks_uneven_shards_gradients_and_wires_keep_to_their_closed_forms(self):
        for words in itertools.product(["--mask=causal", "--mask=window:3,0", "--mask=prefix:9"],
                                       ["--wire=exact", "--wire=bf16", "--wire=fp8"],
                                       ["--integrity=full", "--backward"]):
            for layout, (schedule, slots) in zip(itertools.cycle(LAYOUTS), WAYS[::3]):
                with self.subTest(words=words, layout=layout, schedule=schedule, slots=slots):
                    document = self.run_one(layout, schedule, slots, *words, tokens=30)
                    self.assertEqual(document["wire"]["format"], words[1].removeprefix("--wire="))

    def test_stages_state_what_is_sent_and_held_in_a_forward_pass(self):
        text = self.file("text.txt", "It was the best of times, it was the worst of times.")
        folders = (STAGES / "stages.txt").read_text().splitlines()
        for stage in [line.split()[0][3:] for line in folders if line[0].isdigit()]:
            for words in (["--mask=causal"], ["--tokens=30", "--layout=zigzag"]):
                with self.subTest(stage=stage, words=words):
                    path = self.folder / "run.json"
                    result = self.succeeds("run", stage, "--text", text, "--ranks", 4, "--json",
                                           path, *words)
                    self.assertIn("closed forms  bytes, messages and K/V held of every rank are as "
                                  "computed", result.out)
                    document = json.loads(path.read_text())
                    self.assertTrue(document["as_expected"])
                    for rank in document["ranks"]:
                        for figure in STATED:
                            self.assertEqual(rank[figure], rank[f"expected_{figure}"], figure)

    def test_stages_state_nothing_of_a_backward_pass(self):
        result = self.succeeds("run", "backward", "--random", "--tokens", 16, "--backward")
        self.assertNotIn("closed forms", result.out)

    def test_rounds_are_timed_and_leave_results_and_costs_as_they_are(self):
        one = self.run_one("zigzag", "ring", 2, tokens=90)
        several = self.run_one("zigzag", "ring", 2, "--rounds", 3, "--check", tokens=90)
        for once, again in zip(one["ranks"], several["ranks"]):
            self.assertEqual([once[figure] for figure in FIGURES], [again[figure] for figure in FIGURES])
        self.assertTrue(several["passed"])
        self.assertIn("(median of 3)", self.succeeds("run", "ring", "--random", "--tokens", 8, "--rounds", 3).out)
        self.fails(2, ["--rounds"], "run", "ring", "--random", "--tokens", 8, "--rounds", 0)
        self.fails(2, ["--rounds"], "run", "reference", "--random", "--tokens", 8, "--rounds", 3)


if __name__ == "__main__":
    unittest.main()
