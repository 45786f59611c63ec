#!/usr/bin/env python3
"""Makes the mutants of the block kernels: copies of their sources with one planted mistake each.

The kernels are headers that Highway includes once per kind of vectors (optimized/cpu/**/*-inl.h). A
mutant is the text of all that its pass needs, edited, in a namespace of its own and for one kind
only; many stand in one .cpp, so that Highway is read once. An edit whose text does not occur
exactly once is an error.

The kernel that multiplies bf16 (optimized/cpu/bf16/bf16_dot*) is made of ordinary files: its mutants
are the text of all that its pass needs, too, for processors with AVX512_BF16. What it does in AMX
is emulated there.

    generate_kernels.py --pass forward --root REPOSITORY --mistakes kernel_mistakes.toml \\
        --output BUILD_FOLDER
"""
import argparse
import json
import pathlib
import re
import sys

from generate import ELEMENTS, MistakeError, apply_edit, edits_of, load_mistakes, write_if_changed

FIELDS = {"pass", "file", "find", "replace", "edits", "dtype"}
KERNELS = "optimized/cpu/"
# The header that has all of a pass, by itself or by what it includes.
HEADERS = {"forward": "forward_worker-inl.h", "backward": "backward_worker-inl.h",
           "few": "few_queries-inl.h"}
BF16_PASSES = ("bf16_backward", "amx")
PASSES = (*HEADERS, *BF16_PASSES)
# The kernels that are made of a pass; of the others the forward one.
MEMBERS = {"backward": ("backward",), "bf16_backward": ("backward",), "amx": ("forward", "backward")}
INCLUDE = re.compile(r'^#include "(optimized/cpu/[\w/-]+-inl\.h)"\n', re.MULTILINE)
GUARD = re.compile(r"^#if defined\((\w+)\) == defined\(HWY_TARGET_TOGGLE\)\n"
                   r"#ifdef \1\n#undef \1\n#else\n#define \1\n#endif\n", re.MULTILINE)
NAMESPACE = "ringlab::cpu::HWY_NAMESPACE"
# Headers that others need stand first.
BF16_FILES = tuple(f"{KERNELS}bf16/bf16_dot{part}" for part in (
    "_tile.h", "_backward_tile.h", "_products.h", ".h", "_lanes.h", "_memory.h",
    "_backward_memory.h", "_vectors-inl.h", "_tile.cpp", "_backward_tile.cpp",
    "_products.cpp", "_lanes.cpp", "_memory.cpp", "_backward_memory.cpp", "_backward.cpp"))
AMX_FILES = (*BF16_FILES, *(f"{KERNELS}bf16/bf16_dot{part}" for part in (
    "_amx_emulated-inl.h", "_amx_tiles-inl.h", "_amx_products-inl.h", ".cpp")))
BF16_NAMESPACE = "ringlab::cpu::bf16_dot"
BF16_TARGETS = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma"
ANY_INCLUDE = re.compile(r"^(?:#include .*|#pragma once)\n", re.MULTILINE)


def texts_of(root: pathlib.Path, first: str) -> dict[str, str]:
    """The header and all kernel headers it needs, those that are needed first."""
    found: dict[str, str] = {}

    def take_in(name: str) -> None:
        if name in found:
            return
        text = (root / name).read_text()
        for needed in INCLUDE.findall(text):
            take_in(needed)
        found[name] = text

    take_in(first)
    return found


def without_guard(name: str, text: str) -> str:
    """The header's own text: it is read once, whatever the toggle says."""
    end = text.rstrip()
    if len(GUARD.findall(text)) != 1 or not end.endswith("#endif"):
        raise MistakeError(f"{name}: must have one guard of the form Highway asks for")
    return INCLUDE.sub("", GUARD.sub("", end.removesuffix("#endif")))


def is_bf16(kind: str) -> bool:
    return kind in BF16_PASSES


