"""Verifies attention of other libraries and writes the verdicts into a table of docs/python.md:

    PYTHONPATH=build/python $(scripts/peers onnx onnxruntime jax torch transformers) tests/python/peers.py

--only WORD: functions with this word in their name; prints their reports and writes nothing. Each one runs
in a process of its own, behind the walls that docs/python.md describes."""
import argparse
import dataclasses
import datetime
import importlib.metadata
import pathlib
import sys

import peer_functions
import ringlab
import torch_functions

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "site"))
from marked import table, with_part  # noqa: E402

PAGE = ROOT / "docs" / "python.md"
PART = "tests/python/peers.py"


@dataclasses.dataclass(frozen=True)
class Peer:
    library: str
    function: str
    fn: object
    dtypes: tuple
    wishes: dict
    limits: ringlab.Limits
    profile: str = "nothing is rounded inside"  #: a name of torch_functions.PROMISES

    def verify(self, cases):
        return ringlab.verify(self.fn, name=self.function, dtypes=self.dtypes, cases=cases, progress=False,
                              limits=self.limits, timeout=120,
                              profile=torch_functions.PROMISES.get(self.profile), **self.wishes)

    def row(self, report):
        limits = ((field, getattr(self.limits, field.name)) for field in dataclasses.fields(self.limits))
        said = ", ".join(f"{field.name}={value}" for field, value in limits if value != field.default)
        held, broken = (sum(law.verdict == verdict for law in report.laws) for verdict in ("held", "broken"))
        return [self.library, self.function, " ".join(self.dtypes), self.profile, f"`{said}`",
                "pass" if report.passed else "WRONG", held, broken]


def all_peers():
    torch = {"arrays": "torch", "backward": True}
    flash = torch_functions.FLASH_LIMITS
    for dtype in torch_functions.DTYPES:
        yield Peer("torch", "math", torch_functions.math, (dtype,), torch, torch_functions.LIMITS)
    for dtype in torch_functions.DTYPES:
        yield Peer("torch", "flash", torch_functions.flash, (dtype,), torch, flash)
    for dtype in ("f16", "bf16"):
        for profile in torch_functions.PROMISES:
            yield Peer("torch", "flash", torch_functions.flash, (dtype,), torch, flash, profile)
    yield Peer("jax", "nn.dot_product_attention", peer_functions.jax_attention, ("f32",),
               {"arrays": peer_functions.jax_array, "shapes": "few", "backward": True},
               ringlab.Limits(empty_rows=False, other_v_dim=False, no_tokens=False))
    yield Peer("onnxruntime", "Attention (opset 23)", peer_functions.onnxruntime_attention, ("f32",), {},
               ringlab.Limits(empty_rows=False, no_tokens=False, nonpositive_scale=False))
    yield Peer("transformers", "eager_attention_forward", peer_functions.transformers_eager, ("f32",), torch,
               ringlab.Limits(empty_rows=False))
    yield Peer("transformers", "sdpa_attention_forward", peer_functions.transformers_sdpa, ("f32",), torch,
               ringlab.Limits(empty_rows=False, no_tokens=False))


def processor():
    names = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"{len(names)} cores of {names[0]}"


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", metavar="WORD", default="")
    words.add_argument("--cases", type=int, default=20)
    words = words.parse_args()
    rows = []
    for peer in all_peers():
        if words.only not in f"{peer.library} {peer.function}":
            continue
        report = peer.verify(words.cases)
        rows.append(peer.row(report))
        print(*rows[-1], sep="  ", flush=True)
        if words.only or not report.passed:
            print(report, flush=True)
    if words.only:
        return
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in dict.fromkeys(r[0] for r in rows))
    text = (f"Run on {datetime.date.today()}, {processor()}, {words.cases} cases a law: {versions}.\n\n" +
            table(["library", "function", "dtype", "promised", "limits", "verdict", "laws held", "broken"], rows, 6))
    PAGE.write_text(with_part(PAGE.read_text(), PART, text))


if __name__ == "__main__":
    main()
