"""Masks as a function under test is given them."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ringlab import _core
from ringlab._errors import usage_error


@dataclasses.dataclass(frozen=True)
class MaskTerm:
    """One condition on a pair of query i, which stands at key position p = i + keys - queries, and
    key j. `kind` is one of

    - "causal": j <= p
    - "window": p - left <= j <= p + right, `left` and `right` None for no limit
    - "documents": j and p lie in the same of the documents of these `lengths`
    - "prefix": j < tokens or j <= p
    - "matrix": `pairs[i, j]`, booleans (queries, keys)
    """

    kind: str
    left: int | None = None
    right: int | None = None
    lengths: tuple[int, ...] = ()
    tokens: int = 0
    pairs: np.ndarray | None = None


class Mask:
    """A mask of the keys that a query may see: those that all `terms` allow; without terms all.

    `kind` is "full" without terms, the kind of the only term, or "intersection". `str(mask)` is the
    form of the command line, "causal+window:128,0".
    """

    def __init__(self, text: str, q_tokens: int, kv_tokens: int,
                 matrices: tuple[np.ndarray, ...] = (), library: str = "numpy") -> None:
        self._text = text
        self._matrices = matrices
        self._library = library
        self.q_tokens = q_tokens
        self.kv_tokens = kv_tokens

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<ringlab.Mask {self._text} of {self.q_tokens} queries and {self.kv_tokens} keys>"

    @property
    def terms(self) -> tuple[MaskTerm, ...]:
        words = [word for word in self._text.split("+") if word != "full"]
        return tuple(self._term(word) for word in words)

    @property
    def kind(self) -> str:
        terms = self.terms
        if len(terms) > 1:
            return "intersection"
        return terms[0].kind if terms else "full"

    def matrix(self) -> Any:
        """Booleans (q_tokens, kv_tokens), True where the query sees the key; of the library that the
        function's arrays are of. A new array every time."""
        pairs = _core.visible_pairs({"mask": self._text, "matrices": list(self._matrices)},
                                    self.q_tokens, self.kv_tokens)
        visible = np.frombuffer(pairs, np.bool_).reshape(self.q_tokens, self.kv_tokens)
        if self._library == "numpy":
            return visible
        import torch
        return torch.from_numpy(visible)

    def _term(self, word: str) -> MaskTerm:
        kind, _, rest = word.partition(":")
        if kind == "window":
            left, right = (None if side == "inf" else int(side) for side in rest.split(","))
            return MaskTerm(kind, left=left, right=right)
        if kind == "documents":
            return MaskTerm(kind, lengths=tuple(int(length) for length in rest.split(",")))
        if kind == "prefix":
            return MaskTerm(kind, tokens=int(rest))
        if kind == "file":
            pairs = self._matrices[int(rest.removeprefix("matrix"))]
            return MaskTerm("matrix", pairs=pairs.astype(np.bool_))
        return MaskTerm(kind)


def mask_wishes(mask: Any) -> tuple[str, list[np.ndarray]]:
    """The caller's mask as a text and the matrices it names. Given is a text, a matrix of
    booleans, a Mask, or a tuple of those, which is their intersection."""
    words, matrices = [], []
    for term in mask if isinstance(mask, tuple) else (mask,):
        if isinstance(term, str):
            words.append(term)
        elif isinstance(term, Mask):
            for word in str(term).split("+"):
                if word.startswith("file:matrix"):
                    pairs = term._matrices[int(word.removeprefix("file:matrix"))]
                    words.append(f"file:matrix{len(matrices)}")
                    matrices.append(pairs)
                else:
                    words.append(word)
        else:
            words.append(f"file:matrix{len(matrices)}")
            matrices.append(_matrix(term))
    return "+".join(words), matrices


def split_heads(mask: Any) -> tuple[Any, np.ndarray | None]:
    """The mask less its terms that differ from head to head; these as booleans (batch or 1, q_heads
    or 1, q_tokens, kv_tokens), None where there are none."""
    shared, per_head = [], None
    for term in mask if isinstance(mask, tuple) else (mask,):
        pairs = None if isinstance(term, (str, Mask)) else _booleans(term)
        if pairs is None or pairs.ndim == 2:
            shared.append(term if pairs is None else pairs)
            continue
        pairs = pairs[None] if pairs.ndim == 3 else pairs
        if pairs.shape[:2] == (1, 1):
            shared.append(pairs[0, 0])
        else:
            per_head = pairs if per_head is None else per_head & pairs
    return tuple(shared) or "full", per_head


def _booleans(term: Any) -> np.ndarray:
    """True where the query sees the key; what is added to the scores is 0 there, and else -inf."""
    pairs = _as_numpy(term)
    if pairs.dtype.kind == "f" and np.all((pairs == 0) | (pairs == -np.inf)):
        pairs = pairs == 0
    if pairs.dtype != np.bool_ or pairs.ndim not in (2, 3, 4):
        raise usage_error("mask", 'a text such as "causal", booleans (q_tokens, kv_tokens), True '
                          "where the query sees the key, or 0 and -inf as added to the scores; or "
                          "(q_heads, q_tokens, kv_tokens), or these for each batch",
                          f"{pairs.dtype} of {pairs.ndim} dimensions",
                          "Of other numbers that are added to scores only alibi is known"
                          if pairs.dtype.kind == "f" else "")
    return pairs


def _as_numpy(term: Any) -> np.ndarray:
    """The array as one of NumPy; bfloat16, which NumPy has not, becomes float32."""
    if getattr(term, "requires_grad", False):
        term = term.detach()
    if "bfloat16" in str(getattr(term, "dtype", "")):
        term = term.astype(np.float32) if hasattr(term, "astype") else term.float()
    try:
        return np.asarray(term)
    except (TypeError, ValueError, RuntimeError) as error:  # on a device, sparse, ragged
        raise usage_error("mask", "what NumPy can make an array of", type(term).__name__,
                          str(error)) from None


def _matrix(term: Any) -> np.ndarray:
    pairs = _booleans(term)
    if pairs.ndim != 2:
        raise usage_error("mask", "(q_tokens, kv_tokens)", f"{pairs.ndim} dimensions")
    return np.ascontiguousarray(pairs).view(np.uint8)
