"""docs/pictures/who_computes_what.svg, cut out of a report of the program."""
import pathlib
import re
import subprocess
import tempfile

from ladder import ROOT
from runs import said

PICTURE = ROOT / "docs/pictures/who_computes_what.svg"
WIDTH, HEIGHT = 360, 342  # of a card in the report
LEGEND = 30


def first_picture() -> str:
    """The three layouts side by side, with colours for light and dark."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        said("verify", "ring", "--quick", "--laws", "P5", "--random", "--mask", "causal", "--html", page)
        text = page.read_text() + subprocess.run(["node", ROOT / "cli/viewer/rendered.mjs", page], check=True,
                                                 capture_output=True, text=True).stdout
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    part = text[text.rindex("Who computes what"):]
    hues = re.findall(r'class="hop" style="--hue:(\d+)"></i>(\d+)', part)
    cards = re.findall(r"<figure[^>]*><header><h3>(\w+).*?</h3><span>(.*?)</span></header><svg [^>]*>"
                       r"(.*?)</svg>", part, re.DOTALL)[:3]
    legend = '<text x="52" y="16">computed at hop</text>' + "".join(
        f'<rect x="{170 + 45 * at}" y="5" width="14" height="14" rx="3" class="hop" style="--hue:{hue}"/>'
        f'<text x="{190 + 45 * at}" y="16">{hop}</text>' for at, (hue, hop) in enumerate(hues))
    drawn = "".join(
        f'<g transform="translate({WIDTH * at} {LEGEND})"><text x="52" y="18" font-weight="600">{name}, '
        f'{busy}</text><g transform="translate(0 24)">{svg}</g></g>'
        for at, (name, busy, svg) in enumerate(cards))
    height = HEIGHT + LEGEND + 24
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH * len(cards)} {height}" '
            'role="img" aria-label="which rank computes which block at which hop, for three layouts">'
            f"<style><![CDATA[{style} text {{ fill:var(--ink); font:14px system-ui,sans-serif; }}"
            " .small { font-size:11px; }]]></style>"
            f'<rect width="100%" height="100%" fill="var(--page)"/>{legend}{drawn}</svg>\n')
