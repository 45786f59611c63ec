"""The record of what has passed, `.ci/passed`: a line `GROUP HASH DATE` for each hash of inputs with
which a group of checks has passed. Only scripts/check_changed writes it.

Lines count that the change under test did not write itself: the record is read as it stood at the base,
the newest commit from before the change.
"""
import datetime
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ".ci/passed"
KEPT = 6  # hashes of a group: two for each kind of vectors
HOURS = 4  # no change takes longer from its first commit to its check

Record = dict[str, dict[str, str]]  # group -> hash -> date


def git(*words: str) -> str | None:
    """Standard output of git; None where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base(named: str | None) -> str | None:
    """The newest commit from before the change under test: the one named (or $RINGLAB_BASE), else where
    this branch left origin's, else the newest one that is older than HOURS; None without any."""
    named = named or os.environ.get("RINGLAB_BASE")
    if named:
        return git("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}")
    head = git("rev-parse", "HEAD")
    left = git("merge-base", "HEAD", "origin/HEAD")
    if left and left != head:
        return left
    return git("rev-list", "-1", f"--before={HOURS} hours ago", "HEAD") or None


def parse(text: str) -> Record:
    record: Record = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            group, hashed, date = line.split()
            record.setdefault(group, {})[hashed] = date
    return record


def at(commit: str | None) -> Record:
    """The record as it stood at a commit; empty where there was none."""
    return parse(git("show", f"{commit}:{FILE}") or "") if commit else {}


def add(passed: dict[str, str]) -> None:
    """Writes the hashes of groups that have passed just now into the checkout's record."""
    path = ROOT / FILE
    record = parse(path.read_text()) if path.exists() else {}
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for group, hashed in passed.items():
        record.setdefault(group, {})[hashed] = now
    lines = ["# Written by scripts/check_changed alone: group, hash of its inputs, when it passed."]
    for group in sorted(record):
        newest = sorted(record[group].items(), key=lambda line: line[1])[-KEPT:]
        lines += [f"{group} {hashed} {date}" for hashed, date in newest]
    temporary = path.with_suffix(".new")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(path)
