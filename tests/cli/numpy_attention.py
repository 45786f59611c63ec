"""Attention in NumPy float64 with a bound per element, derived here and independently of the program.

Legend: q (H, N, D), k (G, M, D), v (G, M, C); w softmax weights, o exact output, m row maximum,
l row sum of exp(s - m), u unit roundoff of the accumulation, T rescales of a key's contribution.
A kernel's weights are w_j e^(eta_j) / sum with |eta_j| <= E_j, so its output is off by at most
sum_j w_j rho_j |v_j - o| / (1 - W) with rho_j = e^(E_j) - 1 and W = sum_j w_j rho_j; the roundings of
the sums, of the division and of the output come on top.

Backward, of dO (H, N, C): p_ij = e^(s_ij - lse_i), D_i = sum_c dO_ic o_ic, dP_ij = sum_c dO_ic v_jc,
dS_ij = p_ij (dP_ij - D_i); dQ_i = scale sum_j dS_ij k_j, dK_j = scale sum_i dS_ij q_i, dV_j = sum_i
p_ij dO_i, where i runs over all query heads of the group. A sum of n products added in any order is
off by at most gamma(n) times the sum of their magnitudes, and what its factors are off is passed on
through the other factor's magnitude: the bounds of lse and o lead to those of p, D and dS, and these
to dQ, dK and dV. `merges` is how many partial sums of a dK or dV may be added up on its way.
"""
import json
import pathlib
import struct

import numpy as np

ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
LEAST = {"f64": 2.0**-1074, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}

# Where the processor multiplies pairs of bf16, weights may come from a short polynomial, and those
# that multiply values may be rounded to bf16.
BF16_DOT = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
BF16_WEIGHT = 2.0**-13


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


def stored(dtype, x):
    """What a .safetensors file says of an array of values of this dtype: name, shape, bytes."""
    if dtype == "bf16":
        bits = (x.astype(np.float32).view(np.uint32) >> 16).astype("<u2")
        return "BF16", x.shape, bits.tobytes()
    name, kind = {"f64": ("F64", "<f8"), "f32": ("F32", "<f4"), "f16": ("F16", "<f2")}[dtype]
    return name, x.shape, x.astype(kind).tobytes()


def read_safetensors(path):
    """{name: float64 array} of a .safetensors file."""
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header, body = json.loads(raw[8:8 + length]), raw[8 + length:]
    return {name: decoded(entry, body) for name, entry in header.items() if name != "__metadata__"}


def decoded(entry, body):
    begin, end = entry["data_offsets"]
    if entry["dtype"] == "BF16":
        bits = np.frombuffer(body[begin:end], "<u2").astype(np.uint32) << 16
        flat = bits.view(np.float32)
    else:
        kind = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}[entry["dtype"]]
        flat = np.frombuffer(body[begin:end], kind)
    return flat.astype(np.float64).reshape(entry["shape"])


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
        if dtype == "bf16" and BF16_DOT:
            u = (1 + BF16_WEIGHT) * (1 + ROUNDOFF["bf16"]) - 1
            self.o_bound[h, i] += 1.01 * (u * (w @ np.abs(v)) + BF16_WEIGHT * np.abs(o))
            self.lse_bound[h, i] += 1.01 * BF16_WEIGHT
        self.o_bound[h, i] += half_ulp(dtype, np.abs(o) + self.o_bound[h, i])


