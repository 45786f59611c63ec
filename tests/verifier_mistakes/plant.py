#!/usr/bin/env python3
"""Writes the file that a mistake of mistakes.toml edits, with the edit: plant.py ROOT ID OUTPUT.

Without ID and OUTPUT: one line `ID FILE` for each mistake.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "property_tests/mutants"))
from generate import apply_edit, edits_of, load_mistakes  # noqa: E402

MISTAKES = pathlib.Path(__file__).parent / "mistakes.toml"


def main() -> None:
    listed = load_mistakes(MISTAKES, optional={"find", "replace", "edits"}, required={"id", "file", "breaks"})
    mistakes = {mistake["id"]: mistake for mistake in listed}
    if len(sys.argv) == 2:
        for mistake in mistakes.values():
            print(mistake["id"], mistake["file"])
        return
    root, name, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    output.parent.mkdir(parents=True, exist_ok=True)
    text = (root / mistakes[name]["file"]).read_text()
    for edit in edits_of(mistakes[name]):
        text = apply_edit(text, edit, f"{MISTAKES}: mistake {name}: {mistakes[name]['file']}")
    output.write_text(text)


if __name__ == "__main__":
    main()
