"""Writes the viewer's page as C++: its style, and what stands before, between and behind what a command
fills in.

    embed.py OUTPUT.cpp FOLDER SCRIPT.js…
"""
import base64
import hashlib
import pathlib
import sys


def page_of(folder: pathlib.Path, script: str) -> str:
    """The page with STYLE, WORDS and DATA left to fill in. Its policy allows this script and no other."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = (folder / "page.html").read_text().replace("SCRIPT_HASH", digest)
    before, after = page.split("SCRIPT")
    return before + script + after


def main() -> None:
    output, folder, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    rest = page_of(folder, "".join((folder / name).read_text() for name in names))
    pieces = {"Style": (folder / "style.css").read_text()}
    for piece, gap in (("Head", "STYLE"), ("Body", "WORDS"), ("Middle", "DATA")):
        pieces[piece], rest = rest.split(gap, 1)
    pieces["Tail"] = rest
    variables = "\n".join(f'const char* const k{name} = R"viewer({text})viewer";' for name, text in pieces.items())
    pathlib.Path(output).write_text('#include "cli/viewer/page_text.h"\n\nnamespace ringlab::viewer {\n\n'
                                    f"{variables}\n\n}}  // namespace ringlab::viewer\n")


if __name__ == "__main__":
    main()