def mutated(texts: dict[str, str], mistake: dict, where: str) -> str:
    """The kernel with the mistake in it, in the mutant's namespace."""
    texts = dict(texts)
    for edit in edits_of(mistake):
        name = KERNELS + edit.get("file", "(no file)")
        if name not in texts:
            raise MistakeError(f"{where}: {name} is not part of this kernel: {', '.join(texts)}")
        texts[name] = apply_edit(texts[name], edit, f"{where}: {name}")
    if is_bf16(mistake["pass"]):
        body = ANY_INCLUDE.sub("", "".join(texts.values()))
        if body.count(f"namespace {BF16_NAMESPACE} {{") != len(texts):
            raise MistakeError(f"{where}: every kernel file must open {BF16_NAMESPACE} once")
        return body.replace(BF16_NAMESPACE, f"ringlab::cpu::{mistake['id']}::bf16_dot")
    body = "".join(without_guard(name, text) for name, text in texts.items())
    if body.count(f"namespace {NAMESPACE} {{") != len(texts):
        raise MistakeError(f"{where}: every kernel header must open namespace {NAMESPACE} once")
    return body.replace(NAMESPACE, f"ringlab::cpu::{mistake['id']}::HWY_NAMESPACE")


CALLS = {
    "forward": """void forward(const Block<{element}>& block, SoftmaxState<{real}>* states, {real}* accs) {{
  HWY_NAMESPACE::forward_heads(block, states, accs);
}}
""",
    "backward": """void backward(const Block<{element}>& block, const QueryGradients<{element}>& given,
              const BlockGradients<{element}>& sums) {{
  HWY_NAMESPACE::backward_heads(block, given, sums);
}}
""",
    "few": """void forward(const Block<{element}>& block, SoftmaxState<{real}>* states, {real}* accs) {{
  if (!has_few_queries(block)) return forward_block(block, states, accs);
  HWY_NAMESPACE::forward_few(block, states, accs);
}}
""",
    "amx": """const auto kProducts = bf16_dot::products_in_tiles<bf16_dot::EmulatedTiles>();
void forward(const Block<{element}>& block, SoftmaxState<{real}>* states, {real}* accs) {{
  if (!cpu::bf16_dot::takes(block)) return forward_block(block, states, accs);
  bf16_dot::forward(block, kProducts, states, accs);
}}
void backward(const Block<{element}>& block, const QueryGradients<{element}>& given,
              const BlockGradients<{element}>& sums) {{
  if (!cpu::bf16_dot::takes(block)) return backward_block(block, given, sums);
  bf16_dot::backward(block, kProducts, given, sums);
}}
""",
    "bf16_backward": """void backward(const Block<{element}>& block, const QueryGradients<{element}>& given,
              const BlockGradients<{element}>& sums) {{
  if (!cpu::bf16_dot::takes(block)) return backward_block(block, given, sums);
  bf16_dot::backward(block, bf16_dot::kDotProducts, given, sums);
}}
""",
}


def call(mistake: dict) -> str:
    """The function that the engine calls: code for any processor that calls the code for one."""
    element = ELEMENTS[mistake.get("dtype", "f32")]
    real = "double" if element == "double" else "float"
    return (f"namespace ringlab::cpu::{mistake['id']} {{\nnamespace {{\n"
            f"{CALLS[mistake['pass']].format(element=element, real=real)}"
            f"}}  // namespace\n}}  // namespace ringlab::cpu::{mistake['id']}\n")


def registration(mistake: dict) -> str:
    fields = {"id": mistake["id"], "stage": "optimized"}
    fields |= {key: mistake[key] for key in ("breaks", "question", "ancestor")}
    info = ",\n       ".join(f".{key} = {json.dumps(value, ensure_ascii=False)}"
                            for key, value in fields.items())
    element = ELEMENTS[mistake.get("dtype", "f32")]
    kernels = ", ".join(f".{member} = cpu::{mistake['id']}::{member}"
                        for member in MEMBERS.get(mistake["pass"], ("forward",)))
    return (f"  mutants.push_back(planted_kernel<{element}>(\n      {{{info}}},\n"
            f"      {{{kernels}}}));\n")


def bf16_includes(texts: dict[str, str]) -> str:
    """The includes of the files besides each other, once: they are for any processor."""
    found = {line for text in texts.values() for line in ANY_INCLUDE.findall(text)
             if "bf16_dot" not in line and "#pragma" not in line}
    return "".join(sorted(found))


