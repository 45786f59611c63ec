"""The k-th request of a kind is refused, or all from it on, for every k until a run asks no more: commands
that write end right or with exit code 4 and a message that names what was refused; results are there whole
or not at all, and what was there before stays. RINGLAB_REFUSALS_ALL=1 tries every k of memory, too."""
import bisect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from program import PROGRAM, ProgramTest

REFUSALS = os.environ.get("RINGLAB_REFUSALS", "")
EVERY = bool(os.environ.get("RINGLAB_REFUSALS_ALL"))
LAB = pathlib.Path(__file__).resolve().parents[3] / "cli/lab/main.py"
FOR_EVER = 10**9
OF_FILES = ("create", "write", "grow", "sync", "rename", "names", "folder")
NAMED = {"memory": "memory", "threads": "thread|Resource temporarily unavailable",
         "descriptors": "Too many open files", "sync": "Input/output error",
         "rename": "Input/output error", "names": "Input/output error"}  # others: a full disk
# Requests of memory between two that are refused; the last ones, when results stand, are all tried.
STRIDE = 1 if EVERY else 997
LAST = 12

MADE = ["--random", "--tokens", "16", "--heads", "2"]
RUN = ["run", "optimized", *MADE, "--ranks", "2", "--json", "r.json", "--trace", "t.json"]
COMMANDS = {
    "run": [*RUN, "--output", "o.safetensors"],
    "run_to_a_folder": [*RUN, "--output", "new/"],
    "run_backward": ["run", "optimized", *MADE, "--backward", "--output", "o.safetensors"],
    "verify": ["verify", "ring", *MADE, "--laws", "equals_reference", "--cases", "1", "--json", "r.json",
               "--html", "r.html", "--certificate", "c.json"],
    "plan": ["plan", "--tokens", "4096", "--ranks", "1,2", "--json", "r.json", "--html", "r.html"],
    "simulate": ["simulate", "--tokens", "4096", "--ranks", "2", "--json", "r.json", "--trace", "t.json",
                 "--svg", "r.svg", "--html", "r.html"],
    "bench": ["bench", "--tokens", "16", "--ranks", "2", "--rounds", "1", "--json", "r.json",
              "--html", "r.html"],
    "compare": ["compare", *MADE, "--ranks", "2", "--json", "r.json", "--html", "r.html"],
    "list": ["list", "--json", "r.json"],
}
# In a folder with a secret and two labs, of which the first does not compile: its line is outside of what
# is handed in.
LAB_COMMANDS = {
    "bundle": ["bundle", "one.zip", "--secret", "secret", "--stages", "04-05"],
    "export": ["export", "labs", "--stages", "06-06"],
    "test": ["--dir", "labs", "--json", "r.json", "test", "04"],
    "reset": ["--dir", "labs", "reset", "04"],
    "hint": ["--dir", "labs", "hint", "05"],
    "submit": ["--dir", "labs", "submit", "one.zip"],
}


def contents(folder):
    """What lies in a folder, by name: the bytes of files, None for folders."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
            for path in folder.rglob("*")}


def shown(found):
    """Contents without those of a lab's own folder, which are made anew each time."""
    return {name: content for name, content in found.items() if ".ringlab" not in name.split("/")}


