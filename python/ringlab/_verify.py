"""`ringlab.verify`: the laws on a function of Python."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import numbers
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ringlab import _core
from ringlab._callable import VerifiedCallable
from ringlab._errors import usage_error
from ringlab._isolated import IsolatedCallable, why_not_isolated
from ringlab._refusals import Refusals
from ringlab._report import Failure, LawVerdict, Replay, Report, open_sizes

MASKS = ("full", *_core.MASKS, "matrix", "intersections")
DTYPES = ("f64", "f32", "f16", "bf16")
MODIFIERS = _core.MODIFIERS
MOST_CASES = MOST_SECONDS = 10**9


@dataclasses.dataclass(frozen=True)
class Law:
    """A statement about attention that every correct implementation satisfies."""

    id: str
    name: str
    statement: str
    exact: bool  #: bit for bit, without a tolerance


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of a function: what it leaves out. Nothing is tested that is not promised, and the
    report says so.

    The promises about bits are off by default, because libraries of matrix products cut their sums
    by the shape of the whole product.
    """

    lse: bool | None = None  #: returns (o, lse); None: whatever it does when first called
    grouped_heads: bool = True  #: more query heads than K/V heads
    rectangular: bool = True  #: q_tokens and kv_tokens that differ
    other_v_dim: bool = True  #: a v_dim that is not head_dim
    no_tokens: bool = True  #: empty tensors: zero batches, queries or keys
    empty_rows: bool = True  #: gives 0 and -inf for queries that see no key
    any_scale: bool = True  #: else 1/sqrt(head_dim) only
    nonpositive_scale: bool = True  #: scales of 0 and below
    token_multiple: int = 1  #: of q_tokens and kv_tokens
    max_head_dim: int | None = None  #: of v_dim, too
    head_dim_multiple: int = 1  #: of v_dim, too
    deterministic: bool = True  #: the same bits for the same call
    masked_may_be_nan: bool = False  #: NaN where the mask hides it never shows
    same_bits_per_row: bool = False  #: a row has the same bits wherever it stands
    divides_last: bool = False  #: by the sum of the weights, after they met v: exact probes are sharper
    sums_keys_in_order: bool = False  #: keys appended at the end leave earlier partial sums alone


@dataclasses.dataclass(frozen=True)
class Profile:
    """The arithmetic that a function promises, from which the bound of every element is computed
    (docs/numerics.md). None is the default: sums in float32 (float64 for float64), exp and log
    within 4 ulp, a rescale once in 32 keys. Unit roundoffs are 2^-p for p significant bits.
    A promise that is too good fails; one that is too weak hides mistakes.
    """

    rounds_weights: bool = False  #: to the dtype of q, before they meet v
    prescaled: bool = False  #: q, or q and k, are scaled before they meet, in float32 (float64 for float64)
    u_accumulate: float | None = None  #: of q·k, P·V and the row sum
    u_work: float | None = None  #: of scaling, subtracting, rescaling and dividing
    exp_error: float | None = None  #: relative error of exp
    u_probability: float | None = None  #: of a type that weights are rounded to before they meet v
    u_row_sum: float | None = None  #: u_probability again, where the row sum adds the rounded ones
    p_underflow: float | None = None  #: half the least subnormal of that type
    u_partial: float | None = None  #: of a type that partial outputs are stored in between tiles
    u_query: float | None = None  #: of a type that scale · q is rounded to before it meets k
    u_product: float | None = None  #: of a type that factors of matrix products are rounded to: TF32 2**-11
    u_lse: float | None = None  #: of the lse
    keys_per_rescale: int = 32  #: the tile of an online softmax
    accumulation_chain: int = 0  #: longest chain of additions; 0: as many as there are keys
    lse_merges: int = 0  #: how often (o, lse) pairs of parts are merged
    queries_per_store: int = 0  #: dk and dv are rounded to their dtype once in so many queries; 0: once
    keys_per_store: int = 0  #: dq to its dtype, once in so many keys; 0: once
    exp_underflow: float | None = None  #: absolute error of an exp that underflows
    product_underflow: float | None = None  #: of a product that does


def laws() -> list[Law]:
    """Every law there is."""
    return [Law(**law) for law in _core.laws()]


