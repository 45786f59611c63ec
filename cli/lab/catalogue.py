"""The labs: stages with a lab.toml, their exercises, questions and files for learners."""
import dataclasses
import difflib
import os
import pathlib
import re
import textwrap
import tomllib

STAGES = pathlib.Path(__file__).resolve().parents[2] / "stages"
PROGRAMS = pathlib.Path(os.environ.get("RINGLAB_PROGRAMS", STAGES.parent / "build" / "bin"))
REGION = r"(?P<indent>[ ]*)// \[lab: {name}\]\n(?P<body>.*?)[ ]*// end \[lab: {name}\]\n"
NOT_DONE = re.compile(r'not_done\s*\(\s*"(\w+)"\s*\)')
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)  # or a text


class LabError(Exception):
    """An error whose text says what was expected, found, and to do. `code` is the exit code."""

    def __init__(self, text: str, code: int = 2):
        super().__init__(text)
        self.code = code


@dataclasses.dataclass
class Exercise:
    name: str
    task: str
    points: int
    hints: list[str]
    stub: str


@dataclasses.dataclass
class Question:
    ask: str
    answer: str


class Lab:
    """A stage that is to be written: `id` "05", `name` "ring"."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.id, self.name = folder, folder.name[:2], folder.name[3:]
        table = tomllib.loads((folder / "lab.toml").read_text())
        self.title, self.goal, self.seconds = table["title"], table["goal"], table["seconds"]
        self.exercises = [Exercise(**exercise) for exercise in table["exercise"]]
        self.answers = table.get("answers", [])  # declarations that the headers for it lack
        self.questions = [Question(**question) for question in table.get("question", [])]
        self.header = (folder / f"{self.name}.h").read_text()
        self.mistakes = tomllib.loads((folder / "mistakes.toml").read_text())["mistake"]

    def region(self, exercise: str) -> re.Match:
        """The part of the finished header that a learner writes."""
        pattern = re.compile(REGION.format(name=exercise), re.DOTALL)
        found = pattern.findall(self.header)
        if len(found) != 1:
            raise LabError(f"{self.folder}: lab region {exercise}: expected once, found "
                           f"{len(found)} times", 4)
        return pattern.search(self.header)

    def file_name(self) -> str:
        return f"{self.id}_{self.name}/{self.name}.h"

    def skeleton(self) -> str:
        """The header with a stub in each region, and without the marks of planted mistakes."""
        text = self.header
        for exercise in self.exercises:
            found = self.region(exercise.name)
            indent = found["indent"]
            task = textwrap.fill(f"Yours: {exercise.name}. {exercise.task}", 98,
                                 initial_indent=f"{indent}// ", subsequent_indent=f"{indent}// ",
                                 break_long_words=False, break_on_hyphens=False)
            stub = f"{task}\n{exercise.stub.strip(chr(10))}\n{indent}// End of {exercise.name}.\n"
            text = text.replace(found[0], stub)
        return with_include(without_marks(text), "stages/common/not_done.h")

    def solution(self) -> str:
        """The finished header without the marks of planted mistakes."""
        return without_marks(self.header)

    def mistakes_named(self, name: str) -> list[dict]:
        """The planted mistakes that a diagnosis calls by this name."""
        return [m for m in self.mistakes if name in (m.get("name"), m["id"])]


def with_include(header: str, name: str) -> str:
    """The header with one more include, behind its last one."""
    end = [found.end() for found in re.finditer(r'^#include ".*"\n', header, re.MULTILINE)][-1]
    return f'{header[:end]}#include "{name}"\n{header[end:]}'


def stubs_in(text: str) -> set[str]:
    """Exercises whose not_done() still stands in a learner's file. In a comment it does not."""
    code = COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    return set(NOT_DONE.findall(code))


def without_marks(header: str) -> str:
    """The header without the marks of exercises and of planted mistakes."""
    return re.sub(r"[ ]*// (end )?\[(gap|lab): \w+\]\n", "", header)


def all_labs() -> list[Lab]:
    folders = re.findall(r"^(\d\d_\w+)", (STAGES / "stages.txt").read_text(), re.MULTILINE)
    return [Lab(STAGES / folder) for folder in folders if (STAGES / folder / "lab.toml").exists()]


def find_lab(word: str) -> Lab:
    """The lab with this number, name or folder: "05", "5", "ring", "05_ring"."""
    labs = all_labs()
    for lab in labs:
        if word in (lab.id, str(int(lab.id)), lab.name, f"{lab.id}_{lab.name}"):
            return lab
    known = ", ".join(f"{lab.id} {lab.name}" for lab in labs)
    raise LabError(f'lab: expected one of {known}, found "{word}"' +
                   did_you_mean(word, [lab.name for lab in labs]))


def did_you_mean(word: str, known: list[str]) -> str:
    """The end of a message about a word that is none of those known."""
    near = difflib.get_close_matches(word, known, 1)
    return f". Did you mean {near[0]}?" if near else ""


def labs_between(words: str | None) -> list[Lab]:
    """The labs of "02-05" or "02"; all unless given."""
    labs = all_labs()
    if words:
        first, _, last = words.partition("-")
        ends = [find_lab(first), find_lab(last or first)]
        labs = [lab for lab in labs if ends[0].id <= lab.id <= ends[1].id]
    if not labs:
        raise LabError(f'--stages: expected FIRST-LAST, found "{words}"')
    return labs
