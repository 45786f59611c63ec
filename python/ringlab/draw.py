"""Pictures of runs, as figures of matplotlib. What they show comes from runs of the program.

    import ringlab.draw
    ringlab.draw.blocks("--mask", "causal", "--ranks", 4)

Every function takes options of `ringlab run` (docs/formats.md) or `ringlab simulate`, and returns a
matplotlib Figure."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringlab._errors import RunError
from ringlab._program import ask, trace

#: Told apart with any kind of colour vision (Okabe and Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
LANES = {"compute": COLOURS[0], "add": COLOURS[2], "send": COLOURS[4], "receive": COLOURS[1],
         "wait": "#dddddd"}


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise RunError("ringlab.draw: expected matplotlib, found none. Install it: pip install "
                       "matplotlib") from None
    return pyplot


def _hop_colour(hop: int) -> str:
    return COLOURS[hop % len(COLOURS)]


def blocks(*options: Any, subject: str = "ring", tokens: int = 64) -> Any:
    """Draws which rank computes on whose chunk at which hop: a square for each pair of ranks, coloured by
    hop, with the number of (query, key) pairs that the mask leaves in it; hatched where there are
    none, white where the chunk was never computed on. Options are those of `ringlab run`."""
    run = ask("run", subject, "--random", "--tokens", tokens, *options)
    ranks = len(run["ranks"])
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(1.2 + 0.8 * ranks, 1.0 + 0.8 * ranks),
                                   constrained_layout=True)
    for rank in run["ranks"]:
        for visit in rank["visits"]:
            at = (visit["owner"] - 0.5, rank["rank"] - 0.5)
            axes.add_patch(pyplot.Rectangle(
                at, 1, 1, facecolor=_hop_colour(visit["hop"]) if visit["pairs"] else "white",
                edgecolor="black", alpha=0.75, hatch=None if visit["pairs"] else "///"))
            axes.text(visit["owner"], rank["rank"], f"hop {visit['hop']}\n{visit['pairs']}",
                      ha="center", va="center", fontsize=8)
    axes.set(xlim=(-0.5, ranks - 0.5), ylim=(ranks - 0.5, -0.5), xticks=range(ranks),
             yticks=range(ranks), xlabel="owner of the keys (rank)", ylabel="queries of rank",
             title=f"{subject}, {run['configuration']['mask']}: pairs and hops")
    axes.set_aspect("equal")
    return figure


def work(*options: Any, subject: str = "ring", tokens: int = 64) -> Any:
    """Draws the pairs that each rank computes at each hop as stacked bars: a hop lasts as long as its
    busiest rank. Options are those of `ringlab run`."""
    run = ask("run", subject, "--random", "--tokens", tokens, *options)
    ranks = [rank["rank"] for rank in run["ranks"]]
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(6, 3.2), constrained_layout=True)
    below = [0] * len(ranks)
    for hop in range(len(ranks)):
        pairs = [sum(visit["pairs"] for visit in rank["visits"] if visit["hop"] == hop)
                 for rank in run["ranks"]]
        axes.bar(ranks, pairs, bottom=below, color=_hop_colour(hop), label=f"hop {hop}")
        below = [sum(both) for both in zip(below, pairs)]
    axes.set(xlabel="rank", ylabel="pairs (query, key)", xticks=ranks,
             title=f"{subject}, {run['configuration'].get('layout', 'one rank')}")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def lanes(*options: Any, subject: str | None = None) -> Any:
    """Draws the work of each rank over time: a lane of computing and one of each kind of message, with the owner
    of the chunk in it. Of a run of `subject`, or where none is named of `ringlab simulate`, whose
    time is that of the modelled machine."""
    words = ["simulate"] if subject is None else ["run", subject, "--random"]
    return draw_events(trace(*words, *options), f"{subject or 'simulated'}: what each rank does")


def draw_events(events: Sequence[Mapping[str, Any]], title: str = "") -> Any:
    """The lanes of these events, as `ringlab.trace` returns them."""
    ranks = 1 + max((event["args"]["rank"] for event in events), default=0)
    kinds = [kind for kind in LANES if any(event["cat"] == kind for event in events)]
    start = min((event["ts"] for event in events), default=0)
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(9, 0.8 + 0.22 * ranks * len(kinds)),
                                   constrained_layout=True)
    end = max((event["ts"] + event["dur"] for event in events), default=start) - start
    scale, unit = (1e-3, "ms") if end >= 1000 else (1, "µs")
    for event in events:
        row = event["args"]["rank"] * (len(kinds) + 1) + kinds.index(event["cat"])
        begin, length = (event["ts"] - start) * scale, event["dur"] * scale
        axes.broken_barh([(begin, length)], (row - 0.4, 0.8), facecolors=LANES[event["cat"]],
                         edgecolors="white", linewidth=0.5)
        if event["cat"] != "wait" and length > 0.03 * end * scale:
            axes.text(begin + length / 2, row, event["args"]["owner"], ha="center", va="center",
                      fontsize=7, color="white" if event["cat"] == "compute" else "black")
    axes.set(yticks=[rank * (len(kinds) + 1) + (len(kinds) - 1) / 2 for rank in range(ranks)],
             yticklabels=[f"rank {rank}" for rank in range(ranks)], xlabel=f"time, {unit}",
             title=title, ylim=(ranks * (len(kinds) + 1) - 1, -1))
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=LANES[kind]) for kind in kinds]
    axes.legend(handles, kinds, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
