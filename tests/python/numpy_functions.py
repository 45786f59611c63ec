"""Attention in NumPy as somebody would write it, and the same with one mistake each."""
import numpy as np


def softmax_attention(q, k, v, allowed, scale):
    """o and lse, in float64 for float64 and in float32 for the rest."""
    work = np.float64 if q.dtype == np.float64 else np.float32
    group = q.shape[1] // k.shape[1]
    q, k, v = q.astype(work), k.astype(work), v.astype(work)
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    scores = np.where(allowed, work(scale) * (q @ k.swapaxes(2, 3)), work(-np.inf))
    top = scores.max(axis=3, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, work(0))
    weights = np.exp(scores - top)
    total = weights.sum(axis=3, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    return (weights @ v) / np.where(total > 0, total, work(1)), lse


def right(q, k, v, *, mask, scale):
    o, lse = softmax_attention(q, k, v, mask.matrix(), scale)
    return o.astype(q.dtype), lse


def rounds_weights(q, k, v, *, mask, scale):
    """As `right`, but weights are rounded to the dtype of q before they meet v."""
    work = np.float64 if q.dtype == np.float64 else np.float32
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = (np.repeat(x.astype(work), group, axis=1) for x in (k, v))
    scores = np.where(mask.matrix(), work(scale) * (q.astype(work) @ wide_k.swapaxes(2, 3)), -np.inf)
    top = scores.max(axis=3, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=3, keepdims=True)
    _, lse = right(q, k, v, mask=mask, scale=scale)
    o = weights.astype(q.dtype).astype(work) @ wide_v / np.where(total > 0, total, 1)
    return o.astype(q.dtype), lse


def merges_pairs(q, k, v, *, mask, scale):
    """The (o, lse) of three keys at a time, merged."""
    pairs = mask.matrix()
    o = np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
    lse = np.full(q.shape[:3], -np.inf, np.float32)
    for begin in range(0, k.shape[2], 3):
        part = slice(begin, begin + 3)
        part_o, part_lse = softmax_attention(q, k[:, :, part], v[:, :, part], pairs[:, part], scale)
        both = np.logaddexp(lse, part_lse)
        top = np.where(np.isneginf(both), np.float32(0), both)
        o = o * np.exp(lse - top)[..., None] + part_o * np.exp(part_lse - top)[..., None]
        lse = both
    return o.astype(q.dtype), lse


def right_without_lse(q, k, v, *, mask, scale):
    return right(q, k, v, mask=mask, scale=scale)[0]


def scales_first(q, k, v, *, mask, scale, dout=None):
    """In float32, with the root of the scale on q and on k, as PyTorch's math attention does."""
    root = np.float32(np.sqrt(scale))
    group = q.shape[1] // k.shape[1]
    wide_q, wide_k, wide_v = q * root, np.repeat(k, group, axis=1) * root, np.repeat(v, group, axis=1)
    scores = np.where(mask.matrix(), wide_q @ wide_k.swapaxes(2, 3), np.float32(-np.inf))
    top = scores.max(axis=3, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, np.float32(0)))
    weights /= np.maximum(weights.sum(axis=3, keepdims=True), np.float32(1e-30))
    o, lse = right(q, k, v, mask=mask, scale=scale)
    if dout is None:
        return o, lse
    slopes = dout @ wide_v.swapaxes(2, 3)
    slopes = weights * (slopes - (weights * slopes).sum(axis=3, keepdims=True))
    parts = (slopes.swapaxes(2, 3) @ wide_q * root, weights.swapaxes(2, 3) @ dout)
    dk, dv = (x.reshape(k.shape[0], k.shape[1], group, *x.shape[2:]).sum(axis=2) for x in parts)
    return o, lse, slopes @ wide_k * root, dk, dv


def right_with_gradients(q, k, v, *, mask, scale, dout=None):
    """From P and dP, in float64: the gradients of <dout, o>."""
    o, lse = right(q, k, v, mask=mask, scale=scale)
    if dout is None:
        return o, lse
    group = q.shape[1] // k.shape[1]
    wide = [x.astype(np.float64) for x in (q, k, v, dout)]
    kk, vv = np.repeat(wide[1], group, axis=1), np.repeat(wide[2], group, axis=1)
    scores = np.where(mask.matrix(), scale * (wide[0] @ kk.swapaxes(2, 3)), -np.inf)
    top = scores.max(axis=3, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=3, keepdims=True)
    p = weights / np.where(total > 0, total, 1)
    dp = wide[3] @ vv.swapaxes(2, 3)
    ds = scale * p * (dp - (p * dp).sum(axis=3, keepdims=True))
    in_groups = (k.shape[0], k.shape[1], group)
    dq = ds @ kk
    dk = (ds.swapaxes(2, 3) @ wide[0]).reshape(*in_groups, *k.shape[2:]).sum(axis=2)
    dv = (p.swapaxes(2, 3) @ wide[3]).reshape(*in_groups, *v.shape[2:]).sum(axis=2)
    return o, lse, dq.astype(q.dtype), dk.astype(k.dtype), dv.astype(v.dtype)


