"""Attention of JAX, onnxruntime and transformers as functions that can be verified. Their libraries are
imported by the first call, in the process that the function runs in: their threads do not survive a copy."""
import functools

import numpy as np


def jax_array(x):
    import jax
    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(x)


def jax_attention(q, k, v, *, mask, scale, dout=None):
    import jax

    def compute(*heads_first):
        q, k, v = (x.swapaxes(1, 2) for x in heads_first)
        o, lse = jax.nn.dot_product_attention(q, k, v, mask=mask.matrix()[None, None], scale=scale,
                                              return_residual=True)
        return o.swapaxes(1, 2), lse.swapaxes(1, 2)

    if dout is None:
        return compute(q, k, v)
    (o, lse), back = jax.vjp(compute, q, k, v)
    return (o, lse, *back((dout, jax.numpy.zeros_like(lse))))


@functools.cache
def onnx_session(dtype, scale):
    """A session of one Attention node: q, k, v and a mask of booleans, of any sizes."""
    import onnx
    import onnxruntime
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [onnx.helper.make_tensor_value_info(name, kind, [None] * 4) for name in "qkv"]
    inputs.append(onnx.helper.make_tensor_value_info("mask", onnx.TensorProto.BOOL, [None] * 2))
    output = onnx.helper.make_tensor_value_info("o", kind, [None] * 4)
    node = onnx.helper.make_node("Attention", ["q", "k", "v", "mask"], ["o"], scale=scale)
    graph = onnx.helper.make_graph([node], "attention", inputs, [output])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=11)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def onnxruntime_attention(q, k, v, *, mask, scale):
    given = {"q": q, "k": k, "v": v, "mask": mask.matrix()}
    return onnx_session(q.dtype.name, scale).run(None, {name: np.ascontiguousarray(x) for name, x in given.items()})[0]


class Module:
    """The parts of a layer that functions of transformers read."""
    training = False
    is_causal = False

    def __init__(self, q, k):
        self.num_key_value_groups = q.shape[1] // k.shape[1]


def transformers_attention(forward, q, k, v, mask, scale, dout):
    import torch
    from torch_functions import with_gradients

    def compute(q, k, v):
        hidden = torch.zeros(1, 1, *mask.matrix().shape, dtype=q.dtype)
        hidden.masked_fill_(~torch.as_tensor(mask.matrix()), -torch.inf)
        return forward(Module(q, k), q, k, v, hidden, scaling=scale)[0].transpose(1, 2)

    return with_gradients(compute, q, k, v, dout)


def transformers_eager(q, k, v, *, mask, scale, dout=None):
    from transformers.models.llama.modeling_llama import eager_attention_forward
    return transformers_attention(eager_attention_forward, q, k, v, mask, scale, dout)


def transformers_sdpa(q, k, v, *, mask, scale, dout=None):
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    return transformers_attention(sdpa_attention_forward, q, k, v, mask, scale, dout)
