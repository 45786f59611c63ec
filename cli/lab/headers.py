"""The headers that a lab's file is compiled against: those it includes, without the lab's answers."""
import pathlib
import re
import shutil
import subprocess

from catalogue import Lab, LabError, STAGES
from files import write_texts

ROOT = STAGES.parent
GLUE = "property_tests/stage_libraries/stage_library.h"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include "([^"]+)"', re.MULTILINE)
ANSWER = r"^[ ]*// \[answer: {name}\]\n.*?^[ ]*// end \[answer: {name}\]\n"


def reached(text: str) -> dict[str, str]:
    """The headers of the project that a text includes, and those that these include, by path."""
    found, left = {}, [*INCLUDE.findall(text), GLUE]
    while left:
        name = left.pop()
        if name not in found:
            found[name] = (ROOT / name).read_text()
            left += INCLUDE.findall(found[name])
    return found


def headers_of(lab: Lab) -> dict[str, str]:
    """Texts by path. Environment error unless each answer of the lab stands in one of them."""
    headers = reached(lab.skeleton())
    for answer in lab.answers:
        pattern = re.compile(ANSWER.format(name=re.escape(answer)), re.DOTALL | re.MULTILINE)
        holding = [name for name, text in headers.items() if pattern.search(text)]
        if not holding:
            raise LabError(f"{lab.folder}: answer {answer}: expected it to be marked in a header that "
                           f"{lab.name}.h includes, found it in none", 4)
        headers |= {name: pattern.sub("", headers[name]) for name in holding}
    return headers


def write_headers(lab: Lab, folder: pathlib.Path) -> pathlib.Path:
    """Makes the include folder of a lab anew."""
    shutil.rmtree(folder, ignore_errors=True)
    write_texts({folder / name: text for name, text in headers_of(lab).items()})
    return folder


def answers_in(library: pathlib.Path, lab: Lab) -> list[str]:
    """The answers of the lab that a library has, or wants of others, as a symbol."""
    if not lab.answers or not shutil.which("nm"):
        return []
    told = subprocess.run(["nm", "-C", library], capture_output=True, text=True, errors="replace", check=False).stdout
    symbols = told.replace("ringlab::", "")
    return [answer for answer in lab.answers if re.search(rf"(?<!\w){re.escape(answer)}", symbols)]
