"""The course kit says what the labs say, and every command that it shows runs."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))

from program import fenced_lines  # noqa: E402

PROGRAM = os.environ.get("RINGLAB_PROGRAM", str(ROOT / "build/bin/ringlab"))
PAGES = ["docs/course/slides.md", "docs/trust.md"]


class CourseTest(unittest.TestCase):
    def test_the_notes_are_those_of_the_labs(self):
        subprocess.run([sys.executable, "-B", ROOT / "scripts/make_pages", "--check", "course_notes"], check=True)

    def test_every_command_runs(self):
        for page in PAGES:
            shown = fenced_lines((ROOT / page).read_text(), "sh")
            self.assertTrue(shown, page)
            for line in shown:
                words = shlex.split(line, comments=True)
                with self.subTest(line):
                    self.assertEqual(words[0], "build/bin/ringlab")
                    done = subprocess.run([PROGRAM, *words[1:]], cwd=ROOT, capture_output=True,
                                          text=True, timeout=600, check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_plan_sets_labs_that_exist(self):
        labs = {folder.name[:2] for folder in (ROOT / "stages").glob("[0-9][0-9]_*")}
        debugs = {path.parent.name[:2] for path in (ROOT / "stages").glob("*/lab.toml")
                  if "[debug]" in path.read_text()}
        rows = [row for row in (ROOT / "docs/course/course.md").read_text().splitlines()
                if row.startswith("| ") and row[2].isdigit()]
        self.assertEqual(len([row for row in rows if row[3] == " "]), 4, "weeks")
        set_labs = {lab for row in rows for cell in row.split("|")[3:] for lab in
                    re.findall(r"\b\d\d\b", cell)}
        self.assertEqual(set_labs, labs)
        debugged = set(re.findall(r"debug (\d\d)", "\n".join(rows)))
        self.assertEqual(debugged, debugs)


if __name__ == "__main__":
    unittest.main()