@unittest.skipUnless(REFUSALS, "no library that refuses")
class RefusalTest(ProgramTest):
    program = [PROGRAM]
    right = 0  # the exit code of a run that is refused nothing
    numbers = range(10**6)  # of the first request that is refused

    def start(self, words, folder, wish=""):
        """Runs a command in a folder; what it did, and True where something was refused."""
        told, tells = os.pipe()
        refusing = {"LD_PRELOAD": REFUSALS, "RINGLAB_REFUSE": wish, "RINGLAB_TOLD": str(tells),
                    # NVIDIA's own die of refusals while they are loaded.
                    "RINGLAB_NCCL_LIBRARY": "none", "RINGLAB_CUDNN_LIBRARY": "none"}
        done = subprocess.run([*self.program, *words], capture_output=True, cwd=folder, timeout=60,
                              env=os.environ | refusing, pass_fds=[tells])
        os.close(tells)
        with open(told, "rb") as reader:
            return done, bool(reader.read())

    def refused(self, words, earlier, whole, kind, first, count):
        """True where something was refused: the promises are kept."""
        folder = self.folder / "here"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(earlier, folder)
        before = contents(folder)
        wish = f"{kind}:{first}:{count}:{pathlib.Path(self.program[0]).name}"
        done, something = self.start(words, folder, wish)
        after, error = contents(folder), done.stderr.decode()
        said = f"{wish} {words}: {done.returncode}\n{error}\n{sorted(before)}\n{sorted(after)}"
        if done.returncode == self.right:
            self.assertEqual(sorted(shown(after)), sorted(shown(whole)), said)
            self.assertNotIn(b"before", after.values(), said)
            return something
        self.assertEqual(done.returncode, 4, said)
        self.assertRegex(error, r"^ringlab: [^\n]+\n$", said)
        self.assertRegex(error, NAMED.get(kind, "No space left on device"), said)
        if kind in OF_FILES:
            self.assertRegex(error, "|".join(map(re.escape, whole)), said)
        if kind in ("rename", "names") and count == FOR_EVER:  # no way back: another name is told
            for kept, name in re.findall(r"(\S*?\.(\S+?)\.(?:\d+\.\d+|\w{8})\.tmp(?:\.old)?)", error):
                own = str(pathlib.Path(kept).with_name(name))
                if (earlier := after.pop(kept)) != before.get(own):
                    self.assertFalse(json.loads(earlier)["complete"], said)
                before[own] = after[own]
        if after.get("r.json") != before.get("r.json"):
            document = json.loads(after["r.json"])
            self.assertEqual(document.get("error", {"exit_code": 4})["exit_code"], 4, said)
            self.assertTrue("error" in document or not document["complete"], said)
            before["r.json"] = after["r.json"]
        self.assertEqual(shown(after), shown(before), said)
        return something

    def numbers_of(self, kind, words, folder):
        """Numbers of the first request that is refused."""
        if kind != "memory":
            return self.numbers
        if EVERY:
            return range(10**6)
        program = pathlib.Path(self.program[0]).name

        def is_past(number):
            scratch = self.folder / "scratch"
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.copytree(folder, scratch)
            return not self.start(words, scratch, f"memory:{number}:1:{program}")[1]
        most = bisect.bisect_left(range(10**6), True, key=is_past)
        return [*range(0, most, STRIDE), *range(max(0, most - LAST), 10**6)]

    def refuse_all(self, words, kinds, earlier=None):
        """Each request of each kind, with an empty folder and with earlier results in it, or in one folder."""
        empty, full = self.folder / "empty", self.folder / "full"
        empty.mkdir()
        shutil.copytree(earlier or empty, full)
        done, _ = self.start(words, full)
        self.assertEqual(done.returncode, self.right, done.stderr)
        whole = contents(full)
        for path in full.rglob("*"):
            if path.is_file():
                path.write_bytes(b"before")
        folders = [earlier] if earlier else [empty, full]
        for kind in kinds:
            for first in self.numbers_of(kind, words, earlier or empty):
                tries = [(folder, count) for folder in folders for count in (1, FOR_EVER)]
                if kind == "memory" and not EVERY:
                    tries = [(empty, 1), (full, FOR_EVER)]
                with self.subTest(kind=kind, first=first):
                    if not any([self.refused(words, folder, whole, kind, first, count)
                                for folder, count in tries]):
                        break


class EveryRefusalTest(RefusalTest):
    """Each command in an empty folder, and where its results are already."""


class LabRefusalTest(RefusalTest):
    program = [sys.executable, "-B", str(LAB)]
    numbers = range(10**6) if EVERY else (*range(4), *range(4, 10**6, 9))

    def setUp(self):
        super().setUp()
        os.environ["RINGLAB_PROGRAMS"] = str(pathlib.Path(PROGRAM).resolve().parent)
        self.earlier = self.folder / "earlier"
        labs = self.earlier / "labs"
        subprocess.run([*self.program, "export", labs, "--stages", "04-05"], check=True, stdout=subprocess.DEVNULL)
        (labs / "04_merge/merge.h").write_text("#include <none>\n" + (labs / "04_merge/merge.h").read_text())
        (self.earlier / "secret").write_bytes(b"before every guess")


def test_of(words):
    return lambda self: self.refuse_all(words, (*OF_FILES, "descriptors", "threads", "memory"))


def test_of_lab(words, right):
    def test(self):
        self.right = right
        for result in {"one.zip", "r.json"} & set(words):
            (self.earlier / result).write_bytes(b"before")
        self.refuse_all(words, ("create", "write", "rename", "folder"), self.earlier)
    return test


for name, line in COMMANDS.items():
    setattr(EveryRefusalTest, f"test_{name}", test_of(line))
for name, line in LAB_COMMANDS.items():
    setattr(LabRefusalTest, f"test_lab_{name}", test_of_lab(line, {"submit": 1, "test": 11}.get(name, 0)))


if __name__ == "__main__":
    unittest.main()