def gradients_in_parts(q, k, v, *, mask, scale, dout=None):
    """As `right_with_gradients`, but P and dS are rounded to the dtype of q, and every 4 queries of a head
    are added to dk and dv, every 4 keys to dq, where they lie: in the dtype of q."""
    o, lse = right(q, k, v, mask=mask, scale=scale)
    if dout is None:
        return o, lse

    def rounded(x):
        return x.astype(q.dtype).astype(np.float64)

    group = q.shape[1] // k.shape[1]
    wide = [x.astype(np.float64) for x in (q, k, v, dout, o)]
    kk, vv = np.repeat(wide[1], group, axis=1), np.repeat(wide[2], group, axis=1)
    scores = np.where(mask.matrix(), scale * (wide[0] @ kk.swapaxes(2, 3)), -np.inf)
    top = scores.max(axis=3, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=3, keepdims=True)
    p = weights / np.where(total > 0, total, 1)
    ds = rounded(p * (wide[3] @ vv.swapaxes(2, 3) - (wide[3] * wide[4]).sum(axis=3, keepdims=True)))
    p = rounded(p)
    dq, dk, dv = np.zeros_like(wide[0]), np.zeros_like(kk), np.zeros_like(vv)
    for part in range(0, q.shape[2], 4):
        rows = slice(part, part + 4)
        dk = rounded(dk + scale * ds[:, :, rows].swapaxes(2, 3) @ wide[0][:, :, rows])
        dv = rounded(dv + p[:, :, rows].swapaxes(2, 3) @ wide[3][:, :, rows])
    for part in range(0, k.shape[2], 4):
        keys = slice(part, part + 4)
        dq = rounded(dq + scale * ds[:, :, :, keys] @ kk[:, :, keys])
    in_groups = (k.shape[0], k.shape[1], group)
    dk = dk.reshape(*in_groups, *k.shape[2:]).sum(axis=2)
    dv = dv.reshape(*in_groups, *v.shape[2:]).sum(axis=2)
    return o, lse, dq.astype(q.dtype), dk.astype(k.dtype), dv.astype(v.dtype)


def mask_off_by_one(q, k, v, *, mask, scale):
    """Every row sees one key more than it may."""
    allowed = mask.matrix().copy()
    allowed[:, 1:] |= mask.matrix()[:, :-1]
    return softmax_attention(q, k, v, allowed, scale)


def without_the_maximum(q, k, v, *, mask, scale):
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    with np.errstate(all="ignore"):
        weights = np.exp(np.where(mask.matrix(), np.float32(scale) * (q @ k.swapaxes(2, 3)), -np.inf))
        total = weights.sum(axis=3, keepdims=True)
        return (weights @ v) / np.where(total > 0, total, 1), np.log(total)[..., 0]


def scale_of_the_values(q, k, v, *, mask, scale):
    return softmax_attention(q, k, v, mask.matrix(), v.shape[3]**-0.5)


def lse_in_base_2(q, k, v, *, mask, scale):
    o, lse = softmax_attention(q, k, v, mask.matrix(), scale)
    return o, lse / np.float32(np.log(2))


def changes_its_input(q, k, v, *, mask, scale):
    q *= np.float32(scale)
    return softmax_attention(q, k, v, mask.matrix(), 1)


class PreviousAnswer:
    """Gives the answer of the call before where it has the right shape."""

    __name__ = "previous_answer"

    def __init__(self):
        self.last = None

    def __call__(self, q, k, v, *, mask, scale):
        answer = right(q, k, v, mask=mask, scale=scale)
        last, self.last = self.last, answer
        return last if last is not None and last[0].shape == answer[0].shape else answer


def ignores_the_last_key(q, k, v, *, mask, scale):
    allowed = mask.matrix().copy()
    if allowed.shape[1] > 1:
        allowed[:, -1] = False
    return softmax_attention(q, k, v, allowed, scale)


def keys_in_half_precision(q, k, v, *, mask, scale):
    o, lse = softmax_attention(q, k.astype(np.float16).astype(q.dtype), v, mask.matrix(), scale)
    return o, lse


def first_kv_head_for_all(q, k, v, *, mask, scale):
    k, v = (np.repeat(x[:, :1], k.shape[1], axis=1) for x in (k, v))
    return softmax_attention(q, k, v, mask.matrix(), scale)


def top_left_causal(q, k, v, *, mask, scale):
    """Aligns causal masks at the top left."""
    allowed = mask.matrix()
    if mask.kind == "causal":
        allowed = np.tri(*allowed.shape, dtype=bool)
    return softmax_attention(q, k, v, allowed, scale)


def gradient_without_scale(q, k, v, *, mask, scale, dout=None):
    """dq of scores that were never scaled."""
    results = right_with_gradients(q, k, v, mask=mask, scale=scale, dout=dout)
    if dout is None:
        return results
    return (*results[:2], results[2] / np.float32(scale), *results[3:])


WRONG_GRADIENTS = (gradient_without_scale,)
WRONG = (mask_off_by_one, without_the_maximum, scale_of_the_values, lse_in_base_2, changes_its_input,
         PreviousAnswer(), ignores_the_last_key, keys_in_half_precision, first_kv_head_for_all,
         top_left_causal, gradient_without_scale)
