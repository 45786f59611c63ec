"""The figures of docs/trust.md are those of the pages that it speaks of."""
import json
import pathlib
import re
import unittest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def page(name):
    return re.sub(r"\s+", " ", (DOCS / name).read_text())


class TrustPageTest(unittest.TestCase):
    def setUp(self):
        self.trust = page("trust.md")

    def says(self, *figures):
        for figure in figures:
            self.assertIn(figure, self.trust)

    def test_planted_mistakes_are_those_of_the_kill_matrix(self):
        matrix = json.loads((DOCS / "mutants.json").read_text())
        laws = len(matrix["laws"])
        self.says(f"{matrix['killed']} of {matrix['mutants']} are found; {laws} laws",
                  f"| {laws} laws: causality",
                  f"{matrix['false_alarms']} in {matrix['correct_cases']} cases on "
                  f"{matrix['correct_subjects']} correct subjects")
        self.assertEqual(matrix["useless_laws"], [])

    def test_what_nobody_chose_is_that_of_the_hold_out(self):
        hold_out = page("hold_out.md")
        first, second = re.search(r"(\d+) of the first sample's 43 and (\d+) of this one's",
                                  hold_out).groups()
        third = re.search(r"A third, .*?: (\d+) of 43", hold_out)[1]
        self.says(f"{first} of 43, {second} of 43 and {third} of 43")
        noticed = re.search(r"(\d+ of \d+) are noticed", hold_out)[1]
        wrong = re.search(r"\| killed \| (\d+ of \d+) ", hold_out)[1]
        alarms = re.search(r"\| false alarms, of verifications of legal kernels \| (\d+ of \d+) ",
                           hold_out)[1]
        self.says(f"{noticed} are noticed", f"{wrong} wrong ones",
                  f"{alarms} verifications of legal ones")

    def test_plugins_are_those_of_their_page(self):
        total, found = re.search(r"of (\d+), (\d+) are rejected", page("plugins.md")).groups()
        self.says(f"{found} of {total}; the others")

    def test_faults_and_promises_are_those_of_their_page(self):
        reliability = page("reliability.md")
        self.assertIn("220 trials with plain mpirun", reliability)
        promises = set(re.findall(r"\| (R\d+) \|", reliability))
        self.assertEqual(len(promises), 8)
        self.says("eight promises", "220 random faults")


if __name__ == "__main__":
    unittest.main()
