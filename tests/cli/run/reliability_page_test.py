"""Every test that docs/reliability.md names exists."""
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = os.environ.get("RINGLAB_BUILD", str(ROOT / "build"))
CTEST = os.environ.get("RINGLAB_CTEST", "ctest")
GOOGLE_TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")
ID = re.compile(r"`([\w*]+\.[\w*]+)`")


def google_tests():
    return {f"{suite}.{name}" for file in (ROOT / "tests").rglob("*.cpp")
            for suite, name in GOOGLE_TEST.findall(file.read_text())}


def ctest_names():
    listed = subprocess.run([CTEST, "--test-dir", BUILD, "-N"], capture_output=True, text=True,
                            check=True).stdout
    return set(re.findall(r"Test +#\d+: (\S+)", listed))


def exists(name, names):
    pattern = re.compile(re.escape(name).replace(r"\*", r"\w+"))
    return any(pattern.fullmatch(each) for each in names)


def rows():
    """The tables of promises: {"R1": [ids]}."""
    page = (ROOT / "docs/reliability.md").read_text()
    return {row.split()[1]: ID.findall(row) for row in page.splitlines()
            if re.match(r"\| [RV]\d+ \|", row)}


class ReliabilityPageTest(unittest.TestCase):
    def test_every_promise_has_tests_that_exist(self):
        names = google_tests() | ctest_names()
        self.assertEqual(list(rows()), [f"R{number}" for number in range(1, 9)] +
                         [f"V{number}" for number in range(1, 12)])
        for promise, ids in rows().items():
            self.assertGreater(len(ids), 0, promise)
            for name in ids:
                self.assertTrue(exists(name, names), f"{promise}: no test is called {name}")

    def test_a_name_that_does_not_exist_would_be_found(self):
        names = {"cli.faults", "Engine.runs"}
        self.assertTrue(exists("cli.faults", names))
        self.assertTrue(exists("Engine.*", names))
        for name in ("cli.fault", "Engine.run", "Motor.*", "cliXfaults"):
            self.assertFalse(exists(name, names), name)


if __name__ == "__main__":
    unittest.main()
