#!/usr/bin/env python3
"""Writes what the ring player shows: player_data.py FILE.js

Everything in it is said by the program: `simulate` for who does what when, `run` for pairs, the package's
attention for a row's state after each chunk. The problem is 64 tokens on a toy machine whose
blocks take milliseconds. Needs NumPy and the package in build/python."""
import base64
import concurrent.futures
import itertools
import json
import os
import pathlib
import sys
import tempfile
import zlib

from runs import said

TOKENS = 64
CHOICES = {
    "ranks": ["2", "3", "4", "8"],
    "layout": ["contiguous", "striped", "zigzag"],
    "mask": ["full", "causal", "causal+window:15,0", "documents:16,16,16,16"],
    "schedule": ["ring", "bidirectional", "double:2", "broadcast", "allgather"],
    "slots": ["1", "2"],
    "link": ["fast", "slow"],
    "slow": ["none", "1"],
}
LINKS = {"fast": "0.000256", "slow": "0.00005"}  # GB/s
PROBLEM = ["--tokens", TOKENS, "--heads", 1, "--kv-heads", 1, "--head-dim", 16, "--dtype", "f32"]
MACHINE = ["--tflops", "1e-6", "--latency", 0, "--block-overhead", 0]
ROWS = range(7, TOKENS, 8)
KINDS = ["compute", "send", "receive", "wait"]
TICK = 1e-6  # seconds


def is_possible(setting: dict[str, str]) -> bool:
    """Slots only where they have an effect; two rings only where there are two of two ranks."""
    if setting["schedule"] in ("broadcast", "allgather"):
        return setting["slots"] == "2"
    return setting["schedule"] != "double:2" or setting["ranks"] in ("4", "8")


def words_of(setting: dict[str, str]) -> list:
    words = ["--ranks", setting["ranks"], "--layout", setting["layout"], "--mask", setting["mask"],
             "--schedule", setting["schedule"]]
    if setting["schedule"] not in ("broadcast", "allgather"):
        words += ["--slots", setting["slots"]]
    return words


def simulate_words(setting: dict[str, str]) -> list:
    slow = ["--slow", f"{setting['slow']}:2"] if setting["slow"] != "none" else []
    return ["simulate", *PROBLEM, *MACHINE, *words_of(setting), "--bandwidth", LINKS[setting["link"]], *slow]


def simulated(setting: dict[str, str]) -> dict:
    """Events as columns, and what the JSON says in the end."""
    with tempfile.TemporaryDirectory() as folder:
        trace, answer = pathlib.Path(folder) / "trace", pathlib.Path(folder) / "answer"
        said(*simulate_words(setting), "--trace", trace, "--json", answer)
        read, told = json.loads(trace.read_text()), json.loads(answer.read_text())
    events = [event for event in read["traceEvents"] if event["ph"] == "X"]
    events.sort(key=lambda event: (event["ts"], event["args"]["rank"]))
    ticks = [[round(time * 1e-6 / TICK) for time in (event["ts"], event["ts"] + event["dur"])] for event in events]
    begins = [begin for begin, _ in ticks]
    columns = {
        "kind": [KINDS.index(event["cat"]) for event in events],
        "rank": [event["args"]["rank"] for event in events],
        "owner": [event["args"]["owner"] for event in events],
        "slot": [event["args"]["slot"] for event in events],
        "peer": [event["args"]["peer"] for event in events],
        "bytes": [event["args"]["bytes"] for event in events],
        "after": [begin - before for before, begin in zip([0, *begins], begins)],
        "ticks": [end - begin for begin, end in ticks],
    }
    return {**columns, "idle": [round(rank["idle"], 4) for rank in told["ranks"]],
            "end": round(told["seconds"] / TICK), "holds": [rank["positions"] for rank in told["ranks"]]}


