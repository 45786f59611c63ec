"""Grades every submission of handed_in.py twice: each has the points that it is worth, or not.

    tests/cli/lab/grade_test.py --all [--jobs N] [--markdown docs/grading.md]

--markdown writes the table there."""
import argparse
import json
import pathlib
import tempfile
import time

import grade_reports
import grading
import handed_in
import regions
from catalogue import find_lab
from marked import with_part
from program import ringlab

SECRET = b"the bytes that make this test's secret seed"


def grade_all(jobs: int, page: pathlib.Path | None) -> int:
    """Every submission twice: 0 where each has its outcomes, and the same bytes again."""
    everything = handed_in.EVERYTHING
    with tempfile.TemporaryDirectory(prefix="ringlab-grade-all-") as name:
        folder = pathlib.Path(name)
        (folder / "secret").write_bytes(SECRET)
        for one in everything:
            one.write(folder / "class")
        for output in ("out", "again"):
            began = time.monotonic()
            ringlab("lab", "grade", folder / "class", "--secret", folder / "secret", "--jobs", jobs,
                    "--output", folder / output, timeout=3600)
            print(f"{len(everything)} graded in {time.monotonic() - began:.0f} s", flush=True)
        good = [is_as_expected(one, folder) for one in everything]
        seeds = grading.seeds_of(folder / "secret")
        good += [is_kept_out(one, seeds) for one in handed_in.RUN_ANYWAY]
        if page:
            write_table(page, everything, folder)
    return 0 if all(good) else 1


def is_kept_out(one: handed_in.HandedIn, seeds: grading.Seeds) -> bool:
    """What is refused as text has no points without that, either."""
    lab = find_lab(one.lab)
    written = {name: regions.written_in(one.text(), name) for name in one.outcomes}
    status, facts = grading.judge(lab, written, seeds)
    good = [status] == list(one.outcomes.values())
    print(f"{'ok ' if good else 'BAD'} {one.name:<22} run anyway: {status}  {facts.get('lines')}")
    return good


def write_table(page: pathlib.Path, everything: list, folder: pathlib.Path) -> None:
    lines = ["| submission | lab | points | outcome |", "|---|---|---:|---|"]
    for one in everything:
        report = json.loads((folder / "out" / one.name / "grade.json").read_text())
        outcomes = ", ".join(f"{grade_reports.short(item)}: {grade_reports.status_of(item)}"
                             for _, item in grade_reports.items_of(report))
        points = f"{report['points']} of {report['of']}"
        lines.append(f"| `{one.name}` | {one.lab} | {points} | {outcomes} |")
    page.write_text(with_part(page.read_text(), "tests/cli/lab/grade_test.py --all", "\n".join(lines) + "\n"))


def is_as_expected(one: handed_in.HandedIn, folder: pathlib.Path) -> bool:
    files = [(folder / output / one.name / "grade.json").read_bytes() for output in ("out", "again")]
    report = json.loads(files[0])
    found = {item["item"].split(".")[1]: item["status"] for item in report["labs"][0]["items"]}
    good = found == one.outcomes and report["points"] == one.points() and files[0] == files[1]
    again = "" if files[0] == files[1] else "  other bytes when graded again"
    print(f"{'ok ' if good else 'BAD'} {one.name:<22} {report['points']:>2} of {report['of']}  "
          f"{found}{again}")
    return good


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("--all", action="store_true")
    words.add_argument("--jobs", type=int, default=1)
    words.add_argument("--markdown", type=pathlib.Path)
    words = words.parse_args()
    return grade_all(words.jobs, words.markdown)
