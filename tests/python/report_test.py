"""What a report says: as a table, as HTML, as JSON with the fields of the command line."""
import html
import html.parser
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

import numpy_functions as functions
import ringlab


class Tags(html.parser.HTMLParser):
    """Counts tags that are open."""

    def __init__(self):
        super().__init__()
        self.open, self.frames = [], 0

    def handle_starttag(self, tag, attributes):
        if tag == "iframe":
            self.frames, self.page = self.frames + 1, dict(attributes)["srcdoc"]
        if tag not in ("br", "rect", "path", "line", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("br", "rect", "path", "line", "circle"):
            assert self.open.pop() == tag, tag


def rendered(page):
    """The HTML that a page's script makes of its data."""
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(page)
        file.flush()
        script = pathlib.Path(__file__).resolve().parents[2] / "cli/viewer/rendered.mjs"
        return subprocess.run(["node", script, file.name], check=True, capture_output=True, text=True).stdout


class Program(unittest.TestCase):
    def test_the_module_is_the_program(self):
        program = subprocess.run([os.environ["RINGLAB_PROGRAM"], "version"], capture_output=True)
        module = subprocess.run([sys.executable, "-m", "ringlab", "version"], capture_output=True)
        self.assertEqual((module.returncode, module.stdout), (0, program.stdout), module.stderr)
        wrong = subprocess.run([sys.executable, "-m", "ringlab", "rng"], capture_output=True)
        self.assertEqual(wrong.returncode, 2)


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        laws = ["equals_reference", "P26", "P17"]
        cls.right = ringlab.verify(functions.right, laws=laws, cases=5, progress=False)
        cls.wrong = ringlab.verify(functions.lse_in_base_2, laws=laws, cases=5, progress=False,
                                   name="lse <in> base 2")

    def test_a_report_is_true_when_it_passed(self):
        self.assertTrue(self.right)
        self.assertFalse(self.wrong)
        self.assertFalse(self.wrong.replay())
        self.assertTrue(self.wrong.replay(functions.right))
        with self.assertRaises(AssertionError):
            assert self.wrong

    def test_a_report_can_be_pickled_and_names_what_runs_its_case(self):
        for report in (self.right, self.wrong):
            again = pickle.loads(pickle.dumps(report))
            self.assertEqual(again, report)
            self.assertEqual((str(again), again.to_json()), (str(report), report.to_json()))
        token = self.wrong.broken[0].failure.token
        with self.assertRaisesRegex(ringlab.UsageError, "^replay: .*pickled") as caught:
            again.replay()
        self.assertIn(f'ringlab.replay(fn, "{token}")', caught.exception.hint)
        self.assertFalse(self.wrong.replay())  # the report itself still has its function

    def test_the_table_has_every_law_and_the_reasons_of_skips(self):
        text = str(self.right)
        self.assertTrue(text.startswith("right: pass; 2 laws held, 0 broken, 1 skipped"))
        for law in ("equals_reference", "P26"):
            self.assertRegex(text, rf"{law} +held +5")
        self.assertIn("skipped P17: the bits of a row may depend on its neighbours", text)

    def test_a_failure_shows_its_case_and_how_to_run_it_again(self):
        text = str(self.wrong)
        self.assertTrue(text.startswith("lse_in_base_2: WRONG; 0 laws held, 2 broken"))
        law = self.wrong.broken[0]
        for part in (law.statement, law.failure.case, law.failure.message, law.failure.token):
            self.assertIn(part, text)
        self.assertIn("and breaks P26: report.broken has a case of each", text)
        page = html.unescape(self.wrong._repr_html_())
        for law in self.wrong.broken:
            self.assertIn(law.failure.token, page)

    def test_a_notebook_shows_a_page_with_the_picture(self):
        for report, has_picture in ((self.wrong, True), (self.right, False)):
            html_of_report = report._repr_html_()
            tags = Tags()
            tags.feed(html_of_report)
            self.assertEqual((tags.open, tags.frames), ([], 1))
            shown = rendered(tags.page)
            self.assertIn(html.escape(report.headline()), html_of_report)
            self.assertEqual("<svg" in shown, has_picture)
            inside = Tags()
            inside.feed(shown)
            self.assertEqual(inside.open, [])
            self.assertIn("&#60;", shown)  # a statement with <= in it

    def test_the_json_has_the_fields_of_the_command_line(self):
        written = json.loads(self.wrong.to_json())
        self.assertFalse(written["passed"])
        self.assertEqual(written["laws_broken"], 2)
        program = os.environ.get("RINGLAB_PROGRAM")
        if not program or not os.path.exists(program):
            self.skipTest("no program to compare with: set RINGLAB_PROGRAM")
        command = [program, "verify", "ring", "--laws", "P26,P40", "--cases", "2", "--tokens", "8",
                   "--json", "-"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        of_program = {law["verdict"]: set(law)
                      for law in json.loads(run.stdout)["subjects"][0]["laws"]}
        ours = {law["verdict"]: set(law)
                for report in (self.right, self.wrong) for law in report.to_dict()["laws"]}
        self.assertEqual(of_program, {verdict: ours[verdict] for verdict in ("held", "skipped")})
        self.assertEqual(ours["broken"], ours["held"] | {"failure"})

    def test_laws_and_subjects_are_listed(self):
        ids = [law.id for law in ringlab.laws()]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertGreater(len(ids), 80)
        subjects = {subject.name: subject for subject in ringlab.subjects()}
        self.assertTrue(subjects["optimized"].backward and subjects["reference"].bounds_its_error)
        self.assertRegex(ringlab.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