def pairs_of(ranks: str, layout: str, mask: str) -> list[list[int]]:
    """Pairs of the rank's queries and the owner's keys, as a run counts them."""
    run = json.loads(said("run", "optimized", "--random", *PROBLEM, "--ranks", ranks, "--layout", layout,
                          "--mask", mask, "--json", "-"))
    pairs = [[0] * int(ranks) for _ in range(int(ranks))]
    for rank in run["ranks"]:
        for visit in rank["visits"]:
            pairs[rank["rank"]][visit["owner"]] += visit["pairs"]
    return pairs


class States:
    """The state of a row after each chunk: maximum, sum, and accumulator, of four channels."""

    def __init__(self):
        import numpy as np
        import ringlab
        self.np, self.attention, self.mask = np, ringlab.attention, ringlab.Mask
        rng = np.random.default_rng(1)
        self.q, self.k = (rng.normal(0, 1.5, (TOKENS, 16)).astype(np.float32) for _ in range(2))
        self.v = rng.normal(0, 1, (TOKENS, 4)).astype(np.float32)
        self.sees = {mask: np.asarray(self.mask(mask, TOKENS, TOKENS).matrix()) for mask in CHOICES["mask"]}

    def after(self, row: int, mask: str, keys: list[int]) -> list[float]:
        seen = [key for key in keys if self.sees[mask][row, key]]
        if not seen:
            return []
        part = [array[None, None] for array in (self.q[[row]], self.k[seen], self.v[seen])]
        o, lse = self.attention(*part, return_lse=True)
        top = float((self.k[seen].astype(float) @ self.q[row].astype(float)).max() / 4)  # 1/sqrt(16)
        total = float(self.np.exp(float(lse.ravel()[0]) - top))
        return [round(number, 4) for number in [top, total, *(self.np.ravel(o) * total).tolist()]]


def tokens_of(runs: list[list[int]]) -> list[int]:
    return [first + step * at for first, step, count in runs for at in range(count)]


def add_row_states(rows: dict[str, list], states: States, setting: dict[str, str], trace: dict) -> None:
    """States of each shown row: after each owner, in the order in which its rank computes."""
    for rank, runs in enumerate(trace["holds"]):
        owners = [owner for kind, at, owner in zip(trace["kind"], trace["rank"], trace["owner"])
                  if KINDS[kind] == "compute" and at == rank]
        held = [tokens_of(trace["holds"][owner]) for owner in owners]
        for row in sorted(set(tokens_of(runs)) & set(ROWS)):
            key = "/".join([setting["mask"], str(row), setting["ranks"], setting["layout"],
                            ",".join(map(str, owners))])
            if key not in rows:
                rows[key] = [states.after(row, setting["mask"], sum(held[:number + 1], []))
                             for number in range(len(held))]


def all_data() -> dict:
    settings = [dict(zip(CHOICES, words)) for words in itertools.product(*CHOICES.values())]
    possible = [setting for setting in settings if is_possible(setting)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        traces = dict(zip(map(json.dumps, possible), pool.map(simulated, possible)))
        kinds = list(itertools.product(CHOICES["ranks"], CHOICES["layout"], CHOICES["mask"]))
        pairs = dict(zip(("/".join(kind) for kind in kinds), pool.map(lambda kind: pairs_of(*kind), kinds)))
    states, rows, kept, numbers = States(), {}, [], {}
    index = []
    for setting in settings:
        trace = traces.get(json.dumps(setting))
        if trace is None:
            index.append(-1)
            continue
        add_row_states(rows, states, setting, trace)
        text = json.dumps(trace)
        if text not in numbers:
            numbers[text] = len(kept)
            kept.append(trace)
        index.append(numbers[text])
    return {"choices": CHOICES, "index": index, "traces": kept, "pairs": pairs, "rows": rows,
            "shown": list(ROWS), "kinds": KINDS, "links": LINKS,
            "words": " ".join(map(str, [*PROBLEM, *MACHINE])), "tick": TICK, "tokens": TOKENS}


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = json.dumps(all_data(), separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    pathlib.Path(sys.argv[1]).write_text(f'const packed = "{packed}";\n')
    print(f"player: {len(text) / 1e6:.1f} MB of data, packed {len(packed) / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
