"""ringlab lab: the stages as exercises."""
import argparse
import json
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import attempt as attempts  # noqa: E402
import watch  # noqa: E402
import debug  # noqa: E402
import grade  # noqa: E402
from catalogue import (LabError, Lab, all_labs, did_you_mean, find_lab,  # noqa: E402
                       labs_between)
from files import write_files  # noqa: E402
from workspace import Workspace, count_of_labs, export, exported  # noqa: E402


def workspace_of(options: argparse.Namespace) -> Workspace:
    return Workspace(pathlib.Path(options.dir))


def lab_of(options: argparse.Namespace, workspace: Workspace) -> Lab:
    return find_lab(options.lab) if options.lab else next_lab(workspace)


def next_lab(workspace: Workspace) -> Lab:
    labs = exported(workspace)
    if not labs:
        raise LabError(f"{workspace.path}: expected the file of a lab, found none. "
                       "`ringlab lab reset 01` writes one", 3)
    return next((lab for lab in labs if workspace.of(lab)["outcome"] != "done"), labs[-1])


def json_of(options, document: dict) -> str:
    return json.dumps({"schema": 1, "action": options.action} | document, indent=1) + "\n"


def json_file(options, document: dict) -> dict[pathlib.Path, bytes]:
    """The content of --json FILE, by name; nothing where that is no file."""
    path = pathlib.Path(options.json or "-")
    return {} if str(path) == "-" or path.is_char_device() else {path: json_of(options, document).encode()}


def tell_json(options, document: dict) -> None:
    """Writes the document to standard output, in place of text, or to a device, if --json is one."""
    if options.json == "-":
        sys.__stdout__.write(json_of(options, document))
    elif options.json and pathlib.Path(options.json).is_char_device():
        pathlib.Path(options.json).write_text(json_of(options, document), encoding="utf-8")


def check_json(path: pathlib.Path) -> None:
    if path.exists() and not path.is_file() and not path.is_char_device():
        raise LabError(f"--json: expected a file, found something else: {path}. Give - for standard output")


def do_list(options) -> int:
    workspace = workspace_of(options)
    document = {"labs": [{"lab": lab.id, "name": lab.name} | workspace.of(lab) |
                         {"to_write": to_write(workspace, lab), "missing": workspace.is_missing(lab)}
                         for lab in exported(workspace)]}
    write_files(json_file(options, document))
    tell_json(options, document)
    labs = exported(workspace)
    width = max((len(lab.name) for lab in labs), default=0)
    print(f"{'lab':<{width + 3}} tries  outcome           points  exercises")
    for lab in labs:
        note, left = workspace.of(lab), to_write(workspace, lab)
        exercises = ", ".join(exercise.name + (" (to write)" if exercise.name in left else "")
                              for exercise in lab.exercises)
        if workspace.is_missing(lab):
            exercises = f"{lab.file_name()} is missing"
        points = sum(exercise.points for exercise in lab.exercises)
        print(f"{lab.id} {lab.name:<{width}} {note['tries']:>5}  {note['outcome']:<16}  {points:>6}  "
              f"{exercises}")
    return 0


def to_write(workspace: Workspace, lab: Lab) -> list[str]:
    """Names of exercises still to write; all of them where the file is missing."""
    if workspace.is_missing(lab):
        return [exercise.name for exercise in lab.exercises]
    return workspace.not_done(lab)


def do_export(options) -> int:
    labs = labs_between(options.stages)
    kept = export(pathlib.Path(options.folder), labs)
    print(f"{count_of_labs(len(labs))} in {options.folder}. Go on there:\n"
          f"  cd {options.folder}\n  ringlab lab next")
    if kept:
        print(f"As you left them: {', '.join(kept)}")
    return 0


def do_next(options) -> int:
    workspace = workspace_of(options)
    lab = next_lab(workspace)
    left = workspace.not_done(lab)
    print(f"{lab.id} {lab.name}: {lab.title}\n\n{lab.goal}\n")
    print(f"Read   {lab.id}_{lab.name}/lesson.md\nWrite  {lab.file_name()}\n")
    for name in left:
        task = next(exercise.task for exercise in lab.exercises if exercise.name == name)
        print(f"  {name}: {task}\n")
    print(f"Then   ringlab lab test {lab.id}   (or ringlab lab watch)")
    return 0


def show(lab: Lab, verdict: attempts.Verdict) -> None:
    print(f"{lab.id} {lab.name}: {verdict.outcome.words()}")
    for line in verdict.lines:
        print(f"  {line}")
    if verdict.token:
        print(f"  again    ringlab lab why {lab.id}")
    print(f"  compiled in {verdict.compiled_s:.1f} s, judged in {verdict.judged_s:.1f} s")


def tried(workspace: Workspace, lab: Lab, cases: int = attempts.CASES,
          results=attempts.no_results) -> attempts.Verdict:
    """The verdict of a try, with warnings about code that would get no points."""
    def with_warnings(verdict: attempts.Verdict) -> dict[pathlib.Path, bytes]:
        if verdict.outcome is attempts.Outcome.DONE:
            refused = grade.warnings_of(lab, workspace.text(lab))
            verdict.lines += [f"but `submit` says: {line}" for line in refused[:5]]
        return results(verdict)
    return attempts.attempt(workspace, lab, cases, with_warnings)


