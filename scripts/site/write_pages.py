#!/usr/bin/env python3
"""Writes what Doxygen makes the site of, and what it does not make:

    scripts/site/write_pages.py PAGES HTML

PAGES: Markdown as Doxygen takes it, a page for each file of docs/ and for each stage and command, and
layout.xml with the sidebar. HTML: pictures of runs, and the files that pages link to. Exits 1 where
a page links to what is not there, or the first picture is not what the program draws.
scripts/build_docs runs it."""
import html
import pathlib
import re
import shutil
import sys

from first_picture import PICTURE, first_picture
from ladder import ROOT, Stage, all_stages
from pages import Staging, page_id
from runs import Runs, commands, said
from sidebar import all_files, sidebar
from stage_page import stage_page

FILE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport"
content="width=device-width, initial-scale=1"><title>{title}</title><style>:root{{color-scheme:light dark}}
body{{font:16px/1.5 system-ui,sans-serif;margin:1em}}pre{{font-size:.85em;overflow-x:auto}}</style>
<p><a href="{root}index.html">ringlab</a></p><h1>{title}</h1>{body}</html>
"""


def command_page(name: str) -> str:
    text = said(name, "--help").replace("```", "'''")
    return (f"# ringlab {name} {{#command_{name}}}\n\nWhat `ringlab {name} --help` says.\n\n"
            f"```\n{text.rstrip()}\n```\n")


def decisions_page(files: list[str]) -> str:
    rows = "".join(f"- [{title(file)}]({pathlib.PurePosixPath(file).name})\n" for file in files)
    return f"# Decisions\n\nWhy things are as they are, in the order in which it was decided.\n\n{rows}"


def title(file: str) -> str:
    first = (ROOT / file).read_text().lstrip("\ufeff").splitlines()[0]
    return re.sub(r"\s*\{#\w+\}$", "", first.lstrip("# ")).replace("`", "")


def write_file(name: str, target: pathlib.Path) -> None:
    """A file of the repository as a page that browsers show."""
    file = ROOT / name
    if file.suffix in (".svg", ".png"):
        shutil.copy(file, target)
        return
    body = f"<pre tabindex=\"0\">{html.escape(file.read_text(errors='replace'))}</pre>"
    root = "../" * (len(pathlib.PurePosixPath(name).parts))
    target.write_text(FILE.format(title=html.escape(name), root=root, body=body))


def write_files(staging: Staging, folder: pathlib.Path) -> None:
    listed: dict[pathlib.Path, list[str]] = {}
    for name in sorted(staging.files):
        target = folder / "files" / f"{name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(name, target)
        listed.setdefault(target.parent, []).append(target.name)
    for place, names in listed.items():
        name = str(place.relative_to(folder / "files"))
        links = "".join(f'<li><a href="{one}">{one.removesuffix(".html")}</a></li>' for one in names)
        root = "../" * (len(pathlib.PurePosixPath(name).parts) + 1)
        (place / "index.html").write_text(
            FILE.format(title=name, root=root, body=f"<ul>{links}</ul>"))


def main() -> int:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    target, site = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "docs/pictures", site / "pictures", dirs_exist_ok=True)
    stages, staging, runs = all_stages(), Staging(), Runs(site)
    lessons = {f"stages/{stage.folder}/lesson.md": at for at, stage in enumerate(stages)}
    names = {name: f"command_{name}" for name in commands()}
    titles: dict[str, str] = {}

    def write(text: str, base: str, page: str) -> None:
        (target / f"{page}.md").write_text(staging.page(text, base, page))

    for file in all_files():
        if file in lessons:
            stage: Stage = stages[lessons[file]]
            titles[file] = stage.title()
            write(stage_page(stages, lessons[file], runs), file, page_id(file))
        else:
            titles[file] = title(file)
            write((ROOT / file).read_text(), file, page_id(file))
    decisions = sorted(file for file in titles if file.startswith("docs/decisions/0"))
    write(decisions_page(decisions), "docs/decisions/README.md", "decisions")
    for name, page in names.items():
        write(command_page(name), "docs/reference.md", page)
    (target / "layout.xml").write_text(sidebar(titles, names))
    write_files(staging, site)
    wrong = list(staging.dead)
    drawn = first_picture()
    if PICTURE.read_text() != drawn:
        PICTURE.write_text(drawn)
        wrong.append(f"{PICTURE.relative_to(ROOT)}: expected what the program draws; it is drawn anew")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
