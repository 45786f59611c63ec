"""PyTorch's scaled_dot_product_attention as functions that can be verified, one per back end."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import ringlab

# A row that sees no key has no defined answer there.
LIMITS = ringlab.Limits(lse=False, empty_rows=False)
# The causal mask of flash is added before the scale is multiplied in: NaN where that is not positive.
FLASH_LIMITS = ringlab.Limits(lse=False, empty_rows=False, other_v_dim=False, nonpositive_scale=False)

# The flash back end adds every block of 32, 64 or 256 queries to dk and dv, and every block of 512 keys to
# dq, where they lie: in their dtype. Query heads that share a K/V head have gradients of their own, which
# are added up at the end. Its larger products of bfloat16, on a CPU with instructions for them, take what
# is subnormal for zero: no more than 2^-126 times factors below 8.
WEIGHTS = ringlab.Profile(rounds_weights=True)
FLASH = ringlab.Profile(rounds_weights=True, queries_per_store=32, keys_per_store=512,
                        product_underflow=2.0**-123)


def of_backend(backend, q, k, v, mask, scale):
    """Causal masks of equal lengths as is_causal, all others as booleans."""
    causal = mask.kind == "causal" and q.shape[2] == k.shape[2]
    pairs = None if causal or mask.kind == "full" else mask.matrix()
    try:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q, k, v, attn_mask=pairs, is_causal=causal, scale=scale,
                                                enable_gqa=q.shape[1] != k.shape[1])
    except RuntimeError as error:
        if "No available kernel" in str(error):
            raise NotImplementedError("this back end has no kernel for it") from error
        raise


def with_gradients(compute, q, k, v, dout):
    """The results of compute(q, k, v), and with dout those of autograd besides."""
    if dout is None:
        return compute(q, k, v)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    o = compute(*leaves)
    return (o, *torch.autograd.grad(o, leaves, dout))


def math(q, k, v, *, mask, scale, dout=None):
    return with_gradients(lambda *x: of_backend(SDPBackend.MATH, *x, mask, scale), q, k, v, dout)


def flash(q, k, v, *, mask, scale, dout=None):
    return with_gradients(lambda *x: of_backend(SDPBackend.FLASH_ATTENTION, *x, mask, scale), q, k, v, dout)


DTYPES = ("f64", "f32", "f16", "bf16")
PROMISES = {"weights are rounded": WEIGHTS, "partial gradients, too": FLASH}
