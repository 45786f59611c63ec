"""One try: the learner's file compiled by itself, run in a process of its own, and judged."""
import dataclasses
import enum
import errno
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import time

import headers
from catalogue import Lab, LabError, PROGRAMS, STAGES
from files import write_file
from workspace import HIDDEN, Workspace

COMPILER = os.environ.get("CXX") or os.environ.get("RINGLAB_COMPILER", "c++")
# Options of the compiler: fast to compile, and no function of another stage takes the place of
# the learner's.
FLAGS = ["-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off",
         "-fmax-errors=1", "-fdiagnostics-color=never", "-Wall", "-Wextra"]
CASES = 8
CALL_SECONDS = 4
BUSY_CALL_SECONDS = 12  # for who was not ready, as the machine may be busy with other work
DEADLINE = 120
# Memory, the size of a file and the time that a file may cost while it is compiled: KiB, blocks, s.
# Limits that are stricter already stay. The library is written where the compiler may write, then copied.
LIMITED = ["sh", "-c", 'for limit in "-v 4194304" "-f 524288" "-t 60"; do ulimit $limit 2>/dev/null; '
           'done; "$@" -o "$TMPDIR/library.so" && cat "$TMPDIR/library.so"', "sh"]
PUBLIC_SEED = 1
OF_THE_MACHINE = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT,
                  errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM)


class Outcome(enum.Enum):
    """Outcomes of a try; the value is the exit code of `ringlab lab test`."""
    DONE = 0
    WRONG = 1
    NOT_DONE = 10
    DOES_NOT_COMPILE = 11
    CRASHED = 12
    STUCK = 13

    def words(self) -> str:
        return self.name.lower().replace("_", " ")


@dataclasses.dataclass
class Verdict:
    outcome: Outcome
    lines: list[str]
    token: str = ""
    mistakes: dict[str, str] = dataclasses.field(default_factory=dict)  # what was said, by name
    case: str = ""
    compiled_s: float = 0
    judged_s: float = 0


def library_of(workspace: Workspace, lab: Lab) -> pathlib.Path:
    return workspace.path / HIDDEN / f"{lab.id}_{lab.name}.so"


def compile_lab(workspace: Workspace, lab: Lab) -> list[str]:
    """Lines about the first error; none when there is a library now."""
    return compile_file(workspace.path, lab, workspace.source(lab), library_of(workspace, lab))


def compile_file(folder: pathlib.Path, lab: Lab, source: pathlib.Path,
                 library: pathlib.Path) -> list[str]:
    """Compiles a file, in a folder that stands in for the lab's stage, to a library."""
    source = source.resolve()
    said = compiler_says(lab, source, library, folder.resolve())
    if said and not is_about(source, said):
        require_compiler(lab, library)
    if said:
        return first_error(said, source, folder)
    return [f"`{answer}`: the answer of this lab, which is to be written here"
            for answer in headers.answers_in(library, lab)]


def compiler_says(lab: Lab, source: pathlib.Path, library: pathlib.Path, folder: pathlib.Path) -> str:
    """The reason why there is no library; "" where there is one. The compiler reads the system's files
    and its own, those in the folder and those beside the library."""
    library.parent.mkdir(exist_ok=True)
    glue = library.with_suffix(".cpp")
    write_file(glue, f'#include "{source}"\n#include "property_tests/stage_libraries/stage_library.h"\n'
                     f"RINGLAB_STAGE_LIBRARY({lab.name})\n")
    include = headers.write_headers(lab, library.with_suffix(".include"))
    compiler = shlex.split(COMPILER)
    readable = [folder, library.parent.resolve(), *files_of(compiler)]
    library.unlink(missing_ok=True)
    code, said = behind_walls(readable, [*LIMITED, *compiler, *FLAGS, "-I", str(include), str(glue)], library)
    if code:
        library.unlink(missing_ok=True)
    return (said or f"the compiler: exit code {code}") if code else ""


def files_of(compiler: list[str]) -> list[pathlib.Path]:
    """Files and folders that a compiler is made of, besides the system's."""
    found = shutil.which(compiler[0])
    if not found:
        raise LabError(f"the compiler: expected {compiler[0]}, found no such program. Set CXX", 4)
    prefix = pathlib.Path(found).resolve().parent.parent
    named = [pathlib.Path(word[word.index("/"):]) for word in compiler if "/" in word]
    return named if pathlib.Path.home().is_relative_to(prefix) else [prefix, *named]


