"""The site's groups of pages (docs/site/site.toml), and Doxygen's sidebar made of them."""
import html
import tomllib

from ladder import ROOT
from pages import page_id

CODE = """<tab type="namespacelist" visible="yes" title="Namespaces"/>
<tab type="classlist" visible="yes" title="Types"/>
<tab type="filelist" visible="yes" title="Headers"/>
"""


def all_files() -> list[str]:
    """Every Markdown file that is a page of the site."""
    found = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"), *ROOT.glob("stages/*/lesson.md"),
             ROOT / "stages/README.md", ROOT / "README.md"]
    names = sorted(str(file.relative_to(ROOT)) for file in found)
    return [name for name in names if page_id(name)]


def groups() -> list[dict]:
    """As the file has them, with the patterns of `pages` resolved."""
    read = tomllib.loads((ROOT / "docs/site/site.toml").read_text())["group"]
    files = all_files()
    for group in read:
        group["pages"] = [file for pattern in group["pages"]
                          for file in (sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
                                       if "/" in pattern else [pattern])]
    named = {file for group in read for file in [group["page"], *group["pages"]]}
    others = [file for file in files if file not in named and file != "README.md"]
    for group in read:
        at = group["pages"].index("others") if "others" in group["pages"] else None
        if at is not None:
            group["pages"][at:at + 1] = others
    return read


def tab(page: str, title: str, inside: str = "") -> str:
    kind = "usergroup" if inside else "user"
    return f'<tab type="{kind}" url="{page}" title="{html.escape(title, quote=False)}">{inside}</tab>\n'


def sidebar(titles: dict[str, str], commands: dict[str, str]) -> str:
    """The navigation of DoxygenLayout.xml. `titles`: of pages by file; `commands`: page by name."""
    written = ""
    for group in groups():
        inside = ""
        for file in group["pages"]:
            if file == "commands":
                inside += "".join(tab(f"@ref {page}", name) for name, page in commands.items())
            else:
                inside += tab(f"@ref {page_id(file)}", titles[file])
        inside += "".join(tab(link["to"], link["title"]) for link in group.get("links", []))
        inside += CODE if group.get("code") else ""
        written += tab(f"@ref {page_id(group['page'])}", group["title"], inside)
    return f"<doxygenlayout version=\"1.0\">\n<navindex>\n{written}</navindex>\n</doxygenlayout>\n"