def verify(fn: Callable[..., Any], *, dtypes: Iterable[str] = ("f32",),
           masks: Iterable[str] = MASKS, backward: bool = False,
           modifiers: bool | Iterable[str] = False, laws: Iterable[str] | None = None,
           cases: int = 40, seconds: float | None = None, timeout: float = 30.0,
           isolate: bool | None = None, seed: int = 1, profile: Profile | None = None,
           limits: Limits | None = None, arrays: str | Callable[[np.ndarray], Any] = "numpy",
           shapes: str = "any", strict: bool = False, require: Iterable[str] = (), progress: bool = True,
           name: str | None = None) -> Report:
    """Checks any implementation of attention against the exact reference and the laws.

    `fn(q, k, v, *, mask, scale)` returns o or (o, lse). q is (batch, q_heads, q_tokens, head_dim),
    k (batch, kv_heads, kv_tokens, head_dim), v (batch, kv_heads, kv_tokens, v_dim); query head h reads
    K/V head h // (q_heads // kv_heads). `mask` is a `Mask`: its kind and terms, or the booleans of
    `mask.matrix()`. o is (batch, q_heads, q_tokens, v_dim), lse (batch, q_heads, q_tokens), the
    natural logarithm of the sum of e^score. Raise NotImplementedError for what fn cannot do: such
    cases are discarded. With `backward` it is also given `dout`, the gradient of a loss by o, in some
    calls, and then returns (o, lse, dq, dk, dv), or (o, dq, dk, dv). `modifiers` are kinds of
    `MODIFIERS`, or True for all of them, that it may be given: softcap, alibi_slopes, sinks, and
    dropout with dropout_seed (reference/core/modifiers.h).

    Every call has fresh copies of its inputs, at new addresses, and what it returns is copied. A
    changed input, a wrong shape and an exception are verdicts. So is the end of the function's process,
    or no answer within `timeout` seconds: fn is called in a copy of this process, behind the walls of
    docs/python.md. isolate=False calls it in this one, True refuses where it cannot be copied, None
    takes what can be had (`report.settings["isolated"]`).

    dtypes: "f64", "f32", "f16", "bf16". masks: kinds of `MASKS`. laws: ids or names of `laws()`, all
    by default. cases: random ones per law. seconds: laws not reached by then are skipped, by name;
    a call that is under way then is given ten times as long as the longest before it. Naming what is
    broken comes after, and takes some seconds more.
    arrays: "numpy", "torch", or a function that makes an array of fn's library from one of NumPy.
    profile, limits: what fn promises and what it leaves out. shapes: "few" for functions that are
    compiled for every shape. strict: fails where something that fn claims was not tried. require: laws
    and kinds of cases (`LawVerdict.classes`) that have to have held. progress: a line on a terminal.

    The verdict is a `Report`; nothing is raised for a function that is wrong. Where already the
    simplest call fails, the report says so and what fn must accept, and nothing else is tried. A
    function that refuses most of what its limits leave in does not pass. Raises UsageError, and
    RunError where memory, threads or descriptors ran out: that is no verdict.
    """
    _check_words("shapes", [shapes], ("any", "few"))
    if not 1 <= cases <= MOST_CASES:
        raise usage_error("cases", f"1 to {MOST_CASES}", cases)
    seconds = None if seconds == math.inf else seconds
    if seconds is not None:
        _check_seconds("seconds", seconds)
    chosen = None if laws is None else list(laws)
    required = _required(require)
    began = time.monotonic()
    with _called(fn, arrays, isolate, timeout) as callee, _Progress(progress) as shown:
        if seconds is not None:
            callee.until = began + seconds
        settings = _Settings.of(callee, _name_of(fn, name), _words(dtypes), _words(masks), backward,
                                modifiers, profile, limits, arrays, isolate, timeout)
        calls = Refusals(callee)
        wishes = settings.wishes(callee) | {"call": calls}
        wishes["limits"]["few_shapes"] = shapes == "few"
        failed = _core.first_call(wishes)
        found = None if failed else _core.verify(wishes | {
            "laws": chosen, "cases": cases, "seed": seed, "seconds": seconds, "progress": shown.update})
    echo = settings.echo() | {"laws": chosen or "all", "cases": cases, "seed": seed, "shapes": shapes,
                              "isolated": isinstance(callee, IsolatedCallable)}

    def replay_case(other: Callable[..., Any] | None, token: str) -> Replay:
        return settings.replay(other or fn, token)

    if found is None:
        return Report(settings.name, (), time.monotonic() - began, echo, replay_case, first_call=failed)
    verdicts = tuple(_verdict(one) for one in found["laws"])
    tried = json.loads(found["tried"])
    return Report(settings.name, verdicts, time.monotonic() - began, echo, replay_case,
                  diagnosis=found["diagnosis"], findings=tuple(filter(None, (*found["findings"], calls.advice()))),
                  passes_if=found["passes_if"], tried=tried,
                  gaps=tuple(_gaps(verdicts, tried, strict, required, chosen, found["pairs_claimed"])))


