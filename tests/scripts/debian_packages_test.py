"""The Debian packages of the build: what is in them, and what they depend on.

scripts/distribute try installs them, too, which takes longer than a test may."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("RINGLAB_BUILD", "build")
CPACK = os.environ.get("RINGLAB_CPACK", "cpack")


def said_by(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class DebianPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ringlab-debian-")
        cls.addClassCleanup(folder.cleanup)
        # Compressed little, because that takes the longest.
        said_by(CPACK, "--config", f"{BUILD}/CPackConfig.cmake", "-G", "DEB", "-B", folder.name,
                "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        cls.packages = {path.name.split("_")[0]: path for path in pathlib.Path(folder.name).glob("*.deb")}

    def has(self, name, files):
        there = {line.split()[5] for line in said_by("dpkg-deb", "-c", self.packages[name]).splitlines()}
        self.assertEqual({f"./usr/{file}" for file in files} - there, set())
        return there

    def test_there_are_two(self):
        self.assertEqual(set(self.packages), {"ringlab", "libringlab-dev"})

    def test_the_program_has_manual_pages_and_completion(self):
        there = self.has("ringlab", [
            "bin/ringlab", "bin/ringlab-plugin-host",
            "share/bash-completion/completions/ringlab", "share/doc/ringlab/LICENSE",
            "share/man/man1/ringlab.1", "share/man/man1/ringlab-run.1"])
        self.assertFalse([file for file in there if file.endswith((".h", ".a", ".cmake", ".py"))])

    def test_the_program_depends_on_the_libraries_that_it_is_linked_with(self):
        depends = said_by("dpkg-deb", "-f", self.packages["ringlab"], "Depends")
        for library in ("libc6", "libfmt", "libmpfr6"):
            self.assertIn(library, depends)
        self.assertNotIn("-dev", depends)

    def test_other_projects_get_headers_libraries_and_what_those_need(self):
        self.has("libringlab-dev", [
            "include/ringlab/property_tests/library/ringlab.h", "lib/cmake/ringlab/ringlabConfig.cmake",
            "lib/ringlab/libverifier.a"])
        depends = said_by("dpkg-deb", "-f", self.packages["libringlab-dev"], "Depends")
        for package in ("libboost-context-dev", "libfmt-dev", "librapidcheck-dev"):
            self.assertIn(package, depends)


if __name__ == "__main__":
    if not shutil.which("dpkg-shlibdeps"):
        print("dpkg-shlibdeps is missing: nothing was checked")
        sys.exit(77)
    unittest.main()