def do_test(options) -> int:
    workspace = workspace_of(options)
    lab = lab_of(options, workspace)

    def document(verdict: attempts.Verdict) -> dict:
        return {"lab": lab.id, "name": lab.name, "outcome": verdict.outcome.words(),
                "passed": verdict.outcome is attempts.Outcome.DONE, "lines": verdict.lines,
                "token": verdict.token or None, "mistakes": list(verdict.mistakes),
                "compile_seconds": verdict.compiled_s, "judge_seconds": verdict.judged_s}

    verdict = tried(workspace, lab, options.cases, lambda one: json_file(options, document(one)))
    show(lab, verdict)
    tell_json(options, document(verdict))
    if verdict.outcome is attempts.Outcome.DONE and lab.questions:
        print(f"  questions to it: ringlab lab ask {lab.id}")
    return verdict.outcome.value


def do_watch(options) -> int:
    workspace = workspace_of(options)
    labs = {lab.id: lab for lab in exported(workspace)}
    files = {name: workspace.path / lab.file_name() for name, lab in labs.items()}

    def test(current: str) -> str:
        show(labs[current], tried(workspace, labs[current]))
        sys.stdout.flush()
        return current

    def go_on(_: str) -> str:
        do_next(options)
        return next_lab(workspace).id

    def about(action):
        def act(current: str) -> str:
            options.lab, options.exercise = current, None
            action(options)
            return current
        return act

    return watch.run(pathlib.Path(options.dir).resolve(), files, next_lab(workspace).id, test,
                     {"r": test, "n": go_on, "h": about(do_hint), "l": about(do_list), "x": about(do_reset)})


def do_hint(options) -> int:
    workspace = workspace_of(options)
    lab = lab_of(options, workspace)
    names = [exercise.name for exercise in lab.exercises]
    if options.exercise and options.exercise not in names:
        raise LabError(f'exercise: expected one of {", ".join(names)}, found "{options.exercise}"')
    wanted = options.exercise or (workspace.not_done(lab) or names)[0]
    exercise = next(one for one in lab.exercises if one.name == wanted)
    with workspace.changing():
        seen = workspace.of(lab)["hints"].get(wanted, 0)
        level = min(seen + 1, len(exercise.hints))
        workspace.of(lab)["hints"][wanted] = level
    print(f"{lab.id} {wanted}, hint {level} of {len(exercise.hints)}: {exercise.hints[level - 1]}")
    others = [each.name for each in lab.exercises if each.name != wanted]
    if seen == len(exercise.hints) and others:
        print(f"  That was the last. For {others[0]}: ringlab lab hint {lab.id} {others[0]}")
    return 0


def do_why(options) -> int:
    workspace = workspace_of(options)
    lab = lab_of(options, workspace)
    token = workspace.of(lab).get("token")
    if not token:
        raise LabError(f"lab {lab.id}: expected a try that was wrong, found "
                       f"\"{workspace.of(lab)['outcome']}\". `ringlab lab test {lab.id}` first", 3)
    done = attempts.run_ringlab("verify", str(attempts.library_of(workspace, lab)), "--replay", token,
                                "--draw")
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


def do_reset(options) -> int:
    workspace = workspace_of(options)
    lab = find_lab(options.lab)
    aside = workspace.reset(lab)
    print(f"{lab.file_name()} is as it was at the beginning" +
          (f"; yours is {aside.name} beside it" if aside else ""))
    return 0


def do_explain(options) -> int:
    """Explains a mistake: for the lab in which a test named it, else for all stages."""
    name, told = options.mistake, named_by_tests(options)
    planted = [(lab, mistake) for lab in all_labs() for mistake in lab.mistakes_named(name)]
    here = [(lab, mistake) for lab, mistake in planted if lab.id in told.get(name, {})]
    if name in told and not here:
        for number, what in told[name].items():
            print(f"{name} (found in your file of lab {number})\n  {what}")
    elif planted:
        print("\n\n".join(explanation(*one) for one in here or planted))
    else:
        known = sorted({m.get("name", m["id"]) for lab in all_labs() for m in lab.mistakes} | {*told})
        raise LabError(f'mistake: expected one of {", ".join(known)}, found "{name}". What a test '
                       "named is known in the folder of that test" + did_you_mean(name, known))
    return 0


def named_by_tests(options) -> dict[str, dict[str, str]]:
    """Explanations that tests gave: by name of the mistake, then by lab."""
    try:
        labs = workspace_of(options).state["labs"]
    except LabError:
        return {}
    told: dict[str, dict[str, str]] = {}
    for number, note in labs.items():
        for name, what in note.get("mistakes", {}).items():
            told.setdefault(name, {})[number] = what
    return told


def explanation(lab: Lab, mistake: dict) -> str:
    return (f"{mistake.get('name', mistake['id'])} (stage {lab.id} {lab.name})\n"
            f"  {mistake['breaks']}\n  Think: {mistake['question']}\n"
            f"  Seen in: {mistake['ancestor']}")


