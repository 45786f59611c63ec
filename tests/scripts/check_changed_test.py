"""scripts/check_changed on a made-up project: a library, a program for each of two groups of tests, and a check
that is a command. Each test changes something, and looks at which groups run."""
import datetime
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from checks import inputs  # noqa: E402

FILES = {
    ".gitignore": "/build/\n/build-*/\n",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(made_up LANGUAGES CXX)
enable_testing()
add_subdirectory(more)
include_directories(${PROJECT_SOURCE_DIR})
add_library(shared STATIC shared.cpp)
foreach(name one two free)
  add_executable(${name}_test ${name}_test.cpp)
  target_link_libraries(${name}_test PRIVATE shared)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  add_test(NAME ${name} COMMAND ${name}_test)
endforeach()
""",
    # Two tests of one name, before all others.
    "more/CMakeLists.txt": "add_test(NAME free COMMAND true)\n",
    "CMakePresets.json": """{"version": 6, "configurePresets": [{"name": "ci", "generator": "Ninja",
      "binaryDir": "${sourceDir}/build"}]}""",
    "shared.cpp": '#include "shared.h"\nint shared() { return 0; }\n',
    "shared.h": "int shared();\n",
    "one.h": "inline int one() { return 0; }\n",
    "page.md": "A page.\n",
    **{f"{name}_test.cpp": f'#include "shared.h"\n{include}int main() {{ return {value}; }}\n' for name, include, value in (
        ("one", '#include "one.h"\n', "one() + shared()"), ("two", "", "shared()"), ("free", "", "shared()"))},
    "scripts/build": 'while [ "$1" != -- ]; do shift; done; shift; ninja -C build "$@"\n',
    "scripts/packages": "echo g++\n",
    "scripts/checks/groups.toml": """[one]
programs = ["bin/one_test"]
[two]
programs = ["bin/two_*"]
[page]
command = "grep -q page page.md"
files = ["*.md"]
[layers]
command = "echo 3 files"
always = true
[devices]
command = "false"
needs = {command = "false", else = "no device"}
files = ["page.md"]
[words]
command = "grep -q . {}.md"
files = [".gitignore"]
each = {page = ["page.md"]}
[endless]
command = "touch build/endless"
long = true
""",
}
OLD = "2020-01-01T00:00:00Z"


class CheckChangedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringlab-checks-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(("#!/usr/bin/env bash\nset -e\n" if name.startswith("scripts/") and "toml" not in name else "") + text)
            path.chmod(0o755)
        for name in ("check_changed", "checks/inputs.py", "checks/junit.py", "checks/record.py"):
            shutil.copy(SCRIPTS / name, self.folder / "scripts" / name)
        self.git("init", "-q", "-b", "main")
        self.commit(OLD)

    def git(self, *words, **environment):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=self.folder, check=True,
                       env={**os.environ, **environment})

    def commit(self, date):
        (self.folder / ".ci").mkdir(exist_ok=True)
        self.git("add", "-A")
        self.git("commit", "-qm", "change", "--date", date, GIT_COMMITTER_DATE=date)

    def edit(self, name, old, new):
        path = self.folder / name
        self.assertIn(old, path.read_text())
        path.write_text(path.read_text().replace(old, new))

    def check(self, *words):
        """The exit code, the groups that ran or would, and what was printed."""
        environment = {name: value for name, value in os.environ.items() if name != "RINGLAB_BASE"}
        done = subprocess.run([self.folder / "scripts/check_changed", *words], cwd=self.folder, env=environment,
                              capture_output=True, text=True, timeout=600)
        lines = [line.split() for line in done.stdout.splitlines()]
        told = {line[1] for line in lines if len(line) > 1 and line[0] in ("ok", "FAILED", "skipped")}
        return done.returncode, told - {"configure", "build", "tests"}, done.stdout + done.stderr

    def passed_once(self):
        """All groups have passed, before the change under test."""
        code, _, text = self.check()
        self.assertEqual(code, 0, text)
        self.commit(OLD)

    def test_without_a_record_everything_but_long_groups_runs(self):
        code, ran, text = self.check()
        self.assertEqual((code, ran), (0, {"one", "two", "page", "layers", "devices", "words-page"}), text)
        self.assertIn("no device", text)
        self.assertIn("8 passed, 0 failed, 1 skipped", text)  # with configure, build, tests; devices is skipped
        record = (self.folder / ".ci/passed").read_text()
        self.assertEqual({line.split()[0] for line in record.splitlines()[1:]}, {"one", "two", "page", "layers", "words-page"})

    def test_what_has_passed_is_skipped_but_for_one_in_turn(self):
        self.passed_once()
        _, ran, text = self.check()
        self.assertEqual(len(ran & {"one", "two", "page", "words-page"}), 1, text)
        self.assertIn("its turn", text)
        tests = 2 + len(ran & {"one", "two"})  # that of no group, too
        self.assertIn(f"build/tests.xml: {tests} tests passed", text)

    def test_the_turn_goes_to_the_group_that_has_not_run_for_longest(self):
        self.passed_once()
        path = self.folder / ".ci/passed"
        lines = [line.rsplit(" ", 1)[0] + (" 2001-01-01T00:00:00Z" if line.startswith("two ") else " 2002-01-01T00:00:00Z")
                 for line in path.read_text().splitlines()[1:]]
        path.write_text("\n".join(lines) + "\n")
        self.commit(OLD)
        self.assertIn("two", self.check()[1])

    def test_a_header_runs_the_programs_that_include_it(self):
        self.passed_once()
        self.edit("one.h", "return 0", "return 0 + 0")
        _, _, text = self.check("--list")
        self.assertRegex(text, r"one +its inputs changed")
        self.assertNotRegex(text, r"two +its inputs changed")
        self.assertNotRegex(text, r"page +its inputs changed")

    def test_a_word_of_a_group_has_files_of_its_own(self):
        self.passed_once()
        self.edit("page.md", "A page.", "Another page.")
        self.assertRegex(self.check("--list")[2], r"words-page +its inputs changed")

    def test_a_library_runs_all_that_link_it(self):
        self.passed_once()
        self.edit("shared.cpp", "return 0", "return 0 + 0")
        _, _, text = self.check("--list")
        self.assertRegex(text, r"one +its inputs changed")
        self.assertRegex(text, r"two +its inputs changed")

    def test_flags_are_inputs(self):
        self.passed_once()
        self.edit("CMakeLists.txt", "add_library(", "add_compile_options(-O1)\nadd_library(")
        self.assertRegex(self.check("--list")[2], r"two +its inputs changed")

    def test_a_break_fails_and_is_not_recorded(self):
        self.passed_once()
        before = (self.folder / ".ci/passed").read_text()
        self.edit("one.h", "return 0", "return 1")
        code, ran, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("one", ran)
        self.assertRegex(text, r"FAILED +one ")
        kept = [line for line in (self.folder / ".ci/passed").read_text().splitlines() if line.startswith("one ")]
        self.assertEqual(kept, [line for line in before.splitlines() if line.startswith("one ")])

    def test_tests_of_no_group_run_each_time(self):
        self.passed_once()
        self.edit("free_test.cpp", "return shared()", "return 1")
        code, _, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertIn("failed: free", text)

    def test_lines_of_the_change_itself_do_not_count(self):
        self.edit("one.h", "return 0", "return 0 + 0")
        self.check()
        self.commit(datetime.datetime.now(datetime.timezone.utc).isoformat())
        self.assertRegex(self.check("--list")[2], r"one +no base has seen it pass")
        self.assertNotRegex(self.check("--list", "--base", "HEAD")[2], r"one +no base has seen it pass")

    def test_what_is_not_there_is_told(self):
        self.edit("scripts/checks/groups.toml", 'files = ["*.md"]', 'files = ["pages/*.md"]')
        code, _, text = self.check("--list")
        self.assertEqual(code, 1)
        self.assertIn("expected files for 'pages/*.md', found none", text)
        code, _, text = self.check("--only", "three")
        self.assertEqual(code, 1)

    def test_files_that_were_edited_meanwhile_are_not_recorded(self):
        self.edit("scripts/checks/groups.toml", "grep -q page page.md", "echo >> page.md")
        self.check()
        record = (self.folder / ".ci/passed").read_text()
        self.assertNotIn("page ", record)
        self.assertIn("one ", record)

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_an_audit_finds_what_is_read_and_not_declared(self):
        self.assertEqual(self.check("--audit", "page")[0], 0)
        self.edit("scripts/checks/groups.toml", "page page.md", "page one.h page.md")
        code, _, text = self.check("--audit", "page")
        self.assertEqual(code, 1)
        self.assertIn("page: 1 files that it does not declare\n  one.h\n", text)

    def test_long_groups_run_when_all_are_asked_for(self):
        code, ran, text = self.check("--all")
        self.assertEqual(code, 0, text)
        self.assertIn("endless", ran)


class CudaCompile(unittest.TestCase):
    def test_it_reads_what_only_nvcc_builds_compile_and_what_that_includes(self):
        group = tomllib.loads((SCRIPTS / "checks/groups.toml").read_text())["cuda-compile"]
        files = {os.path.relpath(path, inputs.ROOT) for path in inputs.with_includes(inputs.matching(group["files"]))}
        listed = set(inputs.said_by("git", "ls-files", "*.cu", "*.cuh").split())
        self.assertEqual(listed - files, set())
        self.assertLessEqual({"optimized/ring/device_engine.cpp", "optimized/ring/messages/nccl_links.cpp",
                              "optimized/transport/nccl/nccl_calls.cpp", "stages/common/device_rings.cpp",
                              "reference/core/problem.h", "tests/optimized/transport/fake_nccl.cpp"}, files)
        self.assertFalse({name for name in files if name.startswith(("docs/", "cli/report/page", "cli/lab/", "python/"))})


if __name__ == "__main__":
    unittest.main()
