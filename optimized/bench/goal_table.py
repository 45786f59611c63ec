"""Writes the goals of a TOML file as C++: goal_table.py goals.toml OUT.cpp"""
import itertools
import json
import pathlib
import sys
import tomllib

FIELDS = ["pass", "dtype", "mask", "head_dim", "heads", "tokens", "queries", "threads", "ranks", "beside"]
TYPES = {"pass": "Pass::", "dtype": "DType::"}


def spread(row):
    """One row for each combination of the values in lists."""
    lists = [key for key in row if isinstance(row[key], list)]
    for values in itertools.product(*(row[key] for key in lists)):
        one = {**row, **dict(zip(lists, values))}
        yield {**one, "id": one["id"].format(**one), "what": one["what"].format(**one)}


def code_of(key, value):
    if key in TYPES:
        return TYPES[key] + value
    if key == "tokens":
        return str(int(value.removesuffix("k")) * 1024)
    return json.dumps(value)


def goal(row):
    sense = "at_most" if "at_most" in row else "at_least"
    unknown = set(row) - {*FIELDS, "id", "what", "unit", "target", sense}
    if unknown:
        sys.exit(f"{row['id']}: expected keys of a goal, found {', '.join(sorted(unknown))}")
    of = ", ".join(f".{key} = {code_of(key, row[key])}" for key in FIELDS if key in row)
    texts = ", ".join(json.dumps(row[key]) for key in ("id", "what", "unit"))
    return f"      {{{texts}, {row[sense]}, {row['target']}, Sense::{sense}, {{{of}}}}},\n"


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    text = f'// Generated from {source.name}.\n#include "optimized/bench/measure/goal.h"\n\nnamespace ringlab::bench {{\n'
    for kind, rows in tomllib.loads(source.read_text()).items():
        goals = "".join(goal(one) for row in rows for one in spread(row))
        text += (f"\nconst std::vector<Goal>& {kind}_goals() {{\n"
                 f"  static const std::vector<Goal> all = {{\n{goals}  }};\n  return all;\n}}\n")
    out.write_text(text + "\n}  // namespace ringlab::bench\n")


main()
