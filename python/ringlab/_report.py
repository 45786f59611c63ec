"""The report of a verification."""
from __future__ import annotations

import dataclasses
import html
import json
import math
from collections.abc import Callable, Iterable
from typing import Any

from ringlab import _core
from ringlab._errors import usage_error


ACCEPTED = """A function must accept fn(q, k, v, *, mask, scale), in arrays of NumPy (arrays="torch": tensors):
  q      (batch, q_heads, q_tokens, head_dim)
  k      (batch, kv_heads, kv_tokens, head_dim)
  v      (batch, kv_heads, kv_tokens, v_dim)
  mask   a ringlab.Mask: mask.kind, or the booleans of mask.matrix(), (q_tokens, kv_tokens)
  scale  a float
and return o, (batch, q_heads, q_tokens, v_dim), or (o, lse) with lse (batch, q_heads, q_tokens), in the
dtype of q (lse: float32, or float64); with backward=True it is given dout=, too, and returns (o, dq, dk,
dv) or (o, lse, dq, dk, dv). For what it cannot do it raises NotImplementedError."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """The simplest case found that breaks a law."""

    case: str  #: in words
    token: str  #: runs it again: `report.replay(fn, token)`
    message: str  #: got, exact, allowed and where; or what the function raised
    shrinks: int  #: how often the case was made simpler
    #: which rank holds each token, which pairs are visible (docs/formats.md); None where it is too large
    map: dict[str, Any] | None = dataclasses.field(default=None, repr=False)
    repeats: int = 0  #: how often the very same case was run again
    repeated: int = 0  #: and how often it failed again
    doubt: str = ""  #: that in words, where it was not each time


@dataclasses.dataclass(frozen=True)
class LawVerdict:
    """The verdict of one law."""

    id: str
    name: str
    statement: str
    cases: int  #: that held
    discarded: int  #: that the law or the function could not use
    worst_ratio: float  #: largest error / bound of the cases that held
    skipped: str = ""  #: why it says nothing; empty when it ran
    classes: dict[str, int] = dataclasses.field(default_factory=dict, repr=False)
    failure: Failure | None = None
    refused: int = 0  #: of those discarded: the function would not, though its limits say it can
    compared: int = 0  #: numbers, with tolerances
    unbounded: int = 0  #: of these: with a bound as wide as the answer
    is_unbounded: bool = False  #: no bound told the answer from zeros: it has not held

    @property
    def verdict(self) -> str:
        """ "held", "broken" or "skipped"."""
        return "broken" if self.failure else "skipped" if self.skipped else "held"

    def to_dict(self) -> dict[str, Any]:
        """The fields that the command line writes (docs/formats.md)."""
        fields: dict[str, Any] = {
            "id": self.id, "name": self.name, "statement": self.statement, "verdict": self.verdict,
            "cases": self.cases, "discarded": self.discarded, "refused": self.refused,
            "compared": self.compared, "unbounded": self.unbounded,
            "worst_ratio": json_number(self.worst_ratio), "classes": self.classes}
        if self.skipped:
            fields["skipped"] = self.skipped
        if self.failure:
            fields["failure"] = {"case": self.failure.case, "token": self.failure.token,
                                 "message": self.failure.message, "shrinks": self.failure.shrinks,
                                 "repeats": self.failure.repeats,
                                 "repeated": self.failure.repeated,
                                 "doubt": self.failure.doubt, "map": self.failure.map}
        return fields


@dataclasses.dataclass(frozen=True)
class Replay:
    """One case run again."""

    law: str
    statement: str
    case: str
    verdict: str  #: "held", "broken" or "discarded"
    message: str
    worst_ratio: float
    runs: int = 1  #: a case that held is run again: a token is that of a case that failed once
    runs_broken: int = 0

    @property
    def passed(self) -> bool:
        return self.verdict == "held"

    def __bool__(self) -> bool:
        """passed: `assert ringlab.replay(fn, token)` means what it says."""
        return self.passed

    def __str__(self) -> str:
        often = f"\nbroken in {self.runs_broken} of {self.runs} runs" if self.runs > 1 else ""
        return (f"{self.verdict}  {self.law}: {self.statement}\ncase  {self.case}\n"
                f"{self.message}").rstrip() + often


@dataclasses.dataclass(frozen=True)
class Report:
    """The verdict on a function: law by law. `str()` is a table of the laws, or what is wrong; notebooks
    show both, with pictures."""

    subject: str
    laws: tuple[LawVerdict, ...]
    seconds: float
    settings: dict[str, Any]  #: what was asked for
    _replay: Callable[[Callable[..., Any] | None, str], Replay] | None = dataclasses.field(
        repr=False, compare=False)  #: None in a report that was pickled
    first_call: str = ""  #: what went wrong with the simplest call; nothing else was tried then
    diagnosis: str = ""  #: the mistake by its name, where the numbers tell
    findings: tuple[str, ...] = ()  #: what else was found out about a failure
    passes_if: str = ""  #: an arithmetic that it keeps and could declare
    tried: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)  #: docs/certificates.md
    gaps: tuple[str, ...] = ()  #: why it does not pass although no law is broken

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: without the function."""
        return self.__dict__ | {"_replay": None}

    @property
    def passed(self) -> bool:
        """No law is broken, at least one held, and nothing that was wanted is missing."""
        return not self.broken and not self.gaps and any(law.verdict == "held" for law in self.laws)

    def __bool__(self) -> bool:
        """passed: `assert ringlab.verify(fn)` means what it says."""
        return self.passed

    @property
    def broken(self) -> tuple[LawVerdict, ...]:
        return tuple(law for law in self.laws if law.failure)

    def replay(self, fn: Callable[..., Any] | None = None, token: str | None = None) -> Replay:
        """Runs the case of `token` again (that of the first broken law by default), on `fn` (the
        function that was verified by default)."""
        if token is None:
            if not self.broken:
                raise usage_error("token", "a broken law, or the token of a case", "neither")
            token = self.broken[0].failure.token
        if self._replay is None:
            raise usage_error("replay", "a report that still has its function", "one that was pickled",
                              f'ringlab.replay(fn, "{token}") runs the case; give it the profile, the '
                              "limits and the arrays of verify, too")
        return self._replay(fn, token)

    def to_dict(self) -> dict[str, Any]:
        return {"subject": self.subject, "passed": self.passed, "settings": self.settings,
                "laws_held": sum(law.verdict == "held" for law in self.laws),
                "laws_broken": len(self.broken),
                "laws_skipped": sum(law.verdict == "skipped" for law in self.laws),
                "first_call": self.first_call, "gaps": list(self.gaps), "tried": self.tried,
                "diagnosis": self.diagnosis, "findings": list(self.findings),
                "passes_if": self.passes_if,
                "laws_seconds": self.seconds, "laws": [law.to_dict() for law in self.laws]}

    def to_json(self) -> str:
        """`to_dict()` as a text. Laws have the fields that `ringlab verify --json` writes."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def headline(self) -> str:
        """One line: the verdict, and how many laws it rests on."""
        if self.first_call:
            return f"{self.subject}: WRONG; its first call failed, and nothing else was tried"
        counts = self.to_dict()
        word = "pass" if self.passed else "WRONG" if self.broken else "not checked"
        wide, compared = (sum(getattr(law, name) for law in self.laws) for name in ("unbounded", "compared"))
        share = f", {100 * wide / compared:.2g} % of what was compared unbounded" if wide else ""
        return (f"{self.subject}: {word}; {counts['laws_held']} laws held, {counts['laws_broken']} "
                f"broken, {counts['laws_skipped']} skipped{share}, in {self.seconds:.1f} s")

    def __str__(self) -> str:
        if self.first_call:
            return "\n".join((self.headline(), "", self.first_call, "", ACCEPTED))
        lines = [self.headline(), *self._remarks(), *self._failure_lines()]
        if not self.broken:
            rows = [(law.id, law.verdict, str(law.cases), ratio_text(law), law.name)
                    for law in self.laws if not law.skipped]
            lines += ["", *table_lines([("law", "verdict", "cases", "error/bound", "name"), *rows])]
            lines += [f"skipped {' '.join(ids)}: {reason}" for reason, ids in self._skips().items()]
        return "\n".join([*lines, *tried_lines(self.tried)])

    def _failure_lines(self) -> list[str]:
        """The first failure in full, and which laws break besides."""
        if not self.broken:
            return []
        first, *others = self.broken
        failure = first.failure
        lines = ["", f"{self.subject} breaks {first.id} {first.name}", f"  law     {first.statement}",
                 f"  case    {failure.case} ({failure.shrinks} shrinks)",
                 "  found   " + failure.message.replace("\n", "\n          "),
                 *([f"  again   {failure.doubt}"] if failure.doubt else []),
                 f'  replay  report.replay(fn, "{failure.token}")']
        if others:
            lines += ["", f"and breaks {' '.join(law.id for law in others)}: report.broken has a case of each"]
        return lines

    def _remarks(self) -> list[str]:
        gaps = [f"no pass: {gap}" for gap in self.gaps]
        return [remark for remark in (*gaps, self.diagnosis, self.passes_if, *self.findings) if remark]

    def _skips(self) -> dict[str, list[str]]:
        reasons: dict[str, list[str]] = {}
        for law in self.laws:
            if law.skipped:
                reasons.setdefault(law.skipped, []).append(law.id)
        return reasons

    def _repr_html_(self) -> str:
        headline = f"<p><b>{html.escape(self.headline())}</b></p>"
        if self.first_call:
            return f"{headline}<pre>{html.escape(self.first_call)}\n\n{html.escape(ACCEPTED)}</pre>"
        document = self.to_dict() | {"command": "report", "headline": self.headline()}
        page = _core.page(json.dumps(document), self.headline())
        return (f'{headline}<iframe srcdoc="{html.escape(page)}" title="report of ringlab" '
                'style="width:100%;height:40em;border:0"></iframe>')


def json_number(number: float) -> float | str | None:
    """JSON has no infinities: as the command line writes them."""
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def ratio_text(law: LawVerdict) -> str:
    return "" if law.failure or law.skipped else f"{law.worst_ratio:.3g}"


def open_sizes(tried: dict[str, Any]) -> list[str]:
    """Sizes of models at which no bound could tell the answers from zeros."""
    return [one["sizes"] for one in tried["as_used"] if one["calls"] == 0 and one["open"] > 0]


def tried_lines(tried: dict[str, Any]) -> list[str]:
    """A few lines on the cases that were tried."""
    lines = []
    for name in ("forward", "gradients"):
        part = tried.get(name, {"calls": 0})
        if part["calls"] == 0:
            continue
        sizes = ", ".join(f"{size} {least}" + (f" … {most}" if most != least else "")
                          for size, (least, most) in part["sizes"].items())
        kinds = "; ".join(f"{kind}: {', '.join(words)}" for kind, words in part["kinds"].items())
        lines += [f"tried, {name}: {part['calls']} calls; {sizes}; {kinds}"]
    if lines and tried["refused"]:
        lines.append(f"claimed, but refused: {tried['refused']} cases")
    if lines and (open_pairs := tried["pairs"]["not_met"]):
        lines.append(f"pairs of claims that did not meet: {len(open_pairs)} of {tried['pairs']['claimed']}; "
                     + ", ".join(open_pairs[:3]))
    if lines and (opened := open_sizes(tried)):
        lines.append(f"bounds as wide as the answer at {len(opened)} of {len(tried['as_used'])} sizes of "
                     "models; " + "; ".join(opened[:3]))
    missing = tried.get("claimed_not_tried", [])
    return lines + ([f"claimed, not tried: {', '.join(missing)}"] if lines and missing else [])


def table_lines(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Columns next to one another, numbers to the right."""
    rows = list(rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    right = (False, False, True, True, False)
    return ["  ".join(cell.rjust(width) if to_right else cell.ljust(width)
                      for cell, width, to_right in zip(row, widths, right)).rstrip() for row in rows]
