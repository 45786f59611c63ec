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
from ladder import ROOT, all_stages
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
    first = (ROOT / file).read_text().splitlines()[0]
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


def write_markdown(staging: Staging, runs: Runs, target: pathlib.Path) -> dict[str, str]:
    """A page for each Markdown file. Its title in the sidebar, by file."""
    stages, titles = all_stages(), {}
    lessons = {f"stages/{stage.folder}/lesson.md": at for at, stage in enumerate(stages)}
    for file in all_files():
        if file in lessons:
            text, titles[file] = stage_page(stages, lessons[file], runs), stages[lessons[file]].title()
        else:
            text, titles[file] = (ROOT / file).read_text(), title(file)
        page = page_id(file)
        (target / f"{page}.md").write_text(staging.page(text, file, page))
    return titles


def write_made(staging: Staging, titles: dict[str, str], target: pathlib.Path) -> None:
    """Pages that are no files of the repository, and the sidebar."""
    decisions = sorted(file for file in titles if file.startswith("docs/decisions/0"))
    made = {"decisions": (decisions_page(decisions), "docs/decisions/README.md")}
    names = {name: f"command_{name}" for name in commands()}
    made |= {page: (command_page(name), "docs/reference.md") for name, page in names.items()}
    for page, (text, base) in made.items():
        (target / f"{page}.md").write_text(staging.page(text, base, page))
    (target / "layout.xml").write_text(sidebar(titles, names))


def redrawn() -> list[str]:
    """The first picture, where it was not what the program draws."""
    drawn = first_picture()
    if PICTURE.read_text() == drawn:
        return []
    PICTURE.write_text(drawn)
    return [f"{PICTURE.relative_to(ROOT)}: expected what the program draws; it is drawn anew"]


def main() -> int:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    target, site = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    wrong, staging = redrawn(), Staging()
    shutil.copytree(ROOT / "docs/pictures", site / "pictures", dirs_exist_ok=True)
    write_made(staging, write_markdown(staging, Runs(site), target), target)
    write_files(staging, site)
    for line in wrong + staging.dead:
        print(line, file=sys.stderr)
    return 1 if wrong or staging.dead else 0


if __name__ == "__main__":
    sys.exit(main())
