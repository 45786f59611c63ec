"""The table of stages/README.md, between "<!-- stages -->" and "<!-- end -->", and the end of each lesson, between
"<!-- where next -->" and "<!-- end -->", from stages/stages.txt; and whether a step of the ladder is too large.

A step is how many lines of code a stage's header has that the header before has not, both without comments,
blank lines and includes, and with the stage's name replaced. What is gone is not counted: it stands in the
stage that is included for it. A stage that goes on from another one than the last, because it includes it,
is measured over that."""
import pathlib
import re

from ladder import LESSON_END, ROOT, Stage, all_stages, steps_of

MOST_NEW_LINES = 60
TABLE = re.compile(r"(<!-- stages -->\n).*?(<!-- end -->)", re.DOTALL)


def lesson(stages: list[Stage], at: int) -> str:
    """The lesson with its end: how to see a change at work, and where to go on."""
    stage = stages[at]
    links = [f"[the code]({stage.name}.h)", "[glossary](../../docs/glossary.md)"]
    if at > 0:
        links.insert(0, f"[← {stages[at - 1].title()}](../{stages[at - 1].folder}/lesson.md)")
    if at + 1 < len(stages):
        links.append(f"[{stages[at + 1].title()} →](../{stages[at + 1].folder}/lesson.md)")
    end = ("\n<!-- where next -->\n"
           f"After an edit: `cmake --build build --target ringlab`, then `build/bin/ringlab verify "
           f"{stage.name}`.\n\n{' · '.join(links)}\n<!-- end -->\n")
    return LESSON_END.sub("", stage.lesson) + end


def costs_table(stages: list[Stage], steps: list[int]) -> str:
    rows = "".join(f"| [{s.title()}]({s.folder}/lesson.md) | {s.idea()} | {step or 'all'} "
                   f"| {s.costs()[0]} | {s.costs()[1]} |\n" for s, step in zip(stages, steps))
    return ("| stage | the one new idea | new lines | K/V held by a rank | sent by a rank |\n"
            "|---|---|---:|---|---|\n" + rows)


def wanted_files(stages: list[Stage], steps: list[int]) -> dict[pathlib.Path, str]:
    files = {s.path / "lesson.md": lesson(stages, at) for at, s in enumerate(stages)}
    path = ROOT / "stages" / "README.md"
    files[path] = TABLE.sub(lambda found: found[1] + costs_table(stages, steps) + found[2],
                            path.read_text())
    return files


def made() -> tuple[dict, list]:
    stages = all_stages()
    steps = steps_of(stages)
    wrong = [f"stages/{stage.folder}: {step} new lines, at most {MOST_NEW_LINES} are a step"
             for stage, step in zip(stages, steps) if step > MOST_NEW_LINES]
    return wanted_files(stages, steps), wrong