def behind_walls(readable: list[pathlib.Path], words: list[str], output: pathlib.Path) -> tuple[int, str]:
    """(exit code, standard error) of a program behind walls, whose standard output is a file."""
    ours, theirs = socket.socketpair()
    here = output.parent.resolve()
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=here) as scratch, open(output, "wb") as file, \
            theirs, subprocess.Popen([program("ringlab-compiler-host"), scratch, *readable, "--", *words], stdin=theirs,
                                     stdout=file, stderr=subprocess.PIPE, text=True, errors="replace") as running, ours:
        theirs.close()
        try:
            _, said = running.communicate(timeout=DEADLINE)
            return running.returncode, said
        except subprocess.TimeoutExpired:  # the end of the socket is the program's
            return 1, f"the compiler: expected an end within {DEADLINE} s, found none"


def is_about(source: pathlib.Path, said: str) -> bool:
    """True when the compiler's error is at a line of code, and not about the machine."""
    at = re.search(r"^\S+?:\d+:(\d+:)? (fatal )?error: (.*)", said, re.MULTILINE)
    return bool(at) and str(source) in said and not any(
        os.strerror(error) in at[3] for error in OF_THE_MACHINE)


def require_compiler(lab: Lab, library: pathlib.Path) -> None:
    """Environment error where the compiler fails with ringlab's own file of the lab as well."""
    own = STAGES / lab.file_name()
    said = compiler_says(lab, own, library.with_suffix(".own.so"), own.parent)
    if said:
        error = next((line for line in said.splitlines() if "error" in line), said.splitlines()[0])
        raise LabError(f"the compiler: expected it to compile ringlab's own {lab.file_name()} here, found: "
                       f"{error}. The machine may lack memory, room for temporary files, descriptors "
                       "or processes", 4)


def compiler_version() -> str:
    return subprocess.run([*shlex.split(COMPILER), "--version"], capture_output=True, text=True,
                          check=False).stdout.split("\n")[0]


def warnings_of(source: pathlib.Path) -> str:
    """The compiler's warnings about a file that no learner wrote; "" where it has none."""
    words = [*shlex.split(COMPILER), *FLAGS, "-Werror", "-fsyntax-only", "-x", "c++", "-include",
             str(source), "-I", str(STAGES.parent), "/dev/null"]
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE,
                          check=False).stderr


