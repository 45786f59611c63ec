"""PyTorch's scaled_dot_product_attention as functions that can be verified, one per back end."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import ringlab

# A row that sees no key has no defined answer there.
LIMITS = ringlab.Limits(lse=False, empty_rows=False)


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


def with_gradients(backend, q, k, v, mask, scale, dout):
    if dout is None:
        return of_backend(backend, q, k, v, mask, scale)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    o = of_backend(backend, *leaves, mask, scale)
    return (o, *torch.autograd.grad(o, leaves, dout))


def math(q, k, v, *, mask, scale, dout=None):
    return with_gradients(SDPBackend.MATH, q, k, v, mask, scale, dout)


def flash(q, k, v, *, mask, scale, dout=None):
    return with_gradients(SDPBackend.FLASH_ATTENTION, q, k, v, mask, scale, dout)


def main():
    """The verdicts of docs/python.md."""
    torch.set_num_threads(1)  # the products are tiny
    weights = ringlab.Profile(rounds_weights=True)
    laws = [law.id for law in ringlab.laws() if law.id != "same_call"]  # that one waits for the clock
    for fn in (math, flash):
        for dtype, profile in (("f32", None), ("bf16", None), ("bf16", weights)):
            report = ringlab.verify(fn, arrays="torch", dtypes=[dtype], backward=True, limits=LIMITS,
                                    profile=profile, progress=False, laws=laws)
            promise = "weights rounded to bf16" if profile else "float32 inside"
            print(f"{dtype:5} {promise:24} {report.headline()}")
            for law in report.broken:
                print(f"      {law.id}: {law.failure.case}: {law.failure.message}".rstrip())


if __name__ == "__main__":
    main()
