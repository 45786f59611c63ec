"""Inputs of a group of checks, and one hash over them: what has to differ before a group is run again.

A group's inputs are the files that its programs are compiled from (ninja's graph, and the project's
headers behind them), the commands that compile and link them, files that it declares, and the place:
compiler, packages, and for groups that execute programs the processor's kind of vectors.
"""
import fnmatch
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(rb'#\s*include\s*["<]([^">]+)[">]')
OUTPUTS = re.compile(r"^build ((?:[^:$]|\$.)+):", re.M)
TARGETS = ("programs", "targets", "made_of")
PACKAGES = ("build", "test", "ci", "python", "notebooks")


class UnknownInput(Exception):
    """A group that names a file, a program or a test that is not there."""


def said_by(*words: str, folder: pathlib.Path = ROOT) -> str:
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


def digest(path: str) -> str:
    """The hash of a file's contents as they are now, in which the checkout may stand anywhere."""
    contents = pathlib.Path(path).read_bytes()
    if "/Unity/" in path:  # written by CMake, with absolute paths
        contents = contents.replace(str(ROOT).encode(), b"")
    return hashlib.sha256(contents).hexdigest()


cached_digest = functools.lru_cache(None)(digest)


@functools.lru_cache(None)
def included(path: str) -> tuple[str, ...]:
    """The project's files that a file includes: root-relative, beside it, or by absolute path."""
    found = []
    for name in INCLUDE.findall(pathlib.Path(path).read_bytes()):
        for folder in (ROOT, pathlib.Path(path).parent):
            target = folder / os.fsdecode(name)
            if target.is_file() and target.is_relative_to(ROOT):
                found.append(os.path.normpath(target))
                break
    return tuple(found)


def with_includes(paths: set[str]) -> set[str]:
    """The files, and all that they include."""
    seen, left = set(), list(paths)
    while left:
        path = left.pop()
        if path not in seen:
            seen.add(path)
            left += included(path)
    return seen


def matching(patterns: list[str]) -> set[str]:
    """Files of the checkout, committed or not; each pattern (** and * as git has them) fits one."""
    found = set()
    for pattern in patterns:
        fits = said_by("git", "ls-files", "-co", "--exclude-standard", "--", f":(glob){pattern}").split("\n")
        files = {str(ROOT / name) for name in fits if name and (ROOT / name).is_file()}
        if not files:
            raise UnknownInput(f"expected files for {pattern!r}, found none")
        found |= files
    return found


class BuildGraph:
    """A folder that CMake has configured for ninja; nothing in it needs to be compiled."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        text = (folder / "build.ninja").read_text()
        self.outputs = {name for names in OUTPUTS.findall(text) for name in names.split()}
        self.phony = {match[1]: match[2].split() for match in re.finditer(
            r"^build (\S+): phony(.*)$", text, re.M)}
        # In ctest's order, which numbers them from 1; two programs may have tests of one name.
        self.listed = json.loads(said_by("ctest", "--test-dir", str(folder), "--show-only=json-v1"))["tests"]
        self.tests = {test["name"]: test for test in self.listed}

    def asked(self, tool: str, targets: list[str]) -> list[str]:
        return said_by("ninja", "-t", tool, *targets, folder=self.folder).splitlines()

    def expanded(self, patterns: list[str]) -> list[str]:
        """Targets whose names, as ninja has them, fit a pattern; at least one for each."""
        names = self.outputs | set(self.phony)
        found = set()
        for pattern in patterns:
            fits = fnmatch.filter(names, pattern)
            if not fits:
                raise UnknownInput(f"expected targets like {pattern!r}, found none")
            found.update(fits)
        return sorted(found)

    def programs(self) -> set[str]:
        """Programs and loaded libraries that `all` makes, as ninja names them."""
        found, left = set(), ["all"]
        while left:
            name = left.pop()
            if name in self.phony:
                left += self.phony[name]
            elif not name.endswith(".a"):
                found.add(name)
        return found

    def sources(self, targets: list[str]) -> set[str]:
        """Files that the targets are made of; not those which rules make of other files."""
        found = set()
        for name in self.asked("inputs", targets):
            path = os.path.normpath(self.folder / name)
            made = name in self.outputs or os.path.relpath(path, self.folder) in self.outputs
            if path.startswith(f"{ROOT}/") and not made and os.path.isfile(path):
                found.add(path)
        return with_includes(found)

    def commands(self, targets: list[str]) -> str:
        return "\n".join(self.asked("commands", targets)).replace(str(ROOT), "")

    def described(self, tests: list[str]) -> str:
        """Commands and properties of tests."""
        missing = [name for name in tests if name not in self.tests]
        if missing:
            raise UnknownInput(f"expected tests named {', '.join(missing)}, found none")
        kept = [{key: self.tests[name].get(key) for key in ("command", "properties")} for name in tests]
        return json.dumps(kept).replace(str(ROOT), "")


@functools.lru_cache(None)
def vectors() -> str:
    """The widest vectors of this processor."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    return next((kind for kind in ("amx_tile", "avx512f", "avx2", "asimd") if f" {kind}" in text), "none")


