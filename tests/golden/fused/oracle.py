# SPDX-License-Identifier: Apache-2.0
"""rms_norm_matmul: PyTorch's rms_norm, linear and activations in float64."""
import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, f32

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": F.relu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_erf": F.gelu,
    "silu": F.silu,
}


def tensor(x):
    return None if x is None else torch.tensor(np.asarray(x), dtype=torch.float64)


def normed(x, b, weight=None, weight_offset=0, residual=None, bias=None, eps=1e-6, activation="none"):
    """All outputs. PyTorch's linear takes b's transpose."""
    h = tensor(x) + (0 if residual is None else tensor(residual))
    factor = None if weight is None else tensor(weight) + f32(weight_offset)
    norm = F.rms_norm(h, h.shape[-1:], factor, f32(eps))
    y = ACTIVATIONS[activation](F.linear(norm, tensor(b).mT.contiguous(), tensor(bias)))
    rstd = torch.rsqrt((h * h).mean(-1) + f32(eps))
    return {"y": y.numpy(), "residual_out": h.numpy(), "rstd": rstd.numpy()}


def rms_norm_matmul(draw):
    for name, types, r, k, n, eps, offset, activation, given in (
        ("plain", "f32 f32 f32 f32 f32", 5, 12, 7, 1e-6, 0, "none", ""),
        ("weight, columns", "f32 f32 f32 f32 f32", 4, 33, 6, 0.25, 0, "none", "weight rstd"),
        ("Gemma", "bf16 bf16 bf16 bf16 bf16", 3, 20, 9, 1e-5, 1, "gelu_tanh", "weight bias"),
        ("a block", "bf16 f32 f32 bf16 f32", 6, 24, 5, 1e-6, 0, "silu", "weight residual residual_out rstd bias"),
        ("to f32", "bf16 bf16 f32 f32 f32", 2, 40, 11, 0, 0, "none", "weight residual"),
        ("f16", "f16 f16 f16 f16 f16", 4, 9, 8, 0.5, -0.5, "relu", "weight bias residual residual_out"),
        ("f16, wide around it", "f16 f32 f32 f16 f32", 3, 16, 4, 1e-6, 2, "gelu_erf", "weight residual residual_out"),
        ("offset without weight", "f32 f32 f32 f32 f32", 3, 5, 3, 1e-3, 3, "gelu_erf", "bias"),
    ):
        T, R, W, O, B = types.split()
        given = given.split()
        ins = {"x": draw.normal((r, k), T, scale=2), "b": draw.normal((k, n), T, scale=0.5)}
        if "weight" in given:
            ins["weight"] = draw.normal(k, W, mean=1)
        if "residual" in given:
            ins["residual"] = draw.normal((r, k), R, mean=0.5)
        if "bias" in given:
            ins["bias"] = draw.normal(n, B)
        outs = normed(**ins, weight_offset=offset, eps=eps, activation=activation)
        words = f"T={T} R={R} W={W} O={O} B={B} r={r} k={k} n={n} eps={eps} weight_offset={offset}"
        words += f" activation={activation}" + "".join(f" +{word}" for word in given)
        if "columns" in name:
            words += " b=transposed"
        yield case(name, words, ins, {key: outs[key] for key in outs if key == "y" or key in given})
    bias = draw.normal(4)
    yield case("k = 0", "T=f32 R=f32 W=f32 O=f32 B=f32 r=2 k=0 n=4 activation=silu +bias",
               {"x": np.zeros((2, 0)), "b": np.zeros((0, 4)), "bias": bias},
               {"y": np.broadcast_to(F.silu(tensor(bias)).numpy(), (2, 4))})
    x = np.array([[1.0, 2.0], [np.inf, 1.0], [np.nan, 0.0], [0.0, 3.0]])
    b = np.array([[1.0, np.inf, 0.0], [-2.0, 1.0, np.nan]])
    with np.errstate(invalid="ignore"):
        y = normed(x, b)["y"]
    yield case("what is not a number", "T=f32 R=f32 W=f32 O=f32 B=f32 r=4 k=2 n=3", {"x": x, "b": b}, {"y": y})
