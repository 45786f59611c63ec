#!/usr/bin/env python3
"""Writes one C++ file with the Hopper kernel once per mistake, each in a namespace of its own."""
import argparse
import json
import pathlib
import re
import tomllib

from plant_mistakes import SYSTEM, planted

FILES = ["forward_hopper.cuh", "forward_hopper_shapes.h"]
OWN = re.compile(r'^#pragma once\n|^#include "optimized/cuda/forward_hopper.cuh"\n', re.MULTILINE)


def entry(mistake: dict) -> str:
    kernel = f'&{mistake["id"]}::emulate_hopper_tile<{mistake["id"]}::SmallHopperTile<BFloat16>>'
    return f'    {{{json.dumps(mistake["id"])}, {json.dumps(mistake["breaks"])}, {kernel}}},\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=pathlib.Path, required=True)
    parser.add_argument("--mistakes", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    source = OWN.sub("", "".join((arguments.kernels / name).read_text() for name in FILES))
    includes = "".join(sorted(set(SYSTEM.findall(source))))
    source = SYSTEM.sub("", source)
    mistakes = tomllib.loads(arguments.mistakes.read_text())["mistake"]
    text = includes + '#include "optimized/cuda/emulator/emulate.h"\n'
    text += '#include "optimized/cuda/emulator/tensor_map.h"\n'
    text += '#include "tests/optimized/cuda/hopper_mistakes.h"\n'
    for mistake in mistakes:
        text += planted(source, mistake)
        text += f'namespace ringlab::cuda::{mistake["id"]} {{\n'
        text += '#include "tests/optimized/cuda/hopper_kernels-inl.h"\n}\n'
    text += "namespace ringlab::cuda {\nstd::vector<HopperMistake> hopper_mistakes() {\n"
    text += "  return {\n" + "".join(map(entry, mistakes)) + "  };\n}\n}\n"
    arguments.output.write_text(text)


if __name__ == "__main__":
    main()
