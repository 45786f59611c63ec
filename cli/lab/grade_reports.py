"""The report of `ringlab lab grade` in other forms: text, Markdown, Gradescope, JUnit."""
import html
import json

WIDTH = 98


def items_of(document: dict):
    return ((lab, item) for lab in document["labs"] for item in lab["items"])


def text(document: dict) -> str:
    lines = [f"{document['student']}: {document['points']} of {document['of']} points"]
    for lab in document["labs"]:
        lines.append(f"  {lab['lab']} {lab['name']:<22} {lab['points']:>3} of {lab['of']:>3}  " +
                     ", ".join(f"{short(item)}: {status_of(item)}" for item in lab["items"]) +
                     (" (changed elsewhere, too: not used)" if lab["changed_outside"] else ""))
    return "\n".join(lines)


def short(item: dict) -> str:
    return item["item"].split(".", 1)[1]


def status_of(item: dict) -> str:
    """The outcome; whether only the secret seed finds it, and whether it was better before."""
    words = item["status"]
    if item.get("found_by") == "secret":
        words += " (secret seed)"
    return words + (" (handed in before)" if "kept_from" in item else "")


def detail_of(item: dict) -> str:
    return "\n".join([status_of(item), *item.get("lines", [])])


def markdown(document: dict) -> str:
    lines = [f"# {document['student']}: {document['points']} of {document['of']} points", "",
             "| lab | exercise | points | of | outcome |", "|---|---|---:|---:|---|"]
    for lab, item in items_of(document):
        lines.append(f"| {lab['lab']} {lab['name']} | {short(item)} | {item['points']} | "
                     f"{item['of']} | {status_of(item)} |")
    for lab, item in items_of(document):
        if item.get("lines"):
            lines += ["", f"## {item['item']}: {status_of(item)}", "", "```",
                      *(line.replace("```", "'''") for line in item["lines"]), "```"]
    for lab in document["labs"]:
        if lab["changed_outside"]:
            lines += ["", outside(lab)]
    lines += ["", f"Seeds: public {document['seeds']['public']}, secret (hash) "
              f"`{document['seeds']['secret_sha256'][:16]}`. {document['environment']['ringlab']}, "
              f"{document['environment']['compiler']}."]
    return "\n".join(lines) + "\n"


def outside(lab: dict) -> str:
    return (f"Lab {lab['lab']}: the file was changed outside of the exercises. That is not used, "
            "and costs nothing.")


def gradescope(document: dict) -> str:
    """results.json: https://gradescope-autograders.readthedocs.io/en/latest/specs/"""
    tests = [{"name": f"{lab['lab']} {lab['name']}: {short(item)}", "number": item["item"],
              "score": item["points"], "max_score": item["of"],
              "status": "passed" if item["points"] == item["of"] else "failed",
              "output": detail_of(item)} for lab, item in items_of(document)]
    notes = [outside(lab) for lab in document["labs"] if lab["changed_outside"]]
    results = {"score": document["points"], "output": "\n".join(notes), "visibility": "visible",
               "tests": tests, "extra_data": {"ringlab": document}}
    return json.dumps(results, indent=1, sort_keys=True) + "\n"


def junit(document: dict) -> str:
    """Without times, which would differ."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for lab in document["labs"]:
        wrong = [item for item in lab["items"] if item["points"] < item["of"]]
        lines.append(f'  <testsuite name={quoted(lab["lab"] + " " + lab["name"])} '
                     f'tests="{len(lab["items"])}" failures="{len(wrong)}">')
        for item in lab["items"]:
            case = f'    <testcase classname={quoted(lab["name"])} name={quoted(short(item))}'
            if item["points"] == item["of"]:
                lines.append(case + "/>")
            else:
                lines += [case + ">", f"      <failure message={quoted(status_of(item))}>"
                          f"{escaped(detail_of(item))}</failure>", "    </testcase>"]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def escaped(words: str) -> str:
    """For HTML and XML, which has no control characters."""
    return html.escape("".join(c for c in words if c in "\n\t" or c >= " "))


def quoted(words: str) -> str:
    return f'"{escaped(words)}"'


ADAPTERS = {"grade.md": markdown, "results.json": gradescope, "junit.xml": junit}
