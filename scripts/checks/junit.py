"""Results of tests, in JUnit files: scripts/checks/junit.py FILE|FOLDER… adds them up, skips with their reasons."""
import collections
import pathlib
import sys
import xml.etree.ElementTree as ElementTree

LAST_LINES = 30  # of a failed test


def cases_in(name: str | pathlib.Path) -> list[ElementTree.Element]:
    """The tests of a file, or of all in a folder; OSError where there is none."""
    path = pathlib.Path(name)
    files = sorted(path.glob("*.xml")) if path.is_dir() else [path]
    if not files:
        raise OSError("an empty folder")
    return [case for file in files for case in ElementTree.parse(file).iter("testcase")]


def failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None


def skip_reason(case: ElementTree.Element) -> str:
    """GoogleTest prints "FILE:LINE: Skipped" and the reason on the next line; in its own files, the
    place and the reason are the message."""
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines()]
    for line, following in zip(lines, lines[1:]):
        if line.endswith(": Skipped"):
            return following
    message = case.find("skipped").get("message", "no reason given").strip()
    if len(message.splitlines()) == 2:
        return message.splitlines()[1]
    return f"{case.get('name')}: {message}"


def last_words(case: ElementTree.Element) -> list[str]:
    """The messages of a test that failed, or the end of its output."""
    messages = "\n".join(failure.get("message", "") for failure in case.iter("failure"))
    text = case.findtext("system-out") or messages
    return text.strip().splitlines()[-LAST_LINES:]


def count(name: str) -> None:
    try:
        cases = cases_in(name)
    except (OSError, ElementTree.ParseError) as error:
        print(f"{name}: no results ({error})")
        return
    wrong = [case for case in cases if failed(case)]
    skipped = [case for case in cases if case.find("skipped") is not None]
    print(f"{name}: {len(cases) - len(wrong) - len(skipped)} tests passed, "
          f"{len(wrong)} failed, {len(skipped)} skipped")
    for case in wrong:
        print(f"  failed: {case.get('name')}", *last_words(case), sep="\n    ")
    for reason, times in collections.Counter(map(skip_reason, skipped)).items():
        print(f"  {times} skipped: {reason}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        count(argument)
