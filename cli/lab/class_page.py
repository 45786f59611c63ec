"""The page of a class: exercises done, common mistakes, mistakes that only the secret seed found."""
import collections
import csv
import html
import io
import pathlib
import statistics

import signature
from files import write_texts

STYLE = """:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem }
tr { border-bottom: 1px solid #8888 }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
code { overflow-wrap: anywhere }"""
COLUMNS = ["student", "item", "points", "of", "status", "found_by", "mistakes", "token"]


def write_pages(folder: pathlib.Path, key: bytes) -> list[signature.NotSigned]:
    """Writes the pages of all students in the folder, those of earlier runs included; returns why
    others were left out."""
    reports, left_out = [], []
    for path in sorted(folder.glob("*/grade.json")):
        try:
            reports.append(signature.read(path, key))
        except signature.NotSigned as error:
            left_out.append(error)
    write_texts({folder / "class.html": page(reports), folder / "class.csv": table(reports)})
    return left_out


def items_of(reports: list[dict]):
    return [(report["student"], item) for report in reports for lab in report["labs"]
            for item in lab["items"]]


def table(reports: list[dict]) -> str:
    """A line for each student and exercise."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for student, item in items_of(reports):
        mistakes = " ".join(item.get("mistakes", []))
        row = {"student": student, **item, "mistakes": mistakes}
        writer.writerow([as_text(row.get(column, "")) for column in COLUMNS])
    return text.getvalue()


def as_text(value) -> str:
    """Text of a cell, which programs for tables do not take for a formula."""
    text = str(value)
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def page(reports: list[dict]) -> str:
    points = [report["points"] for report in reports]
    parts = [f"<h1>{len(reports)} submissions</h1>"]
    if reports:
        parts.append(f"<p>Points: {statistics.median(points):g} at the median, {min(points)} to "
                     f"{max(points)}, of {max(report['of'] for report in reports)}.</p>")
    parts += ["<h2>Exercises</h2>", exercises(reports), "<h2>Mistakes</h2>", mistakes(reports),
              "<h2>Found by the secret seed alone</h2>", survivors(reports),
              "<h2>Students</h2>", students(reports)]
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Labs: the class'
            f"</title>\n<style>\n{STYLE}\n</style></head><body>\n" + "\n".join(parts) +
            "\n</body></html>\n")


def rows(heads: list[str], lines: list[list], none: str) -> str:
    """A table; columns whose heads begin with # hold numbers."""
    if not lines:
        return f"<p>{none}</p>"
    kinds = [' class="n"' if head.startswith("#") else "" for head in heads]
    text = "<table><tr>" + "".join(f"<th{kind}>{html.escape(head.lstrip('#'))}</th>"
                                   for kind, head in zip(kinds, heads)) + "</tr>\n"
    for line in lines:
        cells = (f"<td{kind}>{html.escape(str(cell))}</td>" for kind, cell in zip(kinds, line))
        text += "<tr>" + "".join(cells) + "</tr>\n"
    return text + "</table>"


def exercises(reports: list[dict]) -> str:
    by_item = collections.defaultdict(collections.Counter)
    for _, item in items_of(reports):
        by_item[item["item"]][item["status"]] += 1
    lines = [[name, counts["done"], sum(counts.values()), in_words(counts, without="done")]
             for name, counts in sorted(by_item.items())]
    return rows(["exercise", "#done", "#of", "the others"], lines, "None was handed in.")


def in_words(counts: collections.Counter, without: str = "") -> str:
    return ", ".join(f"{count} {name}" for name, count in
                     sorted(counts.items(), key=lambda one: (-one[1], one[0])) if name != without)


def mistakes(reports: list[dict]) -> str:
    """A table of mistakes by lab, the most common first; mistakes without a name by the law that they break."""
    counts, words = collections.Counter(), {}
    for _, item in items_of(reports):
        if "found_by" in item:
            name = " or ".join(item["mistakes"]) or "without a name"
            key = (item["item"].split(".")[0], name)
            counts[key] += 1
            words.setdefault(key, item["lines"][0] if item["mistakes"] else item["lines"][1])
    order = sorted(counts, key=lambda key: (key[0], -counts[key], key[1]))
    return rows(["lab", "mistake", "#students", "what it is"],
                [[lab, name, counts[lab, name], words[lab, name]] for lab, name in order],
                "None was found.")


def survivors(reports: list[dict]) -> str:
    lines = [[student, item["item"], item["case"], item["token"]]
             for student, item in items_of(reports) if item.get("found_by") == "secret"]
    return rows(["student", "exercise", "smallest case", "token, for the corpus"], lines,
                "Nothing: who is right under the public seed is right.")


def students(reports: list[dict]) -> str:
    lines = [[report["student"], report["points"], report["of"],
              ", ".join(lab["lab"] for lab in report["labs"] if lab["points"] == lab["of"])]
             for report in reports]
    return rows(["student", "#points", "#of", "labs that are done"], lines, "None.")
