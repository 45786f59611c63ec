"""Debug-me labs: a broken file is given; its mistake is to be found, by name and by line."""
import difflib
import pathlib
import re
import sys
import textwrap
import tomllib

from catalogue import Lab, LabError, STAGES, all_labs, find_lab, without_marks
from files import write_file
from workspace import HIDDEN, Workspace

sys.path.insert(0, str(STAGES.parent / "property_tests" / "mutants"))
import generate  # noqa: E402

NEIGHBOURS = 3  # labs before this one whose mistakes are offered, too


class DebugLab:
    """A lab whose lab.toml has a [debug] table: a planted mistake, and a user's report of it."""

    def __init__(self, lab: Lab):
        table = tomllib.loads((lab.folder / "lab.toml").read_text())["debug"]
        self.lab, self.story, self.points = lab, table["story"], table["points"]
        self.mistake = next(m for m in lab.mistakes if m["id"] == table["mistake"])
        self.name = self.mistake["name"]

    def broken(self) -> str:
        """The stage's file with the mistake in it."""
        text = self.lab.header
        for edit in generate.edits_of(self.mistake):
            text = generate.apply_edit(text, edit, self.mistake["id"])
        return re.sub(r"^[ ]+\n", "", without_marks(text), flags=re.MULTILINE)

    def lines(self) -> set[int]:
        """Numbers of the lines of the broken file with the mistake; for a missing line, its two neighbours."""
        right, wrong = self.lab.solution().splitlines(), self.broken().splitlines()
        found = set()
        for kind, _, _, first, last in difflib.SequenceMatcher(None, right, wrong,
                                                               autojunk=False).get_opcodes():
            if kind == "delete":
                found |= {first, first + 1}
            elif kind != "equal":
                found |= set(range(first + 1, last + 1))
        return found

    def choices(self) -> list[str]:
        """Names to choose from: mistakes of this lab and of the labs before it."""
        labs = all_labs()
        at = [lab.id for lab in labs].index(self.lab.id)
        near = labs[max(0, at - NEIGHBOURS):at + 1]
        return sorted({m["name"] for lab in near for m in lab.mistakes})

    def file(self, workspace: Workspace) -> pathlib.Path:
        return workspace.path / f"{self.lab.id}_{self.lab.name}" / "debug" / f"{self.lab.name}.h"


def debug_labs() -> list[DebugLab]:
    return [DebugLab(lab) for lab in all_labs() if "\n[debug]\n" in
            (lab.folder / "lab.toml").read_text()]


def find_debug_lab(word: str) -> DebugLab:
    lab = find_lab(word)
    for one in debug_labs():
        if one.lab.id == lab.id:
            return one
    known = ", ".join(f"{one.lab.id} {one.lab.name}" for one in debug_labs())
    raise LabError(f'lab: expected one with something to debug, {known}, found "{word}"')


def note_of(workspace: Workspace, lab: Lab) -> dict:
    return workspace.of(lab).setdefault("debug", {"tries": 0, "found": False})


def show_all(workspace: Workspace) -> int:
    print("lab                     tries  found  points")
    for one in debug_labs():
        note = note_of(workspace, one.lab)
        print(f"{one.lab.id} {one.lab.name:<22}{note['tries']:>4}  "
              f"{'yes' if note['found'] else 'no':<5}  {one.points:>6}")
    return 0


def hand_out(workspace: Workspace, one: DebugLab, anyway: bool) -> None:
    """Writes the broken file, unless it is there. It shows the solution of the lab itself."""
    if one.file(workspace).exists():
        return
    if not anyway and workspace.of(one.lab)["outcome"] != "done":
        raise LabError(f"lab {one.lab.id}: expected it to be done, since the broken file holds a "
                       f"solution of it, found \"{workspace.of(one.lab)['outcome']}\". "
                       "--anyway shows it all the same", 3)
    write_file(one.file(workspace), one.broken())


def show_one(workspace: Workspace, one: DebugLab, anyway: bool) -> int:
    """Prints the user's report and the broken laws, without the name of the mistake."""
    import attempt
    hand_out(workspace, one, anyway)
    library = workspace.path / HIDDEN / f"{one.lab.id}_{one.lab.name}_debug.so"
    error = attempt.compile_file(workspace.path, one.lab, one.file(workspace), library)
    print(textwrap.fill(f"{one.lab.id} {one.lab.name}: {one.story}", 100))
    print(f"\nThe file  {one.file(workspace).relative_to(workspace.path)}")
    if error:
        print("\n".join(["It does not compile any more:", *error]))
        return attempt.Outcome.DOES_NOT_COMPILE.value
    verdict = attempt.judge(library, attempt.CASES)
    print(f"It is     {verdict.outcome.words()}")
    for line in verdict.lines:
        if line.split()[0] in ("law", "case", "found"):
            print(f"  {line}")
    print("\n" + textwrap.fill("The name is one of " + ", ".join(one.choices()), 100,
                               break_on_hyphens=False))
    print(f"Answer    ringlab lab debug {one.lab.id} NAME LINE")
    return 0


def answer(workspace: Workspace, one: DebugLab, name: str, line: int) -> int:
    """Says which half of an answer is right, and notes it."""
    named, placed = name in (one.name, one.mistake["id"]), line in one.lines()
    with workspace.changing():
        note = note_of(workspace, one.lab)
        note["tries"] += 1
        note["found"] = note["found"] or (named and placed)
    print(f"name  {'right' if named else 'not yet'}: {name}\n"
          f"line  {'right' if placed else 'not yet'}: {line}")
    if not (named and placed):
        return 1
    print(f"  {one.mistake['breaks']}\n  Think: {one.mistake['question']}\n"
          f"  Seen in: {one.mistake['ancestor']}")
    return 0


def run(options) -> int:
    workspace = Workspace(pathlib.Path(options.dir))
    if not options.lab:
        return show_all(workspace)
    one = find_debug_lab(options.lab)
    if not options.mistake:
        return show_one(workspace, one, options.anyway)
    if options.line is None:
        raise LabError("line: expected the number of a line of the broken file, found none")
    return answer(workspace, one, options.mistake, options.line)


def add_words(action) -> None:
    """The words of `ringlab lab debug` beside LAB."""
    action.add_argument("mistake", nargs="?", metavar="NAME", help="your answer: the mistake's name")
    action.add_argument("line", nargs="?", type=int, metavar="LINE", help="and where it stands")
    action.add_argument("--anyway", action="store_true",
                        help="show the file although the lab is not done: it has a solution of it")
