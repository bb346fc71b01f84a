# SPDX-License-Identifier: Apache-2.0
"""gelu of x + bias in 50 digits by mpmath, its derivative by mpmath's differences, PyTorch beside them; dropout of x +
bias by randomgen's Philox, its gradient by PyTorch's autograd."""
import mpmath
import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, dropout_factors, rounded

mpmath.mp.dps = 50

# Hendrycks and Gimpel 2016, section 2: x times the normal distribution, and its approximation.
GELU = {
    "erf": lambda x: x * mpmath.ncdf(x),
    "tanh": lambda x: x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))),
}
TORCH = {"erf": "none", "tanh": "tanh"}
CASES = (  # form, type, type of the bias, rows, columns
    ("tanh", "f32", "f32", 2, 37),
    ("erf", "f32", "f32", 3, 21),
    ("tanh", "bf16", "bf16", 2, 40),
    ("erf", "bf16", "f32", 3, 24),
    ("tanh", "f16", "f32", 2, 25),
    ("erf", "f16", "f16", 2, 24),
)


def tensor(x, grad=False):
    return torch.tensor(np.asarray(x), dtype=torch.float64, requires_grad=grad)


def each(function, x, bias):
    """The function of the exact sums."""
    bias = np.broadcast_to(bias, x.shape)
    values = [function(mpmath.mpf(float(a)) + mpmath.mpf(float(b))) for a, b in zip(x.reshape(-1), bias.reshape(-1))]
    return np.array([float(v) for v in values]).reshape(x.shape)


def drawn(draw, dtype, of_bias, r, n):
    """Around zero, and in the first row into both tails."""
    x, bias = draw.normal((r, n), dtype, scale=2), draw.normal(n, of_bias)
    x[0] = rounded(np.linspace(-10, 10, n), dtype)
    return x, bias


def close(mine, theirs):
    """PyTorch has no digits left where 1 + erf or 1 + tanh cancel: there mpmath's are better."""
    theirs = theirs.detach().numpy()
    assert np.abs(mine - theirs).max() < 1e-12 * max(1, np.abs(theirs).max())
    return mine


def gelu_bias(draw):
    for form, dtype, of_bias, r, n in CASES:
        x, bias = drawn(draw, dtype, of_bias, r, n)
        y = close(each(GELU[form], x, bias), F.gelu(tensor(x) + tensor(bias), approximate=TORCH[form]))
        words = f"T={dtype} W={of_bias} r={r} n={n} form={form}"
        yield case(f"{form} {dtype}, bias {of_bias}", words, {"x": x, "bias": bias}, {"y": y})


def gelu_bias_backward(draw):
    for form, dtype, of_bias, r, n in CASES:
        x, bias = drawn(draw, dtype, of_bias, r, n)
        dy = draw.normal((r, n), dtype)
        leaf, of_all = tensor(x, True), tensor(bias, True)
        F.gelu(leaf + of_all, approximate=TORCH[form]).backward(tensor(dy))
        dx = close(dy * each(lambda h: mpmath.diff(GELU[form], h), x, bias), leaf.grad)
        dbias = close(dx.sum(0), of_all.grad)
        words = f"T={dtype} W={of_bias} r={r} n={n} form={form} +dbias"
        yield case(f"{form} {dtype}, bias {of_bias}", words, {"dy": dy, "x": x, "bias": bias},
                   {"dx": dx, "dbias": dbias})


DROPOUT = (  # type, type of the bias, rows, columns, p, seed, offset, key and stream in a tensor, bias, residual
    ("f32", "f32", 5, 29, 0.25, 0, 0, None, True, True),
    ("bf16", "bf16", 4, 40, 0.5, 42, 7, None, True, True),
    ("f16", "f32", 3, 19, 0.9, 1234567890123456789, 4294967296, None, True, True),
    ("bf16", "f32", 2, 24, 0.1, 2**63 - 1, 2**63 - 2, None, False, True),
    ("f32", "f32", 3, 21, 0.3, 5, 6, None, True, False),
    ("f16", "f16", 2, 16, 0, 3, 4, None, True, True),
    ("f32", "f32", 2, 11, 1, 3, 0, None, True, True),
    ("f32", "f32", 3, 18, 0.4, 0, 9, (-3, -5), True, True),
    ("bf16", "bf16", 2, 32, 0.4, 0, 2**63 - 2**32, (2**52 + 1, -(2**33)), False, False),
)


def masks(shape, p, seed, offset, told):
    if p == 1:
        return np.zeros(shape)
    return dropout_factors(shape, p, told[0] % 2**64 if told else seed, (offset + told[1]) % 2**64 if told else offset)


def dropout_words(dtype, of_bias, r, n, p, seed, offset, told):
    return f"T={dtype} W={of_bias} r={r} n={n} p={p} seed={seed} offset={offset}" + (" +philox" if told else "")


def dropout_add(draw):
    for dtype, of_bias, r, n, p, seed, offset, told, with_bias, with_residual in DROPOUT:
        x, bias, residual = draw.normal((r, n), dtype), draw.normal(n, of_bias), draw.normal((r, n), dtype)
        factors = masks((r, n), p, seed, offset, told)
        y = (x + bias * with_bias) * factors + residual * with_residual
        x = np.where((factors == 0) & (draw.integers((r, n), 0, 4) == 0), np.nan, x)  # dropped, thus 0 all the same
        ins = {"x": x} | ({"bias": bias} if with_bias else {}) | ({"residual": residual} if with_residual else {})
        ins |= {"philox": np.array(told)} if told else {}
        words = dropout_words(dtype, of_bias, r, n, p, seed, offset, told)
        words += (" +bias" if with_bias else "") + (" +residual" if with_residual else "")
        yield case(f"{dtype}, p = {p}, seed {seed}", words, ins, {"y": y})


def dropout_add_backward(draw):
    for dtype, of_bias, r, n, p, seed, offset, told, with_bias, with_residual in DROPOUT:
        leaves = [tensor(draw.normal((r, n), dtype), True), tensor(draw.normal(n, of_bias), True),
                  tensor(draw.normal((r, n), dtype), True)]
        dy = draw.normal((r, n), dtype)
        ((leaves[0] + leaves[1]) * tensor(masks((r, n), p, seed, offset, told)) + leaves[2]).backward(tensor(dy))
        dx, dbias, dresidual = (leaf.grad.numpy() for leaf in leaves)
        outs = {"dx": dx} | ({"dresidual": dresidual} if with_residual else {})
        outs |= {"dbias": dbias} if with_bias else {}
        ins = {"dy": dy} | ({"philox": np.array(told)} if told else {})
        words = dropout_words(dtype, of_bias, r, n, p, seed, offset, told)
        words += (" +dresidual" if with_residual else "") + (" +dbias" if with_bias else "")
        yield case(f"{dtype}, p = {p}, seed {seed}", words, ins, outs)
