"""README and the pages behind its doors: every command runs, every figure is that of its source."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))

from program import ProgramTest  # noqa: E402

PAGES = ["README.md", "docs/check.md", "docs/run.md"]
# Words that a reader puts something else for, or that take longer than a test may.
SHORTER = {"--time": "4", "65536": "2048"}
NOT_RUN = {"scripts/demo", "scripts/test"}  # they run everything


def commands(page):
    text = (ROOT / page).read_text()
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from (line for line in block.splitlines() if line.strip())
    yield from re.findall(r"`(build/bin/ringlab \w[^`]*)`", text)


class Doors(ProgramTest):
    def folder_as_shown(self):
        """What the commands take to be there: a plugin, tensors, a built program."""
        (self.folder / "build").mkdir()
        os.symlink(os.environ["RINGLAB_BUILD"] + "/bin", self.folder / "build/bin")
        shutil.copy(ROOT / "README.md", self.folder)
        shutil.copy(ROOT / "README.md", self.folder / "FILE")
        shutil.copy(os.environ["RINGLAB_PLUGIN"], self.folder / "libmine.so")
        self.run_here("build/bin/ringlab run ring --random --tokens 64 --ranks 2 --output made")
        (self.folder / "DIR").mkdir()
        for name in "qkv":
            shutil.copy(self.folder / "made/o.npy", self.folder / f"DIR/{name}.npy")
        broken = self.run_here(f"build/bin/ringlab verify {os.environ['RINGLAB_BROKEN']} --laws "
                               "equals_reference", expected=1)
        self.token = re.search(r"replay +\S+ verify \S+ --replay (\S+)", broken)[1]

    def run_here(self, line, expected=0):
        words = shlex.split(line, comments=True)
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=240,
                              env=os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.assertEqual(done.returncode, expected, f"{line}\n{done.stdout[-2000:]}\n{done.stderr}")
        return done.stdout

    def test_every_command_runs(self):
        self.folder_as_shown()
        for page in PAGES:
            shown = list(commands(page))
            self.assertTrue(shown, page)
            for line in shown:
                words = shlex.split(line, comments=True)
                if words[0] in NOT_RUN:
                    self.assertTrue((ROOT / words[0]).exists())
                    continue
                if words[0] not in ("build/bin/ringlab", "mpirun"):
                    continue  # of the Python package and of CMake: tests of their own
                for at, word in enumerate(words):
                    if word in SHORTER and word.startswith("--"):
                        words[at + 1] = SHORTER[word]
                    elif word in SHORTER:
                        words[at] = SHORTER[word]
                is_replay = "TOKEN" in words
                if is_replay:
                    words = [words[0], "verify", os.environ["RINGLAB_BROKEN"], "--replay", self.token]
                if words[1] == "verify" and "--random" not in words and not is_replay:
                    words += ["--cases", "2"]
                with self.subTest(line):
                    self.run_here(shlex.join(words), expected=1 if is_replay else 0)


class Readme(unittest.TestCase):
    def test_fits_one_screen_and_counts_the_stages(self):
        text = (ROOT / "README.md").read_text()
        self.assertLessEqual(len(text.splitlines()), 45)
        stages = re.findall(r"^\d\d_\w+", (ROOT / "stages/stages.txt").read_text(), re.MULTILINE)
        self.assertIn(f"{len(stages)} readable stages", re.sub(r"\s+", " ", text))


if __name__ == "__main__":
    unittest.main()
