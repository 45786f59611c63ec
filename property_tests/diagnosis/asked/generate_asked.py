#!/usr/bin/env python3
"""Writes the planted mistakes of the stages as a table in C++: their names and questions.

    generate_asked.py --output asked_mistakes.cpp stages/05_ring stages/06_causal_ring …
"""
import argparse
import json
import pathlib
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, for which the package can be built
    from pip._vendor import tomli as tomllib

FIELDS = ("id", "name", "question")


class AskedError(Exception):
    """A mistake without a name or a question; the text says which."""


def rows_of(folder: pathlib.Path) -> list[str]:
    stage = folder.name.split("_", 1)[1]
    rows = []
    path = folder / "mistakes.toml"
    for mistake in tomllib.loads(path.read_text()).get("mistake", []):
        missing = [field for field in FIELDS if not mistake.get(field)]
        if missing:
            raise AskedError(f"{path}: mistake {mistake.get('id', '(without id)')}: "
                             f"{', '.join(missing)} missing or empty")
        values = (mistake["id"], stage, mistake["name"], mistake["question"])
        # A JSON string is a C++ string as long as no character beyond ASCII is escaped.
        rows.append(f"      {{{', '.join(json.dumps(v, ensure_ascii=False) for v in values)}}},\n")
    return rows


def table(folders: list[pathlib.Path]) -> str:
    rows = "".join(row for folder in folders for row in rows_of(folder))
    return ("// Generated from stages/*/mistakes.toml by generate_asked.py; not to edit.\n"
            '#include "property_tests/diagnosis/asked/asked.h"\n\n'
            "namespace ringlab::verify {\n\n"
            "const std::vector<AskedMistake>& asked_mistakes() {\n"
            f"  static const std::vector<AskedMistake> all = {{\n{rows}  }};\n"
            "  return all;\n}\n\n"
            "}  // namespace ringlab::verify\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=pathlib.Path, required=True, help="the file to write")
    parser.add_argument("folders", type=pathlib.Path, nargs="+", help="folders of stages/")
    arguments = parser.parse_args()
    try:
        arguments.output.write_text(table(arguments.folders))
    except (AskedError, OSError, tomllib.TOMLDecodeError) as error:
        print(f"generate_asked.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
