"""README, the pages behind its doors and those about runs: every command runs."""
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

import mpi_job  # noqa: E402
from program import ProgramTest, fenced_lines, floats, safetensors  # noqa: E402

# Exit codes that commands of a page may end with. Where there is no GPU, a command that wants one says so
# (4); that its options exist is known before (2). Commands of lessons, course, claims, labs and grading
# are run by tests of their own.
PAGES = {"README.md": {0}, "docs/check.md": {0}, "docs/run.md": {0}, "docs/install.md": {0}, "docs/simulate.md": {0}, "docs/plan.md": {0},
         "docs/traces.md": {0}, "docs/certificates.md": {0}, "docs/cluster.md": {0}, "docs/gpu.md": {0, 4}}
# Words that a reader puts something else for, or that take longer than a test may.
SHORTER = {"--time": "4", "65536": "2048", "1048576": "2048"}
NOT_RUN = re.compile("scripts/")  # they install and build; .ci/run runs them


def commands(page):
    text = (ROOT / page).read_text()
    indented = "".join(re.findall(r"(?:^    .*\n)+", text, re.MULTILINE))
    for line in fenced_lines(text) + indented.replace("\\\n", " ").splitlines():
        line = re.sub(r"^(ringlab|ringlab_goals) ", r"build/bin/\1 ", line.strip())
        line = re.sub(r"^(mpirun .*?) ringlab ", r"\1 build/bin/ringlab ", line)
        if re.match(r"build/bin/ringlab(_goals)? \w|mpirun |scripts/", line) and "$" not in line and "…" not in line:
            yield line
    yield from re.findall(r"`(build/bin/ringlab \w[^`]*)`", text)


class Doors(ProgramTest):
    def folder_as_shown(self):
        """What the commands take to be there: a plugin, tensors, a built program."""
        (self.folder / "build").mkdir()
        os.symlink(os.environ["RINGLAB_BUILD"] + "/bin", self.folder / "build/bin")
        for name in ("README.md", "FILE"):  # each byte is a token
            (self.folder / name).write_bytes((ROOT / "README.md").read_bytes()[:400])
        shutil.copy(os.environ["RINGLAB_PLUGIN"], self.folder / "libmine.so")
        self.run_here("build/bin/ringlab run ring --random --tokens 64 --ranks 2 --output made")
        (self.folder / "qkv.safetensors").write_bytes(
            safetensors({name: ("F32", (1, 2, 4, 8), floats(64)) for name in "qkv"}))
        shutil.copy(ROOT / "reference/model/transformers/gpt2.json", self.folder / "config.json")
        (self.folder / "DIR").mkdir()
        for name in "qkv":
            shutil.copy(self.folder / "made/o.npy", self.folder / f"DIR/{name}.npy")
        broken = self.run_here(f"build/bin/ringlab verify {os.environ['RINGLAB_BROKEN']} --laws "
                               "equals_reference", expected={1})
        self.token = re.search(r"replay +\S+ verify \S+ --replay (\S+)", broken)[1]

    def run_here(self, line, expected=(0,)):
        words = shlex.split(line, comments=True)
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=240,
                              env=mpi_job.environment(OMPI_MCA_rmaps_base_oversubscribe="1"))
        self.assertIn(done.returncode, expected, f"{line}\n{done.stdout[-2000:]}\n{done.stderr}")
        return done.stdout

    def as_tested(self, line):
        """The words of a command, shorter, and the exit code it has to end with where that is known."""
        words = shlex.split(line, comments=True)
        is_small = "simulate" in words or "plan" in words
        for at, word in enumerate(words):
            if word == "--time":
                words[at + 1] = SHORTER[word]
            elif not is_small:
                words[at] = SHORTER.get(word, word)
        if "TOKEN" in words:
            return [words[0], "verify", os.environ["RINGLAB_BROKEN"], "--replay", self.token], {1}
        if words[1:2] == ["verify"] and "--check-certificate" not in words:
            words += ["--cases", "1", "--quick", "--rows", "256"]
        return words, None

    def test_every_command_runs(self):
        self.folder_as_shown()
        for page, codes in PAGES.items():
            shown = list(commands(page))
            self.assertTrue(shown, page)
            for line in shown:
                words, code = self.as_tested(line)
                with self.subTest(page, line=line):
                    if NOT_RUN.match(words[0]):
                        self.assertTrue((ROOT / words[0]).exists())
                    else:
                        self.run_here(shlex.join(words), code or codes)


class Readme(unittest.TestCase):
    def test_fits_one_screen_and_counts_the_stages(self):
        text = (ROOT / "README.md").read_text()
        self.assertLessEqual(len(text.splitlines()), 45)
        stages = re.findall(r"^\d\d_\w+", (ROOT / "stages/stages.txt").read_text(), re.MULTILINE)
        self.assertIn(f"{len(stages)} readable stages", re.sub(r"\s+", " ", text))


if __name__ == "__main__":
    unittest.main()
