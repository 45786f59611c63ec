#!/usr/bin/env python3
"""Writes one C++ file with some kernels once per mistake, each in a namespace of its own.

Every edit must fit exactly one place of all the kernels' files together.
"""
import argparse
import dataclasses
import json
import pathlib
import re
import sys
from typing import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "property_tests/mutants"))
from generate import apply_edit, edits_of, load_mistakes  # noqa: E402

FIELDS = {"find", "replace", "edits", "pass", "channels", "tile", "adding", "later"}

SYSTEM = re.compile(r"^#include .*\n", re.MULTILINE)


def portable_entry(mistake: dict) -> str:
    channels = mistake.get("channels", 64)
    function = f'&{mistake["id"]}::emulate_{mistake["pass"]}<BFloat16, {channels}>'
    forward = function if mistake["pass"] == "forward" else "nullptr"
    backward = function if mistake["pass"] == "backward" else "nullptr"
    return f"portable_kernel<BFloat16>({{{forward}, {backward}}}), hunt_portable({channels})"


def hopper_entry(mistake: dict) -> str:
    tile = mistake.get("tile", "SmallHopperTile")
    together = 2 if tile == "PairedHopperTile" else 1
    return (f'forward_hopper_kernel<BFloat16>(&{mistake["id"]}::emulate_hopper_tile<'
            f'{mistake["id"]}::{tile}<BFloat16>>), hunt_forward_hopper({together})')


def hopper_backward_entry(mistake: dict) -> str:
    name = mistake["id"]
    adding = f'{name}::HopperAdding::{mistake.get("adding", "boxes")}'
    later = mistake.get("later", "true")
    return (f"planted_backward_hopper(&{name}::emulate_backward_hopper<"
            f"{name}::HopperBackwardTile<BFloat16, 64, {adding}, {later}>, "
            f"{name}::HopperQueryGradients::here>), hunt_backward_hopper()")


@dataclasses.dataclass
class Family:
    """Kernels that are spoilt together."""
    files: list[str]  # in the order in which they include each other
    headers: list[str]  # what the copies need besides
    copies: str  # what makes functions of a copy that tests can call
    entry: Callable[[dict], str]  # what a mistake's entry says besides its id and what breaks


FAMILIES = {
    "portable": Family(
        files=["portable/warp_tiles.cuh", "portable/forward_portable.cuh",
               "portable/backward_tiles.cuh", "portable/backward_portable.cuh",
               "portable/backward_queries.cuh"],
        headers=[],
        copies="tests/optimized/cuda/portable/portable_kernels-inl.h",
        entry=portable_entry),
    "hopper": Family(
        files=["hopper/forward_hopper_tile.cuh", "hopper/forward_hopper_rows.cuh",
               "hopper/forward_hopper.cuh", "hopper/forward_hopper_shapes.h"],
        headers=["tests/emulator/machine/tensor_map.h"],
        copies="tests/optimized/cuda/hopper/hopper_kernels-inl.h",
        entry=hopper_entry),
    "hopper_backward": Family(
        files=["hopper/query_walk.h", "hopper/backward_hopper.cuh",
               "hopper/backward_hopper_shapes.h"],
        headers=["optimized/cuda/portable/backward_queries.cuh", "tests/emulator/machine/tensor_map.h"],
        copies="tests/optimized/cuda/hopper/backward_hopper_kernels-inl.h",
        entry=hopper_backward_entry)}


def planted(source: str, mistake: dict, path: pathlib.Path) -> str:
    for edit in edits_of(mistake):
        source = apply_edit(source, edit, f"{path}: mistake {mistake['id']}")
    return source.replace("namespace ringlab::cuda", f'namespace ringlab::cuda::{mistake["id"]}')


def read_kernels(family: Family, folder: pathlib.Path) -> tuple[str, str]:
    """What the files include, and the rest of them. Macros are the same in every copy."""
    source = "".join((folder / name).read_text() for name in family.files)
    own = "|".join(re.escape(name) for name in family.files)
    source = re.sub(rf'^#pragma once\n|^#include "optimized/cuda/(?:{own})"\n', "", source,
                    flags=re.MULTILINE)
    return "".join(sorted(set(SYSTEM.findall(source)))), SYSTEM.sub("", source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--kernels", type=pathlib.Path, required=True)
    parser.add_argument("--mistakes", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    family = FAMILIES[arguments.family]
    text, source = read_kernels(family, arguments.kernels)
    for header in ["tests/emulator/machine/emulate.h", "tests/optimized/cuda/planted_mistakes.h",
                   *family.headers]:
        text += f'#include "{header}"\n'
    mistakes = load_mistakes(arguments.mistakes, optional=FIELDS, required={"id", "breaks"})
    for mistake in mistakes:
        text += planted(source, mistake, arguments.mistakes)
        text += f'namespace ringlab::cuda::{mistake["id"]} {{\n#include "{family.copies}"\n}}\n'
    text += "namespace ringlab::cuda {\nstd::vector<PlantedMistake> planted_mistakes() {\n  return {\n"
    for mistake in mistakes:
        said = json.dumps(mistake["id"]), json.dumps(mistake["breaks"]), family.entry(mistake)
        text += f'    {{{", ".join(said)}}},\n'
    arguments.output.write_text(text + "  };\n}\n}\n")


if __name__ == "__main__":
    main()
