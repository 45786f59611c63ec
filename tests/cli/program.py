"""Runs the program under test, and the small files its tests are made of."""
import contextlib
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ.get("RINGLAB_PROGRAM", "build/bin/ringlab")
SKIPPED = 77  # what ctest counts as skipped


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")


def ringlab(*words, timeout=1000, program=PROGRAM, **options):
    done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout, **options)
    return Result(done)


VIEWER = pathlib.Path(__file__).resolve().parents[2] / "cli/viewer"


def rendered(page):
    """The HTML that a page's script makes of its data."""
    try:
        done = subprocess.run(["node", VIEWER / "rendered.mjs", page], capture_output=True, text=True, timeout=600)
    except FileNotFoundError:
        raise AssertionError("expected node, found none: scripts/packages test installs it") from None
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


@contextlib.contextmanager
def verifying(*words):
    """`ringlab verify`, at work on laws: its line on a terminal has counted cases."""
    primary, terminal = os.openpty()
    with subprocess.Popen([PROGRAM, "verify", *map(str, words)], stdout=subprocess.PIPE,
                          stderr=terminal) as program:
        os.close(terminal)
        try:
            drawn = b""
            while not re.search(rb"  [1-9][\d ]* cases", drawn):
                drawn += os.read(primary, 65536)
            yield program
        finally:
            program.kill()
            os.close(primary)


def fenced_lines(page, language=r"\w*"):
    """Lines in fenced blocks of a Markdown page, of one language if it is given; continued lines are one."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return "".join(blocks).replace("\\\n", " ").splitlines()


class ProgramTest(unittest.TestCase):
    """Gives each test a folder of its own and checks on exit codes and messages."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="ringlab-cli-")
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def succeeds(self, *words, **options):
        result = ringlab(*words, **options)
        self.assertEqual(result.code, 0, f"ringlab {words}\n{result.out}\n{result.err}")
        return result

    def fails(self, code, message, *words, **options):
        """Exit code, one message line that contains `message`, nothing on standard output."""
        result = ringlab(*words, **options)
        said = f"ringlab {' '.join(map(str, words))}\n{result.out}\n{result.err}"
        self.assertEqual(result.code, code, said)
        self.assertTrue(result.err.startswith("ringlab: "), said)
        self.assertEqual(result.err.count("\n"), 1, said)
        for part in [message] if isinstance(message, str) else message:
            self.assertIn(part, result.err, said)
        self.assertEqual(result.out, "", said)
        return result


def npy(values, shape, dtype="<f4", fortran=False, version=1):
    """A .npy file from a flat list of floats."""
    code = {"<f8": "d", "<f4": "f", "<f2": "e", "|b1": "?", "|u1": "B"}[dtype]
    payload = struct.pack(f"<{len(values)}{code}", *values)
    return npy_with_header(f"{{'descr': '{dtype}', 'fortran_order': {fortran}, "
                           f"'shape': {tuple(shape)}, }}", payload, version)


def npy_with_header(header, payload, version=1):
    header = header.encode()
    prefix = 10 if version == 1 else 12
    header += b" " * (-(prefix + len(header) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + payload


def safetensors(tensors):
    """A .safetensors file from {name: (dtype, shape, payload)}."""
    header, offset, body = {}, 0, b""
    for name, (dtype, shape, payload) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [offset, offset + len(payload)]}
        offset += len(payload)
        body += payload
    return safetensors_with_header(json.dumps(header).encode(), body)


def safetensors_with_header(header, body):
    return struct.pack("<Q", len(header)) + header + body


def ones(count):
    return [1.0] * count


def floats(count, value=0.5):
    return struct.pack(f"<{count}f", *([value] * count))
