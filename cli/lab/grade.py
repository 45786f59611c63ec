"""`ringlab lab grade` and `submit`: options, printed lines and written files."""
import argparse
import concurrent.futures
import json
import pathlib
import time

import attempt
import bundle
import class_page
import grading
import grade_reports
import regions
import signature
import submission
from catalogue import Lab, LabError, all_labs, labs_between
from submission import WORK_LOG
from files import write_texts
from workspace import Workspace, count_of_labs, exported


def run(options) -> int:
    """Exit code 0 when all work could be judged, whatever the points; 3 when some could not be read."""
    began = time.monotonic()
    seeds = grading.seeds_of(pathlib.Path(options.secret))
    handed_in = all_submissions(options.submissions, options.student)
    output = pathlib.Path(options.output) if options.output else None
    documents = []
    refused = {one.student: one.refused for one in handed_in if one.refused}
    for student, reason in refused.items():
        print(f"{student}: not graded: {reason}", flush=True)
    for document in graded([one for one in handed_in if not one.refused], options.stages, seeds, options.jobs):
        try:
            document = kept(document, output, seeds) if output else document
        except signature.NotSigned as error:
            refused[document["student"]] = str(error)
            print(f"{document['student']}: not graded: {error}", flush=True)
            continue
        documents.append(document)
        print(grade_reports.text(document), flush=True)
    if output:
        for error in class_page.write_pages(output, seeds.key):
            print(f"left out of {output}/class.html: {error}")
        print(f"{output}/STUDENT, {output}/class.html, {output}/class.csv")
    not_graded = f", {len(refused)} not" if refused else ""
    print(f"{len(documents)} graded{not_graded}, in {time.monotonic() - began:.0f} s")
    if refused:
        return 3
    return 0 if all(document["complete"] for document in documents) else 4


def all_submissions(paths: list[str], student: str | None) -> list[submission.Submission]:
    if student and len(paths) > 1:
        raise LabError(f"--student: expected one submission, found {len(paths)}")
    if student and not submission.STUDENT.fullmatch(student):
        raise LabError(f'--student: expected letters, digits and _@+.-, found "{student}"')
    found = [one for path in map(pathlib.Path, paths)
             for one in submission.submissions_in(path, student)]
    names = [one.student for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise LabError(f"submissions: expected each student once, found {', '.join(twice)} more "
                       "often. The name is that of the folder or of the .zip")
    return found


def labs_of(one: submission.Submission, stages: str | None) -> list[Lab]:
    """The labs that --stages names, or those that were handed in."""
    if stages:
        return labs_between(stages)
    return [lab for lab in all_labs() if lab.file_name() in one.files]


def graded(handed_in: list[submission.Submission], stages: str | None, seeds: grading.Seeds,
           jobs: int):
    """The documents of submissions, in order; `jobs` labs are graded at a time."""
    where = grading.environment()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = [(one, [pool.submit(grading.grade_lab, lab, one, seeds)
                        for lab in labs_of(one, stages)]) for one in handed_in]
        try:
            for one, labs in parts:
                yield grading.document(one, [lab.result() for lab in labs], seeds, where)
        except BaseException:
            attempt.end_runs()
            pool.shutdown(cancel_futures=True)
            raise


def kept(document: dict, output: pathlib.Path, seeds: grading.Seeds) -> dict:
    """Writes the reports of one student; items with more points in an earlier run keep them."""
    folder = output / document["student"]
    native = folder / "grade.json"
    if native.exists() or native.is_symlink():
        document = grading.best_of(document, signature.read(native, seeds.key))
    document = signature.signed(document, seeds.key)
    reports = {folder / name: make(document) for name, make in grade_reports.ADAPTERS.items()}
    write_texts({native: json.dumps(document, indent=1, sort_keys=True) + "\n"} | reports)
    return document


def submit(options) -> int:
    """Packs the files to hand in, and warns of code that would be refused."""
    workspace = Workspace(pathlib.Path(options.dir))
    files = submission.files_of_folder(workspace.path)
    labs = [lab for lab in all_labs() if lab.file_name() in files]
    missing = [lab for lab in exported(workspace) if lab.file_name() not in files]
    if missing:
        raise LabError(f"{', '.join(lab.file_name() for lab in missing)}: expected all files of labs "
                       "that were exported here, found these missing. Put them back, or begin anew: " +
                       ", ".join(f"`ringlab lab reset {lab.id}`" for lab in missing), 3)
    if not labs:
        raise LabError(f"{workspace.path}: expected a file of a lab, found none", 3)
    target = pathlib.Path(options.file)
    if not target.parent.is_dir():
        raise LabError(f"{target}: expected a folder that is there, found none", 3)
    submission.pack({name: (text.encode(), 0o644) for name, text in files.items()}, target)
    print(f"{target}: {count_of_labs(len(labs))}" + (f" and {WORK_LOG}" if WORK_LOG in files else ""))
    warnings = [line for lab in labs for line in warnings_of(lab, files[lab.file_name()])]
    print("".join(f"  {line}\n" for line in warnings), end="")
    return 1 if warnings else 0


def warnings_of(lab: Lab, file: str) -> list[str]:
    lines = []
    for exercise in lab.exercises:
        mine = regions.written_in(file, exercise.name)
        early = grading.unjudged(lab, exercise, file, mine)
        if early and early[0] != "not done":
            lines += [f"{lab.file_name()}, {exercise.name}: {line}" for line in early[1]["lines"]]
    if regions.differs_outside(lab, file):
        lines.append(f"{lab.file_name()}: changed outside of what is yours; that is not used")
    return lines


def jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"expected 1 … 1000, found {text}")
    return int(text)


def add_actions(add) -> None:
    action = add("submit", "pack your files to hand them in", submit, lab="")
    action.add_argument("file", metavar="FILE.zip")
    action = add("grade", "points for what was handed in, under a public and a secret seed", run,
                 lab="")
    action.add_argument("submissions", nargs="+", metavar="SUBMISSION",
                        help="a folder of `export`, a .zip of `submit`, or a folder of those")
    action.add_argument("--secret", required=True, metavar="FILE",
                        help="bytes that make the secret seed and sign the reports, which have a hash of them")
    action.add_argument("--stages", metavar="FIRST-LAST",
                        help="the labs that were set; unless given, those that were handed in")
    action.add_argument("--student", metavar="NAME", help="unless given, the name of the folder")
    action.add_argument("--jobs", type=jobs, default=1, metavar="N", help="labs at a time (1)")
    action.add_argument("--output", metavar="DIR",
                        help="reports in DIR/STUDENT; points that are there already are not lost")
    bundle.add_action(add)
