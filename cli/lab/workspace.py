"""A learner's folder: a file per lab, and the verdicts so far."""
import contextlib
import fcntl
import json
import os
import pathlib

from catalogue import Lab, LabError, all_labs, stubs_in
from files import write_files, write_texts
from lesson import lesson_of
from submission import WORK_LOG, text_of

STATE = "ringlab-lab.json"
HIDDEN = ".ringlab"  # a folder for what is made from the files
NOTHING_TRIED = {"schema": 1, "labs": {}}
README = """# Labs

Each folder has one file to write and the lesson that goes with it. Begin with

    ringlab lab next

and write where a file says "Yours". Then, in this folder,

    ringlab lab test {first}      compiles your file and judges it
    ringlab lab watch        does so whenever you save a file
    ringlab lab hint {first}      the next of three hints for each exercise
    ringlab lab why {first}       the smallest case that your last try got wrong, again: shows what your file prints
    ringlab lab reset {first}     puts your file aside and begins anew
    ringlab lab list         how far you are

`ringlab lab --help` has the rest.
"""
AGENTS = """# For assistants

The person here learns by writing these files. Explain, ask questions, point at the lesson and at what
`ringlab lab test` said. Do not write the code between "Yours" and "End of", and do not paste it from
elsewhere.
"""

WORK_LOG_TEXT = """# Work log

A few lines for each lab, before and after. Whoever teaches may ask about them; `ringlab lab submit` packs
this file, too.
"""
WORK_LOG_OF = """
## {title}

- Before I ran it I expected:
- What was wrong first, by its name, and how I saw it:
- A figure of a run of mine, and the command that printed it:
- What I would ask:
"""


def check_state(state) -> None:
    """ValueError unless the state has the form that save() writes."""
    labs = state.get("labs") if isinstance(state, dict) else None
    if not isinstance(labs, dict):
        raise ValueError('no object with "labs", by number')
    for number, note in labs.items():
        kinds = {"outcome": str, "tries": int, "hints": dict, "mistakes": dict}
        given = {"mistakes": {}} | note if isinstance(note, dict) else {}
        if not all(isinstance(given.get(name), kind) for name, kind in kinds.items()):
            raise ValueError(f'no "outcome", "tries" and "hints" of lab {number}')


class Workspace:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.file = path / STATE
        self.state = self.read()
        if self.file.exists() or any((path / lab.file_name()).exists() for lab in all_labs()):
            return
        raise LabError(f"{path}: expected a folder that `ringlab lab export` wrote, found no {STATE} "
                       "there. Change into one, or write one: ringlab lab export DIR", 3)

    def read(self) -> dict:
        try:
            state = json.loads(self.file.read_bytes())
            check_state(state)
            return state
        except FileNotFoundError:
            return dict(NOTHING_TRIED, labs={})
        except (ValueError, RecursionError) as error:
            raise LabError(f"{self.file}: expected what `ringlab lab` wrote, found {error}. "
                           "Remove it to begin to count anew; your files stay", 3) from None

    def source(self, lab: Lab) -> pathlib.Path:
        source = self.path / lab.file_name()
        if not source.exists():
            raise LabError(f"{source}: expected your file of lab {lab.id}, found none. "
                           f"`ringlab lab reset {lab.id}` writes it", 3)
        return source

    def text(self, lab: Lab) -> str:
        return text_of(self.source(lab).read_bytes(), self.source(lab))

    def of(self, lab: Lab) -> dict:
        return self.state["labs"].setdefault(lab.id, {"outcome": "not tried", "tries": 0,
                                                      "hints": {}})

    @contextlib.contextmanager
    def changing(self):
        """Locks the notes, which may then be changed, and gives a dict of contents of other files, which
        are written together with them."""
        (self.path / HIDDEN).mkdir(exist_ok=True)
        with (self.path / HIDDEN / "lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.state, contents = self.read(), {}
            yield contents
            write_files(contents | {self.file: (json.dumps(self.state, indent=1) + "\n").encode()})

    def is_exported(self, lab: Lab) -> bool:
        """True when the lab's file was once written here; the folder that `debug` makes does not count."""
        folder = (self.path / lab.file_name()).parent
        return (self.state["labs"].get(lab.id, {}).get("tries", 0) > 0 or
                folder.is_dir() and [one.name for one in folder.iterdir()] != ["debug"])

    def is_missing(self, lab: Lab) -> bool:
        return not (self.path / lab.file_name()).exists()

    def not_done(self, lab: Lab) -> list[str]:
        """The exercises whose stub still stands."""
        left = stubs_in(self.text(lab))
        return [exercise.name for exercise in lab.exercises if exercise.name in left]

    def reset(self, lab: Lab) -> pathlib.Path | None:
        """Writes the lab's file as at the beginning; returns the path that the old one has then."""
        path, aside = self.path / lab.file_name(), None
        with self.changing() as contents:
            skeleton = lab.skeleton().encode()
            if path.exists() and path.read_bytes() != skeleton:
                number = 1
                while (aside := path.with_suffix(f".h.{number}")).exists():
                    number += 1
                contents[aside] = path.read_bytes()
            contents[path] = skeleton
            self.state["labs"].pop(lab.id, None)
        return aside


def exported(workspace: Workspace) -> list[Lab]:
    """The exported labs, with those whose files were deleted since."""
    return [lab for lab in all_labs() if workspace.is_exported(lab)]


def count_of_labs(count: int) -> str:
    return f"{count} lab" + "s" * (count != 1)


def export(path: pathlib.Path, labs: list[Lab]) -> list[str]:
    """Writes labs, and refuses to overwrite a lab's file; returns the pages that the learner has changed:
    those stay as they are."""
    for lab in labs:
        if (path / lab.file_name()).exists():
            raise LabError(f"{path / lab.file_name()}: expected no such file yet, found one. "
                           "Take another folder, or `ringlab lab reset`", 3)
    texts = {path / lab.file_name(): lab.skeleton() for lab in labs}
    lessons = {(path / lab.file_name()).parent / "lesson.md": lab for lab in labs}
    to_come = {os.path.normpath(file) for file in (*texts, *lessons)}
    texts |= {file: lesson_of(lab, file.parent, to_come) for file, lab in lessons.items()}
    readmes = [README.format(first=lab.id) for lab in [labs[0], *all_labs()]]
    kept = []
    for name, known in [("README.md", readmes), ("AGENTS.md", [AGENTS])]:
        if is_changed(path / name, known):
            kept.append(name)
        else:
            texts[path / name] = known[0]
    texts[path / WORK_LOG] = work_log(path / WORK_LOG, labs)
    if not (path / STATE).exists():
        texts[path / STATE] = json.dumps(NOTHING_TRIED) + "\n"
    write_texts(texts)
    return kept


def is_changed(path: pathlib.Path, texts: list[str]) -> bool:
    return path.exists() and path.read_bytes() not in [text.encode() for text in texts]


def work_log(path: pathlib.Path, labs: list[Lab]) -> str:
    """The work log with the parts that are missing; the learner's text stays."""
    text = WORK_LOG_TEXT
    if path.exists():
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    for lab in labs:
        title = f"{lab.id} {lab.name}"
        if f"\n## {title}\n" not in text:
            text += WORK_LOG_OF.format(title=title)
    return text
