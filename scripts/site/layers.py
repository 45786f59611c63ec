"""docs/pictures/layers.svg: the layers of the code, drawn from its own includes.

A box is a layer of scripts/check_layers with the rooms in it; an arrow says that files of one layer
include files of another, unless a longer way says so already."""
import html
import importlib.machinery
import importlib.util

from ladder import ROOT

loader = importlib.machinery.SourceFileLoader("check_layers", str(ROOT / "scripts/check_layers"))
layers = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(layers)

WIDTH, GAP, ROW, LINE = 960, 16, 60, 15
STYLE = """  :root { color-scheme: light dark; --page:#f6f7f9; --card:#fff; --ink:#1b2430; --soft:#5b6675;
    --line:#b6c0cc; --mark:#3867d6; }
  @media (prefers-color-scheme: dark) { :root { --page:#11161d; --card:#19212b; --ink:#e6ebf1;
    --soft:#9aa7b6; --line:#4a5868; --mark:#8fb0f5; } }
  text { font: 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle; }
  .room { font-size: 11px; fill: var(--soft); }
  .page { fill: var(--page); } .card { fill: var(--card); stroke: var(--line); }
  path { fill: none; stroke: var(--mark); stroke-width: 1.2; marker-end: url(#head); }
  #head path { fill: var(--mark); stroke: none; marker-end: none; }"""


def arrows_of_the_code() -> dict[str, set[str]]:
    graph: dict[str, list[str]] = {}
    for name in layers.sources():
        layers.check_file(name, graph)
    found: dict[str, set[str]] = {layer: set() for layer in layers.ALLOWED if layer != "tests"}
    for name, targets in graph.items():
        layer = layers.layer_of(name)
        if layer in found:
            found[layer] |= {layers.layer_of(target) for target in targets} & found.keys() - {layer}
    return found


def reachable(arrows: dict[str, set[str]], start: str) -> set[str]:
    seen, waiting = set(), [start]
    while waiting:
        for target in arrows[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def without_shortcuts(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    return {layer: {target for target in targets
                    if not any(target in reachable(arrows, other) for other in targets - {target})}
            for layer, targets in arrows.items()}


def floors_of(arrows: dict[str, set[str]]) -> list[list[str]]:
    """The lowest floor first; a layer stands one above the highest that it includes."""
    height: dict[str, int] = {}

    def height_of(layer: str) -> int:
        if layer not in height:
            height[layer] = 1 + max((height_of(target) for target in arrows[layer]), default=-1)
        return height[layer]

    floors: list[list[str]] = [[] for _ in range(1 + max(map(height_of, arrows)))]
    for layer in sorted(arrows):
        floors[height[layer]].append(layer)
    return floors


def rooms_of(layer: str) -> list[str]:
    """Folders with code in them, without the numbered ones of the ladder."""
    rooms = sorted(folder.name for folder in (ROOT / layer).iterdir()
                   if folder.is_dir() and f"{layer}/{folder.name}" not in layers.ALLOWED
                   and any(path.suffix in layers.SOURCES for path in folder.iterdir()))
    ladder = [room for room in rooms if room[0].isdigit()]
    rest = [room for room in rooms if not room[0].isdigit()]
    return ([f"{ladder[0]} … {ladder[-1][:2]}"] if ladder else []) + rest


def title_of(layer: str, width: float) -> str:
    return layer if len(layer) <= width / 7.5 else layer.rpartition("/")[2]


def lines_of(layer: str, width: float) -> list[str]:
    """The lines of a box below its title, which is the name alone where the path does not fit."""
    whole = title_of(layer, width) == layer
    lines = [] if whole else [f"in {layer.rpartition('/')[0]}"]
    for word in rooms_of(layer):
        if lines and not lines[-1].startswith("in ") and len(lines[-1]) + len(word) <= width / 6 - 3:
            lines[-1] += " · " + word
        else:
            lines.append(word)
    return lines


def drawing() -> str:
    arrows = arrows_of_the_code()
    boxes: dict[str, tuple[float, float, float, float]] = {}
    texts: list[str] = []
    y = GAP
    for floor in reversed(floors_of(arrows)):
        width = min(300, (WIDTH - GAP * (len(floor) + 1)) / len(floor))
        left = (WIDTH - len(floor) * (width + GAP) + GAP) / 2
        rooms = [lines_of(layer, width) for layer in floor]
        height = 34 + LINE * max(map(len, rooms))
        for number, layer in enumerate(floor):
            x = left + number * (width + GAP)
            boxes[layer] = (x, y, width, height)
            texts.append(f'<rect class="card" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" '
                         f'height="{height:.0f}" rx="6"/>')
            texts.append(f'<text x="{x + width / 2:.0f}" y="{y + 21:.0f}">'
                         f'{title_of(layer, width)}</text>')
            for line, room in enumerate(rooms[number]):
                texts.append(f'<text class="room" x="{x + width / 2:.0f}" '
                             f'y="{y + 38 + LINE * line:.0f}">{html.escape(room)}</text>')
        y += height + ROW
    lines = []
    for layer, targets in sorted(without_shortcuts(arrows).items()):
        x, top, width, height = boxes[layer]
        for target in sorted(targets):
            tx, ttop, twidth, _ = boxes[target]
            from_x, to_x = x + width / 2, tx + twidth / 2 + (x - tx) / 20
            from_y, to_y = top + height, ttop - 3
            lines.append(f'<path d="M{from_x:.0f} {from_y:.0f}C{from_x:.0f} {from_y + 30:.0f} '
                         f'{to_x:.0f} {to_y - 30:.0f} {to_x:.0f} {to_y:.0f}"/>')
    height = y - ROW + GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        'aria-label="The layers of the code and what each includes">',
        f"<style>\n{STYLE}\n</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>', *lines, *texts, "</svg>", ""])


def made() -> tuple[dict, list]:
    return {ROOT / "docs/pictures/layers.svg": drawing()}, []
