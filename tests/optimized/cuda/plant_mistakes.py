#!/usr/bin/env python3
"""Writes one C++ file with the portable kernels once per mistake, each in a namespace of its own.

Every edit must fit exactly one place of all the kernels' files together.
"""
import argparse
import json
import pathlib
import re
import sys
import tomllib

FILES = ["warp_tiles.cuh", "forward_portable.cuh", "backward_tiles.cuh", "backward_portable.cuh",
         "backward_queries.cuh"]
OWN = re.compile(r'^#pragma once\n|^#include "optimized/cuda/(?:%s)"\n'
                 % "|".join(re.escape(name) for name in FILES), re.MULTILINE)
SYSTEM = re.compile(r"^#include .*\n", re.MULTILINE)


def fail(text: str) -> None:
    sys.exit(f"plant_mistakes: {text}")


def planted(source: str, mistake: dict) -> str:
    for edit in [mistake] + mistake.get("more", []):
        places = source.count(edit["find"])
        if places != 1:
            fail(f'{mistake["id"]}: {places} places fit {edit["find"]!r}, expected 1')
        source = source.replace(edit["find"], edit["replace"])
    return source.replace("namespace ringlab::cuda", f'namespace ringlab::cuda::{mistake["id"]}')


def entry(mistake: dict) -> str:
    function = f'&{mistake["id"]}::emulate_{mistake["pass"]}<BFloat16, {mistake.get("channels", 64)}>'
    forward = function if mistake["pass"] == "forward" else "nullptr"
    backward = function if mistake["pass"] == "backward" else "nullptr"
    return (f'    {{{json.dumps(mistake["id"])}, {json.dumps(mistake["breaks"])}, '
            f'{mistake.get("channels", 64)}, {{{forward}, {backward}}}}},\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=pathlib.Path, required=True)
    parser.add_argument("--mistakes", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    source = "".join((arguments.kernels / name).read_text() for name in FILES)
    source = OWN.sub("", source)
    includes = "".join(sorted(set(SYSTEM.findall(source))))
    source = SYSTEM.sub("", source)
    # Macros are the same in every copy.
    mistakes = tomllib.loads(arguments.mistakes.read_text())["mistake"]
    text = includes + '#include "optimized/cuda/emulator/emulate.h"\n'
    text += '#include "tests/optimized/cuda/planted_mistakes.h"\n'
    for mistake in mistakes:
        text += planted(source, mistake)
        text += f'namespace ringlab::cuda::{mistake["id"]} {{\n'
        text += '#include "tests/optimized/cuda/portable_kernels-inl.h"\n}\n'
    text += "namespace ringlab::cuda {\nstd::vector<PlantedMistake> planted_mistakes() {\n"
    text += "  return {\n" + "".join(entry(m) for m in mistakes) + "  };\n}\n}\n"
    arguments.output.write_text(text)


if __name__ == "__main__":
    main()
