"""The register tiles of the compiled kernels ask for memory ahead: g++ once dropped the calls that do,
and no result changes with them. Usage: prefetches_test.py OBJDUMP OBJECT … (x86-64, optimized)."""
import re
import subprocess
import sys

LINE = re.compile(r"\s+([0-9a-f]+):\s+(\S+)\s*(.*)")
LONGEST_LOOP = 5000  # bytes


def instructions(objdump, path):
    """Functions as lists of (address, operation, operands)."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    function = []
    for line in text.splitlines():
        found = LINE.match(line)
        if found:
            function.append((int(found[1], 16), found[2], found[3]))
        elif line.endswith(">:"):
            yield function
            function = []
    yield function


def loops(function):
    """Bodies of the loops that end in a conditional jump back."""
    for end, (address, operation, operands) in enumerate(function):
        target = re.match(r"[0-9a-f]+", operands)
        if not operation.startswith("j") or operation == "jmp" or not target:
            continue
        first = int(target[0], 16)
        if address - LONGEST_LOOP < first < address:
            yield [one for one in function[:end + 1] if one[0] >= first]


def full_tiles(objdump, path, vectors, products):
    """For each loop of so many multiply-adds on such vectors: its prefetches."""
    for function in instructions(objdump, path):
        for body in loops(function):
            if sum(op.startswith("vfmadd") and vectors in words for _, op, words in body) == products:
                yield sum(op.startswith("prefetch") for _, op, _ in body)


def main(objdump, *objects):
    for path in objects:
        wide = list(full_tiles(objdump, path, "zmm", 4 * 24))
        narrow = list(full_tiles(objdump, path, "ymm", 4 * 12))
        print(f"{path}: prefetches of a turn: zmm {sorted(wide)}, ymm {sorted(narrow)}")
        # Of scores a line at a time, of values a line for each of four terms.
        assert wide.count(2) >= 2 and wide.count(4) >= 2, "zmm: loops that ask for 2 and 4 lines ahead"
        assert narrow.count(1) >= 1, "ymm: loops that ask for a line ahead"


if __name__ == "__main__":
    main(*sys.argv[1:])