def do_ask(options) -> int:
    workspace = workspace_of(options)
    lab = lab_of(options, workspace)
    if not options.answers:
        for number, question in enumerate(lab.questions, 1):
            print(f"{number}. {question.ask}")
        print(f"\nAnswer: ringlab lab ask {lab.id} " +
              " ".join(f"ANSWER{n + 1}" for n in range(len(lab.questions))))
        return 0
    answers = re.sub(r"\s*,\s*", ",", " ".join(options.answers)).split()  # "1, 6" is one
    if len(answers) != len(lab.questions):
        raise LabError(f"answers: expected {len(lab.questions)}, found {len(answers)}")
    right = [is_same(given, question.answer) for given, question in zip(answers, lab.questions)]
    for number, (is_right, question) in enumerate(zip(right, lab.questions), 1):
        print(f"{number}. {'right' if is_right else 'not yet'}: {question.ask}")
    return 0 if all(right) else 1


def is_same(given: str, answer: str) -> bool:
    """True when two answers are equal, as text in any case or as numbers."""
    try:
        return float(given) == float(answer)
    except ValueError:
        return given.casefold() == answer.casefold()


class Formatter(argparse.RawDescriptionHelpFormatter):
    def add_usage(self, usage, actions, groups, prefix=None):
        super().add_usage(usage, actions, groups, "Usage: " if prefix is None else prefix)


class Parser(argparse.ArgumentParser):
    def __init__(self, **words):
        super().__init__(formatter_class=Formatter, **words)

    def error(self, message):
        """Prints a usage error in one line, as every ringlab command does."""
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        near = did_you_mean(wrong[1], re.findall(r"\w+", wrong[2])) if wrong else ""
        self.exit(2, f"ringlab: lab: {message}{near or '.'} `ringlab lab --help` has the rest.\n")


def parser() -> Parser:
    top = Parser(
        prog="ringlab lab", description="Write the stages yourself, one exercise after the other.",
        epilog="Exit codes of test:\n  0 done, 1 wrong, 10 not done, 11 does not compile, 12 crashed, "
               "13 stuck;\n  2, 3 and 4 as everywhere: command line, files, environment.\n\n"
               "Examples:\n  ringlab lab export ~/rings --stages 02-05\n  cd ~/rings\n"
               "  ringlab lab next\n  ringlab lab test 02")
    top.add_argument("--dir", default=".", metavar="DIR", help="the folder with your files (.)")
    top.add_argument("--json", metavar="FILE",
                     help="of test and list: write the results as JSON too; - is standard output")
    actions = top.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name, what, run, lab="?"):
        action = actions.add_parser(name, help=what, description=what)
        action.set_defaults(run=run)
        if lab:
            action.add_argument("lab", nargs=None if lab == "!" else lab, metavar="LAB",
                                help="05, ring: the next one unless given" if lab == "?" else "05")
        return action

    action = add("export", "write a folder with files to write in", do_export, lab="")
    action.add_argument("folder", metavar="DIR")
    action.add_argument("--stages", metavar="FIRST-LAST", help="00-06; all unless given")
    add("list", "how far you are", do_list, lab="")
    add("next", "what comes next", do_next, lab="")
    action = add("test", "compile a file and judge it", do_test)
    action.add_argument("--cases", type=cases, default=attempts.CASES, metavar="N",
                        help=f"random cases for each law ({attempts.CASES})")
    add("watch", "test whenever you save a file; keys: n next, r run, h hint, l list, q quit",
        do_watch, lab="")
    action = add("hint", "the next of three hints", do_hint)
    action.add_argument("exercise", nargs="?", help="unless given, the first one to write")
    add("why", "what your last try got wrong, again", do_why)
    add("reset", "put a file aside and begin anew", do_reset, lab="!")
    action = add("ask", "questions to a lab, and whether answers are right", do_ask)
    action.add_argument("answers", nargs="*", metavar="ANSWER")
    debug.add_words(add("debug", "a broken file: find its mistake's name and line", debug.run))
    grade.add_actions(add)
    action = add("explain", "a mistake by its name", do_explain, lab="")
    action.add_argument("mistake", metavar="MISTAKE")
    return top


def cases(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100000:
        raise argparse.ArgumentTypeError(f"expected 1 … 100000, found {text}")
    return int(text)


def main() -> int:
    options = parser().parse_args()
    if options.json and options.action not in ("test", "list"):
        parser().error(f"--json: expected test or list, found {options.action}")
    if options.json == "-":
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # the document alone
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by way of every `finally`
    try:
        check_json(pathlib.Path(options.json or "-"))
        code = options.run(options)
        print(end="", file=sys.__stdout__, flush=True)
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
        return 141  # as of SIGPIPE: whoever read has what they wanted
    except LabError as error:
        print(f"ringlab: {error}".rstrip(".") + "." * (str(error)[-1:] != "?"), file=sys.stderr)
        return error.code
    except OSError as error:
        where = error.filename or "a file"
        print(f"ringlab: {where}: expected a file or folder that can be read and written, found: "
              f"{error.strerror or error}.", file=sys.stderr)
        return 4
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
