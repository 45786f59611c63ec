"""Points for submissions: each exercise is judged in a clean copy of its file, under two seeds."""
import dataclasses
import hashlib
import os
import pathlib
import platform
import subprocess
import tempfile

import allowed
import attempt
import regions
from attempt import Outcome, Verdict
from catalogue import Exercise, Lab, LabError
from submission import Submission

SCHEMA = 1
SECRET_CASES = 16
LEAST_SECRET = 16
NOBODY = 65534


@dataclasses.dataclass
class Seeds:
    """Seeds of cases: the public one of `ringlab lab test`, and a secret one that only the grader knows."""
    secret: int
    secret_sha256: str
    key: bytes  # of the signature of reports

    def all(self):
        """(name, seed, cases of each law), in the order in which they are tried."""
        return [("public", attempt.PUBLIC_SEED, attempt.CASES),
                ("secret", self.secret, SECRET_CASES)]


def seeds_of(file: pathlib.Path) -> Seeds:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise LabError(f"{file}: expected the bytes of the secret seed, found {error.strerror}",
                       3) from None
    if len(content) < LEAST_SECRET:
        raise LabError(f"{file}: expected {LEAST_SECRET} bytes or more that nobody guesses, found "
                       f"{len(content)}. `head -c 32 /dev/urandom > {file}` makes some", 3)
    seed, shown, key = (hashlib.sha256(f"ringlab lab grade: {use}\n".encode() + content)
                        for use in ("seed", "shown", "key"))
    return Seeds(int.from_bytes(seed.digest()[:8], "big"), shown.hexdigest(), key.digest())


def grade_lab(lab: Lab, submission: Submission, seeds: Seeds) -> dict:
    """The lab's part of the document. Its items are the exercises."""
    file = submission.files.get(lab.file_name())
    items, written = {}, {}
    for exercise in lab.exercises:
        mine = regions.written_in(file, exercise.name) if file is not None else None
        early = unjudged(lab, exercise, file, mine)
        if early:
            items[exercise.name] = item_of(lab, exercise, *early)
        else:
            written[exercise.name] = mine
    for name, (status, facts) in judged(lab, written, seeds).items():
        items[name] = item_of(lab, exercise_named(lab, name), status, facts)
    ordered = [items[exercise.name] for exercise in lab.exercises]
    return {"lab": lab.id, "name": lab.name, "title": lab.title,
            "points": sum(item["points"] for item in ordered),
            "of": sum(item["of"] for item in ordered),
            "changed_outside": file is not None and regions.differs_outside(lab, file),
            "items": ordered}


def exercise_named(lab: Lab, name: str) -> Exercise:
    return next(exercise for exercise in lab.exercises if exercise.name == name)


def item_of(lab: Lab, exercise: Exercise, status: str, facts: dict) -> dict:
    points = exercise.points if status == Outcome.DONE.words() else 0
    return {"item": f"{lab.id}.{exercise.name}", "points": points, "of": exercise.points,
            "status": status} | facts


def unjudged(lab: Lab, exercise: Exercise, file: str | None, mine: regions.Written | None):
    """(status, facts) of an exercise that needs no run; None for others."""
    if file is None:
        return "not handed in", {"lines": [f"{lab.file_name()}: no such file"]}
    if mine is None:
        return "not found", {"lines": [f'the comments "Yours: {exercise.name}." and "End of '
                                       f'{exercise.name}.": expected once each']}
    if mine.is_stub(exercise.name):
        return Outcome.NOT_DONE.words(), {"lines": [exercise.task]}
    refused = allowed.refusals(lab, exercise.name, mine)
    return ("not allowed", {"lines": refused[:5]}) if refused else None


def judged(lab: Lab, written: dict[str, regions.Written], seeds: Seeds) -> dict:
    """(status, facts) by exercise: all exercises are judged together, and where that fails each by
    itself, the others being those of the repository."""
    if not written:
        return {}
    together = judge(lab, written, seeds)
    if together[0] == Outcome.DONE.words() or len(written) == 1:
        return {name: together for name in written}
    return {name: judge(lab, {name: mine}, seeds) for name, mine in written.items()}


def judge(lab: Lab, written: dict[str, regions.Written], seeds: Seeds) -> tuple[str, dict]:
    """(status, facts); "no verdict" where the machine fails, which costs no points that were there."""
    try:
        return judge_here(lab, written, seeds)
    except (LabError, OSError) as error:
        return "no verdict", {"lines": [str(error).split("\n")[0]]}


