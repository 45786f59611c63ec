#!/usr/bin/env python3
"""Writes the file that a mistake of mistakes.toml edits, with the edit: plant.py ROOT ID OUTPUT.

Without ID and OUTPUT: one line `ID FILE` for each mistake.
"""
import pathlib
import sys
import tomllib

FIELDS = {"id", "file", "find", "replace", "breaks"}


def load(folder: pathlib.Path) -> dict[str, dict]:
    mistakes = tomllib.loads((folder / "mistakes.toml").read_text())["mistake"]
    for mistake in mistakes:
        if set(mistake) != FIELDS:
            sys.exit(f"mistakes.toml: {mistake.get('id')}: expected the fields {sorted(FIELDS)}")
    return {mistake["id"]: mistake for mistake in mistakes}


def planted(root: pathlib.Path, mistake: dict) -> str:
    text = (root / mistake["file"]).read_text()
    count = text.count(mistake["find"])
    if count != 1:
        sys.exit(f"mistakes.toml: {mistake['id']}: the text below occurs {count} times in "
                 f"{mistake['file']}, must be once\n{mistake['find']}")
    return text.replace(mistake["find"], mistake["replace"])


def main() -> None:
    mistakes = load(pathlib.Path(__file__).parent)
    if len(sys.argv) == 2:
        for mistake in mistakes.values():
            print(mistake["id"], mistake["file"])
        return
    root, name, output = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(planted(root, mistakes[name]))


if __name__ == "__main__":
    main()