def first_error(text: str, source: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """The first error, and the line of the learner's file that leads to it."""
    lines = text.splitlines()
    mine = re.compile(re.escape(str(source)) + r":(\d+)")
    at = next((i for i, line in enumerate(lines) if re.search(r"\b(fatal )?error: ", line)), 0)
    shown = [line.replace(str(folder.resolve()) + "/", "") for line in lines[at:at + 3]]
    where = next((mine.search(line) for line in lines if mine.search(line)), None)
    if where and not mine.search(lines[at]):
        shown.append(f"which comes from line {where[1]} of your file")
    return shown


class Late(LabError):
    """A run that did not end in time."""


class Runs:
    """Programs that run now, in any thread, so that they can be ended together."""
    now: set[subprocess.Popen] = set()
    have_ended = False


def end_runs() -> None:
    """Ends all programs that run now; none starts any more."""
    Runs.have_ended = True
    for running in tuple(Runs.now):
        running.terminate()


def program(name: str) -> pathlib.Path:
    """A program of ringlab; environment error unless all that labs need are there."""
    needed = ("ringlab", "ringlab-compiler-host", "ringlab-stage-host")
    missing = [one for one in needed if not (PROGRAMS / one).exists()]
    if missing:
        raise LabError(f"programs: expected {', '.join(needed)} in {PROGRAMS}, found no {', '.join(missing)}. "
                       f"Build them: cmake --build build --target {' '.join(needed)}", 4)
    return PROGRAMS / name


def run_ringlab(*words: str, user: int | None = None, text: str = "") -> subprocess.CompletedProcess:
    """Runs ringlab, as another user where one is given, with a text as standard input."""
    other = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    if Runs.have_ended:
        raise LabError("grading: expected to go on, found that it was ended", 4)
    with subprocess.Popen([program("ringlab"), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", **other) as running:
        Runs.now.add(running)
        try:
            out, err = running.communicate(text, DEADLINE)
            return subprocess.CompletedProcess(words, running.returncode, out, err)
        except subprocess.TimeoutExpired:
            raise Late(f"ringlab {words[0]}: expected an end within {DEADLINE} s, found none. Does the "
                       "file print much, or compute more than it has to?", 4) from None
        finally:
            running.kill()  # one that has ended is left alone
            Runs.now.discard(running)


def judge(library: pathlib.Path, cases: int, seed: int = PUBLIC_SEED,
          user: int | None = None) -> Verdict:
    """The verdict of a run, which is repeated with a later deadline if it missed one: the machine may be busy."""
    verdict = judge_within(CALL_SECONDS, library, cases, seed, user)
    if any(words in line for line in verdict.lines for words in DEADLINES):
        verdict = judge_within(BUSY_CALL_SECONDS, library, cases, seed, user)
    return verdict


def judge_within(call_seconds: int, library: pathlib.Path, cases: int, seed: int,
                 user: int | None) -> Verdict:
    done = run_ringlab("verify", str(library), "--cases", str(cases), "--seed", "-",
                       "--timeout", str(call_seconds), "--json", "-", user=user, text=f"{seed}\n")
    if done.returncode not in (0, 1):
        raise LabError(done.stderr.strip() or done.stdout.strip(), done.returncode)
    subject = json.loads(done.stdout)["subjects"][0]
    if done.returncode == 0:
        held = sum(law["verdict"] == "held" for law in subject["laws"])
        return Verdict(Outcome.DONE, [f"{held} laws hold, {cases} cases each"])
    return wrong(subject)


def wrong(subject: dict) -> Verdict:
    """A verdict with the name of the mistake first, then the evidence."""
    broken = [law for law in subject["laws"] if law.get("failure")]
    if not broken:
        return Verdict(Outcome.WRONG, [str(subject["input"])])
    insight = subject.get("insight") or {}
    law = shown_of(broken, insight)
    failure = law["failure"]
    named = {suspect["id"]: insight["sentence"] for suspect in insight.get("explains", [])}
    lines = [f"{insight['sentence']} ({', '.join(named)})" if named else "no known mistake matches"]
    lines += [f"law      {law['statement']}", f"case     {failure['case']}",
              f"found    {without_suspect(failure['message'])}"]
    lines += [f"also     {finding}" for finding in insight.get("findings", [])[:2]]
    question = insight.get("question") or question_about(failure["message"])
    if question:
        lines.append(f"think    {question}")
    if len(broken) > 1:
        lines.append(f"and {len(broken) - 1} other laws broke")
    return Verdict(outcome_of(failure["message"]), lines, failure["token"], named,
                   failure["case"])


def shown_of(broken: list[dict], insight: dict) -> dict:
    """The broken law that the diagnosis explains; without a diagnosis the plainest one."""
    has_diagnosis = insight.get("explains") or insight.get("findings")
    wanted = [insight["law"]] if has_diagnosis else ["equals_reference", "gradients_equal_reference"]
    return next((law for name in wanted for law in broken if law["id"] == name), broken[0])


def without_suspect(message: str) -> str:
    """The message without the rank at fault: all ranks run the learner's file."""
    return re.sub(r"\.? Suspect: rank \d+", "", message)


def question_about(message: str) -> str:
    """A question that points at the cause, for mistakes without a known name."""
    if "disagree about the size" in message:
        return "Whose chunk is on its way here, and what makes both ends think of the same owner?"
    return ""


DEADLINES = ("gave no answer within", "no message within")


def outcome_of(message: str) -> Outcome:
    if "it crashed with" in message:
        return Outcome.CRASHED
    if any(words in message for words in ("a deadlock", *DEADLINES)):
        return Outcome.STUCK
    return Outcome.WRONG


def judge_or_late(library: pathlib.Path, cases: int) -> Verdict:
    try:
        return judge(library, cases)
    except Late as late:
        return Verdict(Outcome.STUCK, [str(late)])


def no_results(_: Verdict) -> dict[pathlib.Path, bytes]:
    return {}


def attempt(workspace: Workspace, lab: Lab, cases: int = CASES, results=no_results) -> Verdict:
    """Compiles and judges the learner's file, and notes the verdict in the workspace, together with the
    files that `results` makes of it."""
    began = time.monotonic()
    error = compile_lab(workspace, lab)
    compiled = time.monotonic()
    left = workspace.not_done(lab)
    if not workspace.text(lab).strip():
        verdict = Verdict(Outcome.DOES_NOT_COMPILE, [
            f"{lab.file_name()} is empty: `ringlab lab reset {lab.id}` writes it anew"])
    elif error:
        verdict = Verdict(Outcome.DOES_NOT_COMPILE, error)
    elif left:
        tasks = {exercise.name: exercise.task for exercise in lab.exercises}
        verdict = Verdict(Outcome.NOT_DONE, [f"{name}: {tasks[name]}" for name in left])
    else:
        verdict = judge_or_late(library_of(workspace, lab), cases)
    verdict.compiled_s = compiled - began
    verdict.judged_s = time.monotonic() - compiled
    with workspace.changing() as contents:
        contents |= results(verdict)
        note = workspace.of(lab)
        note["tries"] += 1
        note["outcome"] = verdict.outcome.words()
        note["token"] = verdict.token
        note["mistakes"] = note.get("mistakes", {}) | verdict.mistakes
    return verdict
