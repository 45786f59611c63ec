"""`ringlab lab bundle FILE.zip`: an autograder for Gradescope: scripts, the source, the secret."""
import os
import pathlib

import grading
from catalogue import LabError, STAGES, labs_between
from submission import pack

TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"
LEFT_OUT = ("build", "__pycache__", ".")  # beginnings of names


def run(options) -> int:
    secret = pathlib.Path(options.secret)
    grading.seeds_of(secret)
    if options.stages:
        labs_between(options.stages)
    target = pathlib.Path(options.file)
    if not target.parent.is_dir():
        raise LabError(f"{target}: expected a folder that is there, found none", 3)
    entries = {"secret": (secret.read_bytes(), 0o600)}
    for name in ("setup.sh", "run_autograder", "earlier.py"):
        text = (TEMPLATES / name).read_text()
        stages = f'--stages "{options.stages}" ' if options.stages else ""
        entries[name] = (text.replace("@stages@", stages).encode(), 0o755)
    for path in source_files():
        name = f"ringlab/{path.relative_to(STAGES.parent)}"
        entries[name] = (path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    pack(entries, target)
    print(f"{target}: {len(entries)} files, {target.stat().st_size / 1e6:.1f} MB. It holds the "
          "secret seed: give it to Gradescope and to nobody else")
    return 0


def source_files() -> list[pathlib.Path]:
    """Files of the source tree, but for build folders and hidden ones."""
    found = []
    for folder, folders, files in os.walk(STAGES.parent):
        folders[:] = sorted(name for name in folders if not name.startswith(LEFT_OUT))
        found += [pathlib.Path(folder) / name for name in sorted(files)
                  if not name.startswith(".") and (pathlib.Path(folder) / name).is_file()]
    return found


def add_action(add) -> None:
    action = add("bundle", "what Gradescope needs to grade", run, lab="")
    action.add_argument("file", metavar="FILE.zip")
    action.add_argument("--secret", required=True, metavar="FILE", help="as of grade")
    action.add_argument("--stages", metavar="FIRST-LAST",
                        help="the labs that were set; unless given, those that were handed in")
