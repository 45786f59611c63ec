"""Markdown of this repository as Doxygen takes it: ids, links, pictures, titles."""
import pathlib
import posixpath
import re

from ladder import ROOT

NAMES = {"README.md": "index", "stages/README.md": "learn", "docs/decisions": "decisions",
         "docs/decisions/README.md": "decisions", "docs/course/course.md": "course",
         "stages": "learn"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
SPLIT_LINK = re.compile(r"\[([^\]\n`]*)\n\s*([^\]\n`]*)\]\(")
HEADING = re.compile(r"(#{2,4}) (.*?)(?: \{#(\w+)\})?$")
CODE = re.compile(r"(`+)(?:(?!\1).)+\1")


def page_id(path: str) -> str | None:
    """The name of the page of a file of the repository; none when it has no page."""
    parts = pathlib.PurePosixPath(path)
    if path in NAMES:
        return NAMES[path]
    if parts.parts[:1] == ("stages",) and parts.name == "lesson.md":
        return "stage_" + parts.parent.name[3:]
    if parts.parts[:1] != ("docs",) or parts.suffix != ".md":
        return None
    if parts.parent.name == "decisions":
        return "decision_" + parts.name[:4]
    return "_".join([*parts.parts[1:-1], parts.stem])


def slug(heading: str) -> str:
    """As GitHub names the anchor of a heading."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


def section_id(page: str, anchor: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", f"{page}_{anchor}")


def figure(source: str, caption: str) -> str:
    """A picture that keeps its size on narrow screens: its frame scrolls."""
    words = caption.replace("&", "&amp;").replace('"', "&quot;")
    return (f'\\htmlonly\n<figure class="picture"><div class="frame" tabindex="0" role="group" '
            f'aria-label="{words}"><img src="{source}" alt="{words}"/></div>'
            f"<figcaption>{words}</figcaption></figure>\n\\endhtmlonly")


class Staging:
    """Rewrites pages, and remembers what else of the repository they show."""

    def __init__(self):
        self.files: set[str] = set()
        self.dead: list[str] = []

    def target(self, link: str, base: str) -> str:
        """The page of the site that a link of the file `base` leads to."""
        if re.match(r"\w+:", link):
            return link
        path, _, anchor = link.partition("#")
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(base), path)) if path else base
        if whole.startswith("docs/player/"):
            return link[link.index("player/"):]
        page = page_id(whole)
        if page and (page in NAMES.values() or (ROOT / whole).exists()):
            return f"{page}.html" + (f"#{section_id(page, anchor)}" if anchor else "")
        if (ROOT / whole).is_dir():
            self.files |= {str(file.relative_to(ROOT)) for file in (ROOT / whole).iterdir()
                           if file.is_file()}
            return f"files/{whole}/index.html"
        if not (ROOT / whole).is_file():
            self.dead.append(f"{base}: [...]({link}): expected a file of the repository")
            return link
        if whole.startswith("docs/pictures/"):
            return whole.removeprefix("docs/")
        self.files.add(whole)
        return f"files/{whole}.html"

    def prose(self, line: str, base: str) -> str:
        """A line outside of code blocks. Links inside of `code` are left as they are."""
        kept: list[str] = []

        def keep(found):
            kept.append(found[0])
            return f"\0{len(kept) - 1}\0"

        def replaced(found):
            picture, text, link = found.groups()
            to = self.target(link, base)
            return figure(to, text) if picture else f"[{text}]({to})"

        line = LINK.sub(replaced, CODE.sub(keep, line))
        while "\0" in line:
            line = re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], line)
        return line

    def page(self, text: str, base: str, page: str) -> str:
        lines, fence, raw, seen = [], "", False, set()
        for line in SPLIT_LINK.sub(r"[\1 \2](", text).splitlines():
            raw = line == "\\htmlonly" or raw and line != "\\endhtmlonly"
            mark = re.match(r"\s*(```+|~~~+)", line)
            if raw:
                pass
            elif mark and fence in ("", mark[1]):
                fence = "" if fence else mark[1]
            elif not fence and not line.startswith("\\"):
                line = self.heading(self.prose(line, base), page, seen)
            lines.append(line)
        return "\n".join(lines) + "\n"

    def heading(self, line: str, page: str, seen: set[str]) -> str:
        if line.startswith("# "):
            title = re.sub(r"\s*\{#\w+\}$", "", line[2:]).replace("`", "")
            return f"# {title} {{#{'mainpage' if page == 'index' else page}}}"
        found = HEADING.match(line)
        if not found:
            return line
        if page == "index":  # without a place in the tree of pages
            level = len(found[1])
            return f'\\htmlonly\n<h{level} id="index_{slug(found[2])}">{found[2]}</h{level}>\n\\endhtmlonly'
        name = found[3] or section_id(page, slug(found[2]))
        again = name in seen
        seen.add(name)
        return f"{found[1]} {found[2]}" + ("" if again else f" {{#{name}}}")