@functools.lru_cache(None)
def place() -> str:
    """Compiler and packages, by version."""
    packages = said_by(str(ROOT / "scripts/packages"), "--print", *PACKAGES).split()
    versions = subprocess.run(["dpkg-query", "-W", *sorted(set(packages))], capture_output=True, text=True)
    nanobind = sorted(path.name for path in ROOT.glob("build/python-environment/lib/*/site-packages/*-info"))
    nvcc = subprocess.run("nvcc --version", shell=True, capture_output=True, text=True).stdout
    return "\n".join([said_by("c++", "--version"), versions.stdout, *nanobind, nvcc])


def targets_of(group: dict) -> list[str]:
    return [target for kind in TARGETS for target in group.get(kind, [])]


def files_of(group: dict, graph: BuildGraph) -> set[str]:
    """All files that a group of groups.toml is said to read."""
    files = matching(group.get("files", []))
    if group.get("follow"):
        files = with_includes(files)
    targets = targets_of(group)
    return files | graph.sources(targets) if targets else files


class Inputs:
    """The inputs of a group at the time of construction; `hash` stands for all of them."""

    def __init__(self, group: dict, graph: BuildGraph):
        self.files = {path: cached_digest(path) for path in sorted(files_of(group, graph))}
        self.hash = hash_of(group, graph, self.files)

    def are_as_they_were(self) -> bool:
        return all(os.path.exists(path) and digest(path) == before for path, before in self.files.items())


def hash_of(group: dict, graph: BuildGraph, files: dict[str, str]) -> str:
    """One hash over all inputs of a group."""
    parts = [place(), json.dumps(group, sort_keys=True)]
    if group.get("executes", True):
        parts.append(vectors())
    targets = targets_of(group)
    if targets:
        parts.append(graph.commands(targets))
    if group.get("tests"):
        parts.append(graph.described(group["tests"]))
    parts += [f"{path.removeprefix(str(ROOT))} {contents}" for path, contents in files.items()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def undeclared(group: dict, graph: BuildGraph) -> list[str]:
    """Runs a group under strace: files of the checkout, neither made nor ignored, that it read and does not declare."""
    command = group.get("command")
    if not command:
        names = "|".join(map(re.escape, group.get("tests", [])))
        command = f"ctest --test-dir build -R '^({names})$' || true"
    with tempfile.NamedTemporaryFile() as log:
        subprocess.run(["strace", "-f", "-qq", "-e", "trace=openat,open,execve", "-o", log.name, "bash", "-c", command],
                       cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = pathlib.Path(log.name).read_text(errors="replace").splitlines()
    opened = {match[1] for line in lines if not line.endswith(")") and "O_DIRECTORY" not in line
              and " = -1 " not in line and (match := re.search(r'"([^"]+)"', line))}
    paths = {os.path.normpath(ROOT / name) for name in opened}
    tracked = matching(["**"])
    return sorted(os.path.relpath(path, ROOT) for path in (paths & tracked) - files_of(group, graph))