def replay(fn: Callable[..., Any], token: str, *, dtypes: Iterable[str] = DTYPES,
           masks: Iterable[str] = MASKS, backward: bool = True,
           modifiers: bool | Iterable[str] = True, profile: Profile | None = None,
           limits: Limits | None = None, arrays: str | Callable[[np.ndarray], Any] = "numpy",
           isolate: bool | None = None, timeout: float = 30.0) -> Replay:
    """Runs the one case of a failure's token again; arguments as of `verify`."""
    with _called(fn, arrays, isolate, timeout) as callee:
        settings = _Settings.of(callee, _name_of(fn, None), _words(dtypes), _words(masks), backward,
                                modifiers, profile, limits, arrays, isolate, timeout)
    return settings.replay(fn, token)


@contextlib.contextmanager
def _called(fn: Callable[..., Any], arrays: str | Callable[[np.ndarray], Any], isolate: bool | None,
            timeout: float) -> Iterator[VerifiedCallable | IsolatedCallable]:
    """The function as the compiled half calls it, in a process of its own where that is wished."""
    if not callable(fn):
        raise usage_error("fn", "a function", type(fn).__name__)
    if arrays not in ("numpy", "torch") and not callable(arrays):
        raise usage_error("arrays", '"numpy", "torch" or a function', repr(arrays))
    _check_seconds("timeout", timeout)
    obstacle = "" if isolate is False else why_not_isolated()
    if isolate and obstacle:
        raise usage_error("isolate", "a process that can be copied", obstacle,
                          "Verify before that happens, or give isolate=False")
    inside = isolate is False or bool(obstacle)
    callee = VerifiedCallable(fn, arrays) if inside else IsolatedCallable(fn, arrays, timeout)
    try:
        yield callee
    finally:
        callee.close()


def _check_seconds(what: str, number: Any) -> None:
    if not (isinstance(number, numbers.Real) and 0 < number <= MOST_SECONDS):
        raise usage_error(what, f"more than 0 and at most {MOST_SECONDS} seconds", repr(number))


def _required(words: Iterable[str]) -> list[str]:
    """The words, ids for names of laws, pairs as they are counted."""
    ids = {law.name: law.id for law in laws()} | {law.id: law.id for law in laws()}
    known = (*ids, *_core.classes())
    required = _words(words)
    pairs = {word: _core.known_pair(word) for word in required}
    if others := [word for word in required if not pairs[word]]:
        _check_words("require", others, known)
    return [pairs[word] or ids.get(word, word) for word in required]


def _gaps(verdicts: tuple[LawVerdict, ...], tried: dict[str, Any], strict: bool,
          required: list[str], chosen: list[str] | None, pairs_claimed: list[str]) -> list[str]:
    """Why a function does not pass although it broke no law."""
    gaps = []
    held = sum(law.cases for law in verdicts)
    if tried["refused"] > 2 * held:  # as Coverage::refuses_most()
        gaps.append(f"it refused {tried['refused']} of {tried['refused'] + held} cases that its masks and "
                    "limits leave in: say there what it cannot do")
    holding = {law.id for law in verdicts if law.verdict == "held"}
    holding.update(name for law in verdicts for name in law.classes if law.id in holding)
    holding.update(set(pairs_claimed) - set(tried["pairs"]["not_met"]))
    if strict or chosen is not None:
        gaps += [f"{law.id}: {law.skipped}" for law in verdicts if law.is_unbounded]
    gaps += [f"required, but no case held: {word}" for word in required if word not in holding]
    if strict and tried["claimed_not_tried"]:
        gaps.append("claimed, but not tried: " + ", ".join(tried["claimed_not_tried"]))
    if strict and (pairs := tried["pairs"])["not_met"]:
        gaps.append(f"{len(pairs['not_met'])} of {pairs['claimed']} pairs of claims did not meet: "
                    + pairs["not_met"][0])
    if strict and (opened := open_sizes(tried)):
        gaps.append(f"bounds as wide as the answer at {len(opened)} of {len(tried['as_used'])} sizes "
                    f"of models: {opened[0]}")
    return gaps


def _verdict(found: dict[str, Any]) -> LawVerdict:
    failure = found.pop("failure", None)
    if failure:
        failure = Failure(**failure | {"map": json.loads(failure["map"])})
    return LawVerdict(**found, failure=failure)