class ExactGradients:
    """dq, dk, dv in float64, and how far a kernel of `dtype` may be from them, by name."""

    def __init__(self, inputs, scale, allowed, forward, dtype, merges):
        q, k, v, _ = inputs
        self.values = {n: np.zeros(x.shape) for n, x in zip(("dq", "dk", "dv"), (q, k, v))}
        self.bounds = {n: np.zeros(x.shape) for n, x in self.values.items()}
        own = forward if dtype == "f64" else Exact(q, k, v, scale, allowed, "f64", k.shape[1])
        for h in range(q.shape[0]):
            self._head(h, inputs, scale, allowed, forward.lse[h])
        # What the kernel may be off, and what this computation, a kernel of f64 itself, is off.
        for model, rows in [(dtype, forward), ("f64", own)]:
            errors = GradientErrors(inputs, scale, allowed, rows, model)
            for name, bound in errors.sums(merges).items():
                self.bounds[name] += bound
        for name, bound in self.bounds.items():
            bound += half_ulp(dtype, np.abs(self.values[name]) + bound)

    def _head(self, h, inputs, scale, allowed, lse):
        q, k, v, dout = head_of(inputs, h)
        group = inputs[0].shape[0] // inputs[1].shape[0]
        p = probabilities(q, k, scale, allowed, lse)
        dp = dout @ v.T
        ds = p * (dp - (p * dp).sum(axis=1, keepdims=True))  # D from p and dP, not from o
        self.values["dq"][h] = scale * (ds @ k)
        self.values["dk"][h // group] += scale * (ds.T @ q)
        self.values["dv"][h // group] += p.T @ dout


def head_of(inputs, h):
    q, k, v, dout = inputs
    kv = h // (q.shape[0] // k.shape[0])
    return q[h], k[kv], v[kv], dout[h]


def probabilities(q, k, scale, allowed, lse):
    """e^(s - lse), 0 where nothing is seen: (queries, keys)."""
    seen = allowed & np.isfinite(lse)[:, None]
    exponent = scale * (q @ k.T) - np.where(np.isfinite(lse), lse, 0)[:, None]
    return np.where(seen, np.exp(np.where(seen, exponent, 0)), 0)


class GradientErrors:
    """How far the gradients of a kernel that accumulates as `dtype` does are off before rounding."""

    def __init__(self, inputs, scale, allowed, forward, dtype):
        self.inputs, self.scale, self.allowed, self.forward = inputs, scale, allowed, forward
        self.u, self.exp_error = (2.0**-53, 2.0**-52) if dtype == "f64" else (2.0**-24, 2.0**-22)
        # P and dS are rounded to bf16 where they are multiplied in pairs.
        self.cast = ROUNDOFF["bf16"] if dtype == "bf16" and BF16_DOT else 0
        if self.cast:
            self.exp_error += BF16_WEIGHT
        self.least = LEAST["f64" if dtype == "f64" else "f32"]

    def sums(self, merges):
        q, k, v, _ = self.inputs
        group = q.shape[0] // k.shape[0]
        # Keys of a row, and rows of all heads that see a key: the most terms that a sum has; two
        # more roundings for the factor `scale`, which is itself rounded, one for a term's product.
        row_terms = self.allowed.sum(axis=1)[:, None] + 3
        key_terms = group * self.allowed.sum(axis=0)[:, None] + merges + 3
        wrong = {n: np.zeros(x.shape) for n, x in (("dq", q), ("dk", k), ("dv", v))}
        size = {n: np.zeros(x.shape) for n, x in wrong.items()}
        for h in range(q.shape[0]):
            qh, kh, _, dout = map(np.abs, head_of(self.inputs, h))
            p, p_error, ds, ds_error = self._pairs(h)
            kv = h // group
            for name, at, error, factor, other in [
                    ("dq", h, ds_error, ds, kh), ("dk", kv, ds_error.T, ds.T, qh),
                    ("dv", kv, p_error.T, p.T, dout)]:
                wrong[name][at] += error @ other
                size[name][at] += (factor + error) @ other
        terms = {"dq": row_terms, "dk": key_terms, "dv": key_terms}
        factors = {"dq": abs(self.scale), "dk": abs(self.scale), "dv": 1}
        return {n: factors[n] * (wrong[n] + gamma(terms[n], self.u) * size[n] +
                                 terms[n] * self.least) for n in wrong}

    def _pairs(self, h):
        """p and its error, |dS| and its error: (queries, keys), 0 where nothing is seen."""
        q, k, v, dout = head_of(self.inputs, h)
        u, lse = self.u, self.forward.lse[h]
        p = probabilities(q, k, self.scale, self.allowed, lse)
        channels = v.shape[1]
        # The exponent: the dot product times the rounded scale, the stored lse, their difference.
        s_error = gamma(q.shape[1] + 2, u) * abs(self.scale) * (np.abs(q) @ np.abs(k).T)
        finite_lse = np.where(np.isfinite(lse), lse, 0)[:, None]
        exponent = np.abs(self.scale * (q @ k.T) - finite_lse)
        given = s_error + self.forward.lse_bound[h][:, None]
        relative = np.expm1(given + u * (exponent + given)) * (1 + self.exp_error) + self.exp_error
        seen = p > 0
        p_error = np.where(seen, p * relative + self.least, 0)
        dp_error = gamma(channels, u) * (np.abs(dout) @ np.abs(v).T) + channels * self.least
        o, o_bound = np.abs(self.forward.o[h]), self.forward.o_bound[h]
        mean_error = ((np.abs(dout) * o_bound).sum(axis=1) + channels * self.least +
                      gamma(channels, u) * (np.abs(dout) * (o + o_bound)).sum(axis=1))[:, None]
        difference = np.abs(dout @ v.T - (dout * self.forward.o[h]).sum(axis=1)[:, None])
        difference_error = (1 + u) * (dp_error + mean_error) + u * difference
        ds = p * difference
        ds_error = (p_error * difference + (p + p_error) * difference_error +
                    u * (p + p_error) * (difference + difference_error) + self.least)
        return p, self._cast(p, p_error), ds, np.where(seen, self._cast(ds, ds_error), 0)

    def _cast(self, size, error):
        """The error of a factor of this size after it was rounded to bf16, if it is."""
        return error + self.cast * (size + error) + (LEAST["bf16"] if self.cast else 0)


def worst_ratio(got, exact, bound):
    """Largest |got - exact| / bound; infinite for NaN and for rows that should be empty."""
    worst = 0.0
    for g, x, b in zip(got.ravel(), exact.ravel(), bound.ravel()):
        if g == x:  # also -inf, the lse of a row that sees nothing
            continue
        error = abs(g - x)
        worst = max(worst, error / b if b > 0 and error <= 1e300 else np.inf)
    return worst
