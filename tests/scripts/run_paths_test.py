"""Where programs and libraries look for libraries: never in a folder that whoever starts them is in.

An empty or relative element of a RUNPATH is taken from the current directory, in which anybody may
have put a library."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ.get("RINGLAB_BUILD", "build"))
CMAKE = os.environ.get("RINGLAB_CMAKE", "cmake")
READELF = os.environ.get("RINGLAB_READELF") or "readelf"
LOADED = (2, 3)  # programs and shared objects; others are for the linker
FOLDERS_OF_OTHERS = {"CMakeFiles", "python-environment", "torch"}


def is_loaded(path):
    """Whether it is an ELF file that the dynamic linker reads."""
    with open(path, "rb") as file:
        start = file.read(18)
    return start[:4] == b"\x7fELF" and int.from_bytes(start[16:18], "little") in LOADED


def loaded_files(folder):
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in FOLDERS_OF_OTHERS]
        for name in names:
            path = pathlib.Path(root, name)
            if path.is_file() and not path.is_symlink() and is_loaded(path):
                yield path


def run_path(path):
    """The elements of its RPATH and RUNPATH; none where it has neither."""
    text = subprocess.run([READELF, "--dynamic", "--wide", path], check=True, text=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C"}).stdout
    return [element for found in re.findall(r"\((?:RPATH|RUNPATH)\).*?\[(.*)\]", text)
            for element in found.split(":")]


def is_fixed(element):
    """An absolute folder, or one that hangs on the file's own."""
    return element.startswith("/") or re.fullmatch(r"\$(ORIGIN|\{ORIGIN\})(/.*)?", element)


class RunPaths(unittest.TestCase):
    def every_element_is_fixed(self, folder, at_least):
        files = list(loaded_files(folder))
        self.assertGreaterEqual(len(files), at_least, f"programs and libraries in {folder}")
        loose = {str(path): run_path(path) for path in files
                 if not all(map(is_fixed, run_path(path)))}
        self.assertEqual(loose, {}, "looked for in the current directory")

    def test_of_the_build_have_no_empty_or_relative_element(self):
        self.every_element_is_fixed(BUILD, 3)

    def test_of_what_is_installed_have_none_either(self):
        with tempfile.TemporaryDirectory(prefix="ringlab-install-") as prefix:
            subprocess.run([CMAKE, "--install", BUILD, "--prefix", prefix], check=True,
                           stdout=subprocess.DEVNULL)
            self.every_element_is_fixed(prefix, 2)

    def test_an_empty_element_is_seen(self):
        for loose in ("", "lib", ".", "./lib", "$ORIGINAL/lib", "$LIB"):
            self.assertFalse(is_fixed(loose), loose)
        for fixed in ("/usr/lib", "$ORIGIN", "$ORIGIN/../lib", "${ORIGIN}/../lib"):
            self.assertTrue(is_fixed(fixed), fixed)


if __name__ == "__main__":
    try:
        subprocess.run([READELF, "--version"], stdout=subprocess.DEVNULL, check=True)
    except OSError:
        print(f"{READELF} is missing: nothing was checked")
        sys.exit(77)
    unittest.main()
