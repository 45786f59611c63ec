"""The regions of a file that a learner wrote, and a clean copy of the file with them."""
import dataclasses
import re

from catalogue import Lab, stubs_in, with_include, without_marks


@dataclasses.dataclass
class Written:
    """The text between "Yours: NAME." and "End of NAME.", and the number of its first line."""
    text: str
    line: int

    def is_stub(self, exercise: str) -> bool:
        return exercise in stubs_in(self.text)


def pattern_of(exercise: str) -> re.Pattern:
    begin, end = rf"[ \t]*// Yours: {exercise}\.", rf"[ \t]*// End of {exercise}\."
    return re.compile(rf"^{begin}.*?\n(?P<text>.*?)^{end}.*?$", re.DOTALL | re.MULTILINE)


def written_in(file: str, exercise: str) -> Written | None:
    """The learner's text of an exercise; None unless its two comments stand in the file once each."""
    found = list(pattern_of(exercise).finditer(file))
    if len(found) != 1 or file.count(f"// End of {exercise}.") != 1:
        return None
    return Written(found[0]["text"], 1 + file.count("\n", 0, found[0].start("text")))


def outside(lab: Lab, file: str) -> str:
    """The file without its exercises."""
    for exercise in lab.exercises:
        file = pattern_of(exercise.name).sub("", file)
    return file


def differs_outside(lab: Lab, file: str) -> bool:
    return outside(lab, file).split() != outside(lab, lab.skeleton()).split()


def composed(lab: Lab, written: dict[str, Written], name: str) -> str:
    """The stage's file of the repository with these exercises as the learner wrote them.

    The compiler speaks of the lines of a learner's file, `name`."""
    text = lab.header
    for exercise in written:
        text = text.replace(lab.region(exercise)[0], here(exercise))
    text = with_include(without_marks(text), "stages/common/not_done.h")
    for exercise, mine in written.items():
        text = text.replace(here(exercise), f'#line {mine.line} "{name}"\n{mine.text}\n')
    return text


def here(exercise: str) -> str:
    return f"// <what was written of {exercise}>\n"
