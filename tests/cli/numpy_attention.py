"""Attention in NumPy float64 with a bound per element, derived here and independently of the program.

Legend: q (H, N, D), k (G, M, D), v (G, M, C); w softmax weights, o exact output, m row maximum,
l row sum of exp(s - m), u unit roundoff of the accumulation, T rescales of a key's contribution.
A kernel's weights are w_j e^(eta_j) / sum with |eta_j| <= E_j, so its output is off by at most
sum_j w_j rho_j |v_j - o| / (1 - W) with rho_j = e^(E_j) - 1 and W = sum_j w_j rho_j; the roundings of
the sums, of the division and of the output come on top.
"""
import numpy as np

ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
LEAST = {"f64": 2.0**-1074, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}


def round_to(dtype, x):
    """The nearest values of a dtype, ties to even, as float64."""
    x = np.asarray(x, dtype=np.float64)
    if dtype == "f64":
        return x
    if dtype == "bf16":  # x is representable in float32 in these tests: one rounding, in integers
        bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    return x.astype({"f32": np.float32, "f16": np.float16}[dtype]).astype(np.float64)


def visible(mask, queries, keys, matrices):
    """A (queries, keys) matrix of booleans from the words of the command line."""
    allowed = np.ones((queries, keys), dtype=bool)
    p = np.arange(queries)[:, None] + keys - queries
    j = np.arange(keys)[None, :]
    for term in mask.split("+"):
        word, _, rest = term.partition(":")
        if word == "causal":
            allowed &= j <= p
        elif word == "window":
            left, right = (np.inf if side == "inf" else int(side) for side in rest.split(","))
            allowed &= (j >= p - left) & (j <= p + right)
        elif word == "prefix":
            allowed &= (j < int(rest)) | (j <= p)
        elif word == "documents":
            document = np.repeat(np.arange(rest.count(",") + 1), [int(n) for n in rest.split(",")])
            own = np.full(queries, -1)
            inside = (p[:, 0] >= 0) & (p[:, 0] < keys)
            own[inside] = document[p[inside, 0]]
            allowed &= own[:, None] == document[None, :]
        elif word == "file":
            allowed &= matrices[rest]
        elif word != "full":
            raise ValueError(term)
    return allowed


def gamma(n, u):
    return n * u / (1 - n * u)


def half_ulp(dtype, magnitude):
    return np.maximum(ROUNDOFF[dtype] * magnitude, LEAST[dtype] / 2)


class Exact:
    """o (H, N, C) and lse (H, N) in float64, and how far a kernel of `dtype` may be from them."""

    def __init__(self, q, k, v, scale, allowed, dtype, rescales):
        heads, group = q.shape[0], q.shape[0] // k.shape[0]
        self.o = np.zeros(q.shape[:2] + (v.shape[2],))
        self.lse = np.full(q.shape[:2], -np.inf)
        self.o_bound, self.lse_bound = np.zeros_like(self.o), np.zeros_like(self.lse)
        for h in range(heads):
            for i in range(q.shape[1]):
                row = np.flatnonzero(allowed[i])
                if row.size:
                    self._row(h, i, q[h, i], k[h // group, row], v[h // group, row], scale, dtype,
                              rescales)

    def _row(self, h, i, q, k, v, scale, dtype, rescales):
        s = scale * (k @ q)
        m = s.max()
        p = np.exp(s - m)
        l = p.sum()
        w = p / l
        o = w @ v
        self.o[h, i], self.lse[h, i] = o, m + np.log(l)
        # What the kernel may be off, and what this float64 computation is off itself.
        kernel = (2.0**-53, 2.0**-52) if dtype == "f64" else (2.0**-24, 2.0**-22)
        for u, exp_error in [kernel, (2.0**-53, 2.0**-52)]:
            absolute = abs(scale) * (np.abs(k) @ np.abs(q))
            e = (gamma(q.size + 1, u) * absolute + 4 * u * np.abs(s - m) +
                 (2 * rescales + 1) * u * np.abs(s).max() + (rescales + 1) * (exp_error + 2 * u))
            rho = np.expm1(e)
            big = w @ rho
            assert big < 0.5, "an input too extreme for these tests"
            sums = gamma(row_terms := s.size + 2 * rescales, u)
            weights = (w * rho) @ np.abs(v - o)
            bound = (weights + sums * (w @ np.abs(v) + np.abs(o))) / (1 - big) + 3 * u * np.abs(o)
            self.o_bound[h, i] += bound + row_terms * LEAST["f64" if u < 2.0**-30 else "f32"]
            self.lse_bound[h, i] += (-np.log1p(-big) + sums +
                                     2 * u * (abs(m) + abs(np.log(l)) + abs(self.lse[h, i])) + 4 * u)
        self.o_bound[h, i] += half_ulp(dtype, np.abs(o) + self.o_bound[h, i])


def worst_ratio(got, exact, bound):
    """Largest |got - exact| / bound; infinite for NaN and for rows that should be empty."""
    worst = 0.0
    for g, x, b in zip(got.ravel(), exact.ravel(), bound.ravel()):
        if g == x:  # also -inf, the lse of a row that sees nothing
            continue
        error = abs(g - x)
        worst = max(worst, error / b if b > 0 and error <= 1e300 else np.inf)
    return worst