def bf16_source(kind: str, texts: dict[str, str], bodies: list[str], mistakes: list[dict]) -> str:
    registrations = "".join(map(registration, mistakes))
    return ("// Generated by property_tests/mutants/generate_kernels.py; not to edit.\n"
            "#include <hwy/highway.h>\n" + bf16_includes(texts) +
            '#include "optimized/cpu/bf16/bf16_dot.h"\n'
            '#include "property_tests/mutants/planted_kernels.h"\n\n'
            + "".join(bodies) + "\nnamespace ringlab::mutants {\n\n"
            f"std::vector<Mutant> {kind}_kernel_mutants() {{\n  std::vector<Mutant> mutants;\n"
            f"  if (!cpu::bf16_dot::available()) return mutants;\n{registrations}"
            "  return mutants;\n}\n\n}  // namespace ringlab::mutants\n")


def source(kind: str, bodies: list[str], mistakes: list[dict]) -> str:
    registrations = "".join(map(registration, mistakes))
    return ("// Generated by property_tests/mutants/generate_kernels.py; not to edit.\n"
            '#include "property_tests/mutants/one_target.h"\n'
            '#include "property_tests/mutants/planted_kernels.h"\n\n'
            + "".join(bodies) + "\nnamespace ringlab::mutants {\n\n"
            f"std::vector<Mutant> {kind}_kernel_mutants() {{\n  std::vector<Mutant> mutants;\n"
            f"  if (!can_run_planted_kernels()) return mutants;\n{registrations}"
            "  return mutants;\n}\n\n}  // namespace ringlab::mutants\n")


def attributed(kind: str, body: str) -> str:
    """Kernel headers say themselves which processor they are for."""
    if not is_bf16(kind):
        return body
    return f'HWY_PUSH_ATTRIBUTES("{BF16_TARGETS}")\n{body}HWY_POP_ATTRIBUTES\n'


def check(mistake: dict, where: str) -> None:
    if mistake.get("pass") not in PASSES:
        raise MistakeError(f"{where}: pass must be one of {', '.join(PASSES)}")
    if mistake.get("dtype", "f32") not in ELEMENTS:
        raise MistakeError(f"{where}: unknown dtype {mistake['dtype']}")
    if is_bf16(mistake["pass"]) and mistake.get("dtype") != "bf16":
        raise MistakeError(f"{where}: a kernel that multiplies bf16 has no other dtype")


def generate(kind: str, root: pathlib.Path, path: pathlib.Path, output: pathlib.Path) -> list[str]:
    """Writes the mutants of one pass; returns their ids."""
    if is_bf16(kind):
        files = AMX_FILES if kind == "amx" else BF16_FILES
        texts = {name: (root / name).read_text() for name in files}
    else:
        texts = texts_of(root, KERNELS + HEADERS[kind])
    ids: list[str] = []
    bodies: list[str] = []
    mistakes: list[dict] = []
    for mistake in load_mistakes(path, optional=FIELDS):
        where = f"{path}: mistake {mistake['id']}"
        check(mistake, where)
        if mistake["id"] in ids:
            raise MistakeError(f"{where}: the id is used twice")
        ids.append(mistake["id"])
        if mistake["pass"] != kind:
            continue
        bodies.append(attributed(kind, mutated(texts, mistake, where)) + call(mistake))
        mistakes.append(mistake)
    output.mkdir(parents=True, exist_ok=True)
    text = (bf16_source(kind, texts, bodies, mistakes) if is_bf16(kind)
            else source(kind, bodies, mistakes))
    write_if_changed(output / f"{kind}_kernel_mutants.cpp", text)
    return [mistake["id"] for mistake in mistakes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pass", dest="kind", choices=PASSES, required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True, help="of the repository")
    parser.add_argument("--mistakes", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True, help="where to write")
    arguments = parser.parse_args()
    try:
        generate(arguments.kind, arguments.root, arguments.mistakes, arguments.output)
    except (MistakeError, OSError) as error:
        print(f"generate_kernels.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
