"""Limits that keep away the calls that a function refuses."""
from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from ringlab import _core

MULTIPLES = (2, 4, 8, 16, 32, 64, 128)
FEWEST = 3  # refused calls that tell what they share


def traits_of(call: dict[str, Any]) -> frozenset[str]:
    """The limits that would keep this call away, as they are written."""
    q, k, v = (call[name].shape for name in ("q", "k", "v"))
    tokens, channels, scale = (q[2], k[2]), (q[3], v[3]), call["scale"]
    stands = {
        "no_tokens=False": 0 in q[:3] + k[:3],
        "rectangular=False": q[2] != k[2],
        "grouped_heads=False": q[1] != k[1],
        "other_v_dim=False": q[3] != v[3],
        "nonpositive_scale=False": scale <= 0,
        "any_scale=False": abs(scale * q[3]**0.5 - 1) > 1e-9,
        'masks without "full"': call["mask"] == "full",
        'masks without "intersections"': "+" in call["mask"],
    }
    stands |= {f"token_multiple={m}": any(n % m for n in tokens) for m in MULTIPLES}
    stands |= {f"head_dim_multiple={m}": any(n % m for n in channels) for m in MULTIPLES}
    stands |= {f"max_head_dim={m}": max(channels) > m for m in reversed(MULTIPLES)}
    stands |= {f'masks without "{kind}"': kind in call["mask"] for kind in _core.MASKS}
    return frozenset(limit for limit, holds in stands.items() if holds)


class Refusals:
    """Calls of a function: those it answered, and those it refused or raised in, by their traits."""

    def __init__(self, callee: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._callee = callee
        self._answered: set[str] = set()
        self._refused: collections.Counter[frozenset[str]] = collections.Counter()

    def __call__(self, call: dict[str, Any]) -> dict[str, Any]:
        result = self._callee(call)
        if "unsupported" in result or "raised" in result:
            self._refused[traits_of(call)] += 1
        elif "o" in result:
            self._answered |= traits_of(call)
        return result

    def advice(self) -> str:
        """The fewest limits that keep all refused calls away and no answered one; "" without any."""
        left, chosen = self._refused.copy(), []
        calls = left.total()
        while left and calls >= FEWEST:
            shares = collections.Counter[str]()
            for traits, times in left.items():
                shares.update({limit: times for limit in traits - self._answered})
            if not shares:
                return ""
            most = max(shares.values())
            chosen.append(min((limit for limit in shares if shares[limit] == most), key=_strength))
            left = collections.Counter({traits: n for traits, n in left.items() if chosen[-1] not in traits})
        if not chosen:
            return ""
        masks = [limit for limit in chosen if limit.startswith("masks")]
        limits = ", ".join(limit for limit in chosen if limit not in masks)
        words = [*([f"limits=ringlab.Limits({limits})"] if limits else []), *masks]
        return f"it refuses or fails {calls} calls, and only such as are left out with {' and '.join(words)}"


def _strength(limit: str) -> tuple[int, str]:
    """Limits that leave out less come first: small multiples, wide heads."""
    name, _, number = limit.partition("=")
    if not number.isdigit():
        return 0, limit
    return -int(number) if name == "max_head_dim" else int(number), limit
