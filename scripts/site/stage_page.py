"""The site's page of a stage: lesson, a run of it, its code, what changed, and the way on."""
import difflib
import html
import re
import tomllib

from ladder import LESSON_END, ROOT, Stage, ground_of
from pages import figure
from runs import Runs


def title_of(stage: Stage) -> str:
    """"05 · ring: pass it on"."""
    return stage.lesson.splitlines()[0].removeprefix("# ")


def way_on(stages: list[Stage], at: int, where: str) -> str:
    """Links to the neighbours and how far this is, for the top or the bottom of a page."""
    def link(to: int, text: str) -> str:
        inside = 0 <= to < len(stages)
        return f'<a href="stage_{stages[to].name}.html">{text}</a>' if inside else "<span></span>"

    before = link(at - 1, f"← {stages[at - 1].title()}")
    after = link(at + 1, f"{stages[at + 1].title()} →" if at + 1 < len(stages) else "")
    if at + 1 == len(stages):
        after = '<a href="labs.html">the labs →</a>'
    progress = (f'<span class="progress"><a href="learn.html">stage {at + 1} of {len(stages)}</a>'
                f'<progress value="{at + 1}" max="{len(stages)}" '
                f'aria-label="stage {at + 1} of {len(stages)}"></progress></span>')
    return (f'\\htmlonly\n<nav class="way" aria-label="stages, {where}">{before}{progress}{after}'
            f'</nav>\n\\endhtmlonly')


def folded(summary: str, inside: str) -> str:
    return (f"\\htmlonly\n<details><summary>{summary}</summary>\n\\endhtmlonly\n\n{inside}\n\n"
            "\\htmlonly\n</details>\n\\endhtmlonly")


def difference(before: Stage, after: Stage) -> str:
    """The lines of both headers, those that are gone and those that came marked."""
    lines = difflib.unified_diff(before.text.splitlines(), after.text.splitlines(), lineterm="", n=2)
    marks = {"+": "ins", "-": "del", "@": "b"}
    shown = []
    for line in list(lines)[2:]:
        text, mark = html.escape(line), marks.get(line[:1])
        shown.append(f"<{mark}>{text}</{mark}>" if mark else text)
    return "\\htmlonly\n<pre class=\"diff\">" + "\n".join(shown) + "</pre>\n\\endhtmlonly"


def hops_table(stage: Stage, run: dict) -> str:
    """Numbers of pairs by rank, owner of the keys and hop."""
    ranks = run["ranks"]
    head = "".join(f"<th scope=\"col\">keys of {owner}</th>" for owner in range(len(ranks)))
    rows = ""
    for rank in ranks:
        cells = ["<td>–</td>"] * len(ranks)
        for owner in range(len(ranks)):
            visits = [visit for visit in rank["visits"] if visit["owner"] == owner]
            if visits:
                pairs, hop = sum(visit["pairs"] for visit in visits), visits[0]["hop"]
                kind = f"hop hop{hop % 8}" if pairs else "none"
                cells[owner] = f'<td class="{kind}">hop {hop}<br/><b>{pairs}</b></td>'
        rows += f"<tr><th scope=\"row\">queries of {rank['rank']}</th>{''.join(cells)}</tr>"
    return (f'\\htmlonly\n<div class="frame" tabindex="0" role="group" aria-label="pairs by rank and hop">'
            f'<table class="hops"><caption>Pairs of a query and a key that each of 4 ranks of '
            f'{stage.name} computes, 64 tokens, causal</caption><thead><tr><td></td>{head}</tr></thead>'
            f"<tbody>{rows}</tbody></table></div>\n\\endhtmlonly")


def player(stage: Stage) -> str:
    """The ring player at the setting that the stage is about; nothing where it has none."""
    shown = tomllib.loads((ROOT / "docs/site/site.toml").read_text())["player"].get(stage.name)
    if not shown:
        return ""
    address = f"player/index.html#{html.escape(shown)}"
    return (f'\\htmlonly\n<details class="player"><summary>Play it, step by step</summary><iframe '
            f'title="ring player, at the setting of {stage.name}" loading="lazy" src="{address}"></iframe>'
            f'<p><a href="{address}">The player on a page of its own</a></p></details>\n\\endhtmlonly')


def seen_running(stage: Stage, runs: Runs) -> str:
    run, lanes = runs.of(stage.name)
    words = f"build/bin/ringlab run {stage.name} --random --ranks 4 --mask causal --trace trace.json"
    return "\n\n".join([
        "## Seen running", hops_table(stage, run),
        "What the ranks did when, in one run on the machine that built this page:",
        figure(lanes, f"Lanes of 4 ranks in a run of {stage.name}"),
        f"Draw your own: `{words}`, then `build/bin/ringlab trace trace.json --html trace.html`.",
        player(stage)]).strip()


def code_of(stage: Stage) -> str:
    parts = [f"## The code {{#stage_{stage.name}_code}}",
             f"Everything below is taken from `{stage.header}` itself when this page is built."]
    for gap in stage.gaps_in_order():
        parts += [f"### {gap}", f"{stage.gaps[gap]}:", f"\\snippet {stage.header} gap: {gap}"]
    lines = stage.text.count("\n")
    parts.append(folded(f"The whole stage, <code>{stage.name}.h</code>, {lines} lines",
                        f"\\include {stage.header}"))
    streams = [(other, anchor) for other in sorted(stage.path.glob("*.h"))
               for anchor in re.findall(r"// \[(streams: .*)\]", other.read_text())]
    if streams:
        parts.append("### On a GPU")
    for other, anchor in streams:
        name = f"stages/{stage.folder}/{other.name}"
        parts += [f"`{name}`, {anchor.removeprefix('streams: ')}:", f"\\snippet {name} {anchor}"]
    return "\n\n".join(parts)


def stage_page(stages: list[Stage], at: int, runs: Runs) -> str:
    stage = stages[at]
    lesson = LESSON_END.sub("", stage.lesson).split("\n", 1)[1]
    parts = [f"# {title_of(stage)} {{#stage_{stage.name}}}", way_on(stages, at, "above the lesson"),
             lesson.strip(), seen_running(stage, runs), code_of(stage)]
    new, ground = ground_of(stages, at)
    if ground:
        parts += ["## What changed",
                  folded(f"{new} new lines of code since stage {ground.title()}",
                         difference(ground, stage))]
    parts += [f"After an edit: `cmake --build build --target ringlab`, then "
              f"`build/bin/ringlab verify {stage.name}`. To write it yourself: "
              f"`build/bin/ringlab lab export build/labs --stages {stage.id}` "
              "([labs](../../docs/labs.md)).", way_on(stages, at, "below the code")]
    return "\n\n".join(parts) + "\n"
