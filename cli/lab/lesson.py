"""The lesson of a stage for a learner's folder, with its file, commands and links."""
import os
import pathlib
import re

from catalogue import Lab, PROGRAMS

GAPS = re.compile(r"\b([Gg])aps?\s((?:`\w+`(?:,\s(?:and\s)?|\sand\s)?)+)")
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
AFTER_AN_EDIT = re.compile(r"^After an edit: .*$", re.MULTILINE)


def lesson_of(lab: Lab, folder: pathlib.Path, to_come: set[str]) -> str:
    """The lesson of a lab whose files lie in `folder`, beside the folders of other labs; some of the files
    are yet to come."""
    text = (lab.folder / "lesson.md").read_text()
    text = AFTER_AN_EDIT.sub(f"After an edit: `ringlab lab test {lab.id}`.", text)
    text = text.replace("build/bin/ringlab", str(PROGRAMS.resolve() / "ringlab"))
    text = GAPS.sub(lambda found: exercises_of(lab, found), text)
    return LINK.sub(lambda found: link_from(lab, folder, to_come, found), text)


def exercises_of(lab: Lab, gaps: re.Match) -> str:
    """The places of the exercises in a learner's file."""
    holders = [next((exercise.name for exercise in lab.exercises
                     if f"// [gap: {gap}]" in lab.region(exercise.name)["body"]), None)
               for gap in re.findall(r"`(\w+)`", gaps[2])]
    names = [f"`{name}`" for name in dict.fromkeys(holders) if name]
    words = [f"exercise{'s' if len(names) > 1 else ''} " + ", ".join(names)] if names else []
    words += ["what is given"] if None in holders else []
    end = re.search(r"[^`]*$", gaps[2])[0]
    text = " and ".join(words) + end
    return text[0].upper() + text[1:] if gaps[1] == "G" else text


def link_from(lab: Lab, folder: pathlib.Path, to_come: set[str], link: re.Match) -> str:
    """A link to a file beside the lesson, or else to the page in ringlab's own tree."""
    beside = os.path.normpath(folder / link[1])
    is_there = beside in to_come or os.path.exists(beside)
    target = link[1] if is_there else os.path.normpath(lab.folder / link[1])
    return f"]({target}{link[2] or ''})"
