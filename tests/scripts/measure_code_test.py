"""scripts/measure_code in a made-up repository: budgets hold, and the page says today's figures."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "measure_code"
PAGE = "# How large\n\n<!-- measured by scripts/measure_code -->\n<!-- end -->\n\nThe rest.\n"
CODE = "// Adds two numbers.\nint add(int a, int b) {\n  return a + b;\n}\n"


class MeasureCodeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringlab-measure-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.write("docs/architecture.md", PAGE)
        self.write("core/add.cpp", CODE)
        self.write("tests/add_test.cpp", CODE)
        self.budget("core", lines=4, headless=0)
        shutil.copy(SCRIPT, self.folder / "scripts/measure_code")
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def budget(self, room, **figures):
        self.write("scripts/budgets.toml", f"[{room}]\n" + "".join(f"{key} = {most}\n" for key, most in figures.items()))

    def measured(self, *words):
        done = subprocess.run([self.folder / "scripts/measure_code", *words], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def test_a_room_within_its_budget_passes_once_the_page_is_written(self):
        code, text = self.measured("--check")
        self.assertEqual(code, 1)
        self.assertIn("its table is not today's", text)
        self.assertEqual(self.measured("--write")[0], 0)
        page = (self.folder / "docs/architecture.md").read_text()
        self.assertIn("| core | 1 | 4 | 4 |", page)
        self.assertTrue(page.endswith("<!-- end -->\n\nThe rest.\n"))
        self.assertEqual(self.measured("--check"), (0, "\nbudgets: 4 files, 0 violations\n"))

    def test_one_line_more_is_told(self):
        self.write("core/add.cpp", CODE + "\n")
        self.measured("--write")
        code, text = self.measured("--check")
        self.assertEqual(code, 1)
        self.assertIn("core: expected at most 4 lines, found 5", text)

    def test_a_comment_without_its_noun_is_told(self):
        self.write("core/add.cpp", CODE.replace("Adds", "What adds"))
        self.measured("--write")
        self.assertIn("core: expected at most 0 headless, found 1", self.measured("--check")[1])

    def test_tests_are_no_product(self):
        self.budget("product", cpp_lines=4)
        self.measured("--write")
        self.assertEqual(self.measured("--check")[0], 0)

    def test_other_words_are_refused(self):
        self.assertEqual(self.measured("--chek")[0], 2)


if __name__ == "__main__":
    unittest.main()