@dataclasses.dataclass(frozen=True)
class _Settings:
    """The settings of a verification, checked."""

    name: str
    dtypes: list[str]
    masks: list[str]
    backward: bool
    modifiers: list[str]
    profile: Profile
    limits: Limits
    arrays: str | Callable[[np.ndarray], Any]
    isolate: bool | None
    timeout: float
    gives_lse: bool

    @staticmethod
    def of(callee: VerifiedCallable | IsolatedCallable, name: str, dtypes: list[str],
           masks: list[str], backward: bool, modifiers: bool | Iterable[str],
           profile: Profile | None, limits: Limits | None,
           arrays: str | Callable[[np.ndarray], Any], isolate: bool | None,
           timeout: float) -> _Settings:
        _check_words("dtypes", dtypes, DTYPES)
        _check_words("masks", masks, MASKS)
        if isinstance(modifiers, bool):
            modifiers = MODIFIERS if modifiers else ()
        kinds = _words(modifiers)
        if kinds:
            _check_words("modifiers", kinds, MODIFIERS)
        limits = limits or Limits()
        callee.gives_lse = _gives_lse(callee, dtypes[0]) if limits.lse is None else limits.lse
        return _Settings(name, dtypes, masks, backward, kinds, profile or Profile(), limits, arrays,
                         isolate, timeout, callee.gives_lse)

    def wishes(self, callee: VerifiedCallable | IsolatedCallable) -> dict[str, Any]:
        """The settings as the compiled half reads them."""
        limits = dataclasses.asdict(self.limits) | {
            "lse": self.gives_lse, "backward": self.backward, "bit_masks": "matrix" in self.masks}
        for kind in self.modifiers:
            limits[kind] = True
        for kind in ("full", *_core.MASKS, "intersections"):
            limits[kind] = kind in self.masks
        return {"name": self.name, "call": callee, "dtypes": self.dtypes,
                "limits": limits, "profile": dataclasses.asdict(self.profile)}

    def replay(self, fn: Callable[..., Any], token: str) -> Replay:
        with _called(fn, self.arrays, self.isolate, self.timeout) as callee:
            callee.gives_lse = self.gives_lse
            found = _core.replay(self.wishes(callee), token)
        verdict = "held" if found["held"] else "broken" if found["broken"] else "discarded"
        return Replay(found["id"], found["statement"], found["case"], verdict, found["message"],
                      found["worst_ratio"], found["runs"], found["runs_broken"])

    def echo(self) -> dict[str, Any]:
        def changed(what: Any) -> dict[str, Any]:
            return {name: value for name, value in dataclasses.asdict(what).items()
                    if value != getattr(type(what)(), name)}
        return {"dtypes": self.dtypes, "masks": self.masks, "backward": self.backward,
                "modifiers": self.modifiers, "gives_lse": self.gives_lse,
                "arrays": _name_of(self.arrays, self.arrays if isinstance(self.arrays, str) else None),
                "limits": changed(self.limits), "profile": changed(self.profile)}


def _words(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _check_words(what: str, words: list[str], known: tuple[str, ...]) -> None:
    if not words:
        raise usage_error(what, "at least one of " + ", ".join(known), "none")
    for word in words:
        if word not in known:
            raise usage_error(what, "some of " + ", ".join(known), repr(word))


def _name_of(fn: Callable[..., Any], name: str | None) -> str:
    """A name that tokens can hold."""
    name = name or getattr(fn, "__name__", type(fn).__name__)
    return re.sub(r"[^A-Za-z0-9_.:-]+", "_", name).strip("_") or "function"


def _gives_lse(callee: VerifiedCallable | IsolatedCallable, dtype: str) -> bool:
    """True when it returns an lse with the simplest problem it takes. A function that fails is left
    to the laws, which say how."""
    for mask in ("full", "causal"):
        zeros = np.zeros((1, 1, 2, 8), {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2"}[dtype])
        returned = callee({"q": zeros, "k": zeros.copy(), "v": zeros.copy(), "dtype": dtype,
                           "mask": mask, "matrices": [], "scale": 8**-0.5})
        if "unsupported" not in returned:
            return "lse" in returned
    return False


class _Progress:
    """One line on the terminal, from the first second on."""

    def __init__(self, wanted: bool) -> None:
        self._shows = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._began = time.monotonic()
        self._drawn = False

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def update(self, done: int, total: int, law: str) -> None:
        if not self._shows or time.monotonic() - self._began < 1:
            return
        self._drawn = True
        sys.stderr.write(f"\r\x1b[Klaws {done}/{total} {law}")
        sys.stderr.flush()
