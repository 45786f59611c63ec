#!/usr/bin/env python3
"""Makes the mutants of one stage: copies of its header with one planted mistake each.

A mistake is a find-and-replace edit. Those a learner may make stand in the stage's own
mistakes.toml; those drawn from public bugs only, in property_tests/mutants/mutants.toml (there with
`stage = "NAME"`). Written are one header per mistake, in a namespace of its own, and one .cpp that
registers them all. An edit whose text does not occur exactly once is an error: a mistake must not
silently become the correct stage.

    generate.py --stage stages/05_ring --extra mutants.toml --output BUILD_FOLDER
"""
import argparse
import json
import pathlib
import re
import sys
import tomllib

ELEMENTS = {"f64": "double", "f32": "float", "f16": "Half", "bf16": "BFloat16"}
REQUIRED = {"id", "breaks", "question", "ancestor"}
OPTIONAL = {"name", "stage", "gap", "find", "replace", "edits", "includes", "dtypes"}


class MistakeError(Exception):
    """A mistake that cannot be planted; the text says which and why."""


def load_mistakes(path: pathlib.Path, stage: str | None = None, optional: set[str] = OPTIONAL,
                  required: set[str] = REQUIRED) -> list[dict]:
    """The [[mistake]] tables of a file; with `stage`, only those that name it."""
    try:
        mistakes = tomllib.loads(path.read_text()).get("mistake", [])
    except tomllib.TOMLDecodeError as error:
        raise MistakeError(f"{path}: {error}") from error
    for mistake in mistakes:
        check_fields(mistake, path, optional, required)
    return [m for m in mistakes if stage is None or m.get("stage") == stage]


def check_fields(mistake: dict, path: pathlib.Path, optional: set[str], required: set[str]) -> None:
    name = f"{path}: mistake {mistake.get('id', '(without id)')}"
    missing = [field for field in sorted(required) if not mistake.get(field)]
    if missing:
        raise MistakeError(f"{name}: {', '.join(missing)} missing or empty")
    unknown = sorted(set(mistake) - required - optional)
    if unknown:
        raise MistakeError(f"{name}: unknown field {', '.join(unknown)}")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", mistake["id"]):
        raise MistakeError(f"{name}: an id is lower case letters, digits and underscores")
    bad = sorted(set(mistake.get("dtypes", [])) - set(ELEMENTS))
    if bad:
        raise MistakeError(f"{name}: unknown dtype {', '.join(bad)}")


def edits_of(mistake: dict) -> list[dict]:
    """One edit may stand in the table itself, several under `edits`."""
    if "edits" in mistake:
        return mistake["edits"]
    return [{key: mistake[key] for key in ("file", "gap", "find", "replace") if key in mistake}]


def gap_bounds(text: str, gap: str, where: str) -> tuple[int, int]:
    start, end = f"// [gap: {gap}]", f"// end [gap: {gap}]"
    if text.count(start) != 1 or text.count(end) != 1 or text.index(end) < text.index(start):
        raise MistakeError(f"{where}: '{start}' and '{end}' must each occur once, in this order")
    return text.index(start) + len(start), text.index(end)


def apply_edit(text: str, edit: dict, where: str) -> str:
    if not edit.get("find") or "replace" not in edit:
        raise MistakeError(f"{where}: an edit needs a find text and a replace text")
    gap = edit.get("gap")
    begin, end = gap_bounds(text, gap, where) if gap else (0, len(text))
    count = text.count(edit["find"], begin, end)
    if count != 1:
        place = f"gap '{gap}'" if gap else "the header"
        raise MistakeError(f"{where}: the text below occurs {count} times in {place}, must be once"
                           f"\n{edit['find']}")
    if edit["find"] == edit["replace"]:
        raise MistakeError(f"{where}: find and replace are the same text")
    at = text.index(edit["find"], begin, end)
    return text[:at] + edit["replace"] + text[at + len(edit["find"]):]


def mutated_header(text: str, stage: str, mistake: dict, where: str) -> str:
    """The stage's header with the mistake in it, in the mutant's namespace."""
    for edit in edits_of(mistake):
        text = apply_edit(text, edit, where)
    opening = f"namespace ringlab::stages::{stage} {{"
    if text.count(opening) != 1:
        raise MistakeError(f"{where}: '{opening}' must occur once")
    namespace = f"namespace ringlab::mutants::{mistake['id']} {{"
    text = text.replace(opening, namespace + "\nusing namespace ringlab::stages;")
    includes = "".join(f'#include "{name}"\n' for name in mistake.get("includes", []))
    return text.replace("#pragma once\n", "#pragma once\n\n" + includes, 1)


def registration(stage: str, mistake: dict) -> str:
    fields = {"id": mistake["id"], "stage": stage}
    fields |= {key: mistake[key] for key in ("breaks", "question", "ancestor")}
    # A JSON string is a C++ string as long as no character beyond ASCII is escaped.
    info = ",\n       ".join(f".{key} = {json.dumps(value, ensure_ascii=False)}"
                            for key, value in fields.items())
    elements = ", ".join(ELEMENTS[name] for name in mistake.get("dtypes", ["f32"]))
    return (f"  mutants.push_back(planted<{elements}>(\n      {{{info}}},\n"
            f"      []<class Element>(stages::RankProblem<Element>& r) {{\n"
            f"        {mistake['id']}::attention(r);\n      }}));\n")


def registry(folder: str, stage: str, kind: str, mistakes: list[dict]) -> str:
    includes = "".join(f'#include "{m["id"]}.h"\n' for m in mistakes)
    body = "".join(registration(stage, m) for m in mistakes)
    return (f"// Generated from stages/{folder} by property_tests/mutants/generate.py; not to edit.\n"
            f'{includes}#include "property_tests/mutants/planted.h"\n\n'
            f"namespace ringlab::mutants {{\n\n"
            f"std::vector<Mutant> {stage}_{kind}() {{\n"
            f"  std::vector<Mutant> mutants;\n{body}  return mutants;\n}}\n\n"
            f"}}  // namespace ringlab::mutants\n")


def write_if_changed(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def generate(folder: pathlib.Path, extra: pathlib.Path, output: pathlib.Path,
             kind: str = "mutants") -> list[str]:
    """Writes the mutants of one stage; returns their ids. Of another kind than mutants are those of
    `extra` alone."""
    stage = folder.name.split("_", 1)[1]
    header = folder / f"{stage}.h"
    own = folder / "mistakes.toml"
    mistakes = [(own, m) for m in load_mistakes(own)] if kind == "mutants" else []
    mistakes += [(extra, m) for m in load_mistakes(extra, stage)]
    text = header.read_text()
    output.mkdir(parents=True, exist_ok=True)
    ids: list[str] = []
    for source, mistake in mistakes:
        where = f"{source}: mistake {mistake['id']}: {header}"
        if mistake["id"] in ids:
            raise MistakeError(f"{where}: the id is used twice")
        ids.append(mistake["id"])
        write_if_changed(output / f"{mistake['id']}.h",
                         mutated_header(text, stage, mistake, where))
    planted = registry(folder.name, stage, kind, [m for _, m in mistakes])
    (output / f"{stage}_{kind}.cpp").write_text(planted)
    return ids


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stage", type=pathlib.Path, required=True, help="a folder of stages/")
    parser.add_argument("--extra", type=pathlib.Path, required=True, help="mutants.toml")
    parser.add_argument("--kind", default="mutants", help="other than mutants: of --extra alone")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="where to write")
    arguments = parser.parse_args()
    try:
        generate(arguments.stage, arguments.extra, arguments.output, arguments.kind)
    except (MistakeError, OSError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