def judge_here(lab: Lab, written: dict[str, regions.Written], seeds: Seeds) -> tuple[str, dict]:
    with tempfile.TemporaryDirectory(prefix="ringlab-grade-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o711)  # the library is read by another user
        source, library = folder / lab.file_name(), folder / "library" / f"{lab.id}_{lab.name}.so"
        source.parent.mkdir()
        source.write_text(regions.composed(lab, written, str(source.resolve())))
        error = attempt.compile_file(folder, lab, source, library)
        if error:
            return Outcome.DOES_NOT_COMPILE.words(), {"lines": error}
        require_for_others("-r", library)
        return run(lab, library, seeds)


def run(lab: Lab, library: pathlib.Path, seeds: Seeds) -> tuple[str, dict]:
    """(status, facts): right where no seed finds a mistake, else the finding of the first one that does."""
    for name, seed, cases in seeds.all():
        try:
            verdict = attempt.judge(library, cases, seed, other_user())
        except LabError as error:
            if error.code in (2, 3):  # it cannot be loaded
                return Outcome.DOES_NOT_COMPILE.words(), {"lines": [first_line(error, library)]}
            return "no verdict", {"lines": [first_line(error, library)]}
        if verdict.outcome is not Outcome.DONE:
            verdict.lines = [line.replace(str(library), library.name) for line in verdict.lines]
            return verdict.outcome.words(), facts_of(lab, verdict, name)
    return Outcome.DONE.words(), {}


def other_user() -> int | None:
    """The user under whom submitted code runs, where the grader is root."""
    return NOBODY if os.geteuid() == 0 else None


def require_for_others(permission: str, path: pathlib.Path) -> None:
    """Environment error where another user lacks the permission: all work would look wrong."""
    user = other_user()
    if user is not None and subprocess.run(["test", permission, path], user=user, group=user,
                                           extra_groups=[], check=False).returncode != 0:
        raise LabError(f"{path}: expected to be open to the user nobody, whom what was handed in "
                       "runs as, found it closed. Build and TMPDIR belong into folders that "
                       "others may enter (chmod o+x)", 4)


def first_line(error: LabError, library: pathlib.Path) -> str:
    return str(error).splitlines()[0].replace(f"{library.parent}/", "")


def facts_of(lab: Lab, verdict: Verdict, seed: str) -> dict:
    law = verdict.token.split("/")[-2:]
    return {"found_by": seed, "mistakes": list(verdict.mistakes), "lines": verdict.lines,
            "case": verdict.case, "token": "/".join([lab.name, *law]) if verdict.token else ""}


def environment() -> dict:
    require_for_others("-x", attempt.PROGRAMS / "ringlab")
    compiler = attempt.compiler_version()
    return {"ringlab": attempt.run_ringlab("--version").stdout.strip(), "compiler": compiler,
            "machine": platform.machine(), "system": platform.system()}


def document(submission: Submission, labs: list[dict], seeds: Seeds, where: dict) -> dict:
    """The native report: the same bytes for the same work, machine and secret."""
    return {"schema": SCHEMA, "kind": "ringlab lab grade", "student": submission.student,
            "submission_sha256": submission.digest(),
            "points": sum(lab["points"] for lab in labs), "of": sum(lab["of"] for lab in labs),
            "complete": not any(item["status"] == "no verdict"
                                for lab in labs for item in lab["items"]),
            "seeds": {"public": attempt.PUBLIC_SEED, "secret_sha256": seeds.secret_sha256},
            "cases": {"public": attempt.CASES, "secret": SECRET_CASES},
            "environment": where, "labs": labs}


def best_of(new: dict, earlier: dict) -> dict:
    """Nobody loses points by handing in again: an item that had more before stays as it was, and so
    does a lab that `new` does not have."""
    digest = earlier["submission_sha256"]
    before = {item["item"]: {"kept_from": digest} | item
              for lab in earlier["labs"] for item in lab["items"]}
    for lab in new["labs"]:
        lab["items"] = [max(item, before.get(item["item"], item), key=lambda one: one["points"])
                        for item in lab["items"]]
        lab["points"] = sum(item["points"] for item in lab["items"])
    here = {lab["lab"] for lab in new["labs"]}
    left = [{**lab, "items": [before[item["item"]] for item in lab["items"]]}
            for lab in earlier["labs"] if lab["lab"] not in here]
    new["labs"] = sorted(new["labs"] + left, key=lambda lab: lab["lab"])
    for total in ("points", "of"):
        new[total] = sum(lab[total] for lab in new["labs"])
    return new
