# SPDX-License-Identifier: Apache-2.0
"""Products of scaled blocks in exact arithmetic by Python's fractions, activations by mpmath, codes of 4 bits by
ml_dtypes."""
import math
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np

from vectors import case, codes, f32

mpmath.mp.dps = 50

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: max(x, 0),
    "gelu_tanh": lambda x: x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))),
    "gelu_erf": lambda x: x * mpmath.ncdf(x),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
}
BITS = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "e2m1": ml_dtypes.float4_e2m1fn}


def fractions(x):
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(np.asarray(x))


def matrix(draw, rows, k, dtype, packed):
    """What is stored, and what it stands for."""
    if packed:
        code = draw.integers((rows, k), 0, 16).astype(np.uint8)
        stored = (code[:, ::2] | code[:, 1::2] << 4).astype(np.uint8)
        return stored.view(np.int8 if dtype == "i8" else np.uint8).astype(float), code.view(BITS[packed]).astype(float)
    if dtype in ("i8", "u8"):
        values = draw.integers((rows, k), *((-128, 128) if dtype == "i8" else (0, 256)))
    else:
        finite = codes(dtype)[np.isfinite(codes(dtype))]
        values = finite[draw.integers((rows, k), 0, len(finite)).astype(int)]
    return values, values


def scales(draw, rows, k, block, dtype):
    """Scales of blocks, and of each element."""
    shape = (math.ceil(rows / block[0]), math.ceil(k / block[1]))
    if dtype == "e8m0":
        small = 2.0 ** draw.integers(shape, -6, 5)
    elif dtype == "e4m3":
        small = draw.uniform(shape, 0.1, 3, "e4m3")
    else:
        small = draw.normal(shape, dtype)
    return small, np.repeat(np.repeat(small, block[0], axis=0), block[1], axis=1)[:rows, :k]


def matmul_scaled(draw):
    for name, types, fmt, m, n, k, a_block, b_block, words in (
        ("blocks of 1x128 by 128x128", "A=e4m3 B=e4m3 S=f32 R=f32 O=f32 V=f32", "", 2, 3, 256, (1, 128), (128, 128),
         ""),
        ("blocks whose ends are short", "A=e4m3 B=e5m2 S=f32 R=bf16 O=f16 V=f32", "", 3, 7, 80, (1, 32), (4, 64),
         "+bias activation=silu"),
        ("MXFP8", "A=e5m2 B=e4m3 S=e8m0 R=e8m0 O=f32 V=f32", "", 3, 4, 96, (1, 32), (1, 32), "+bias"),
        ("MXFP4", "A=u8 B=u8 S=e8m0 R=e8m0 O=f32 V=f32", "e2m1_both", 4, 5, 64, (1, 32), (1, 32), ""),
        ("NVFP4", "A=u8 B=u8 S=e4m3 R=e4m3 O=bf16 V=bf16", "e2m1_both", 2, 5, 64, (1, 16), (1, 16),
         "+bias alpha=0.25 activation=gelu_tanh"),
        ("e4m3 by e2m1", "A=e4m3 B=u8 S=e8m0 R=e8m0 O=f32 V=f32", "e2m1", 2, 3, 64, (1, 32), (1, 32), ""),
        ("a scale for each row and column", "A=i8 B=i8 S=f32 R=f32 O=f32 V=f32", "", 3, 4, 300, (1, 300),
         (1, 300), "+bias activation=relu"),
        ("codes of 4 bits by groups", "A=i8 B=u8 S=f32 R=f16 O=f16 V=f16", "uint4", 5, 6, 64, (1, 64), (1, 32),
         "offset=8 +bias activation=gelu_erf"),
        ("codes of 4 bits with a sign", "A=e4m3 B=i8 S=f32 R=bf16 O=f32 V=f32", "int4", 2, 4, 32, (2, 32), (1, 16),
         "offset=1 alpha=-2"),
        ("numbers without a sign", "A=u8 B=u8 S=f32 R=f32 O=f32 V=f32", "", 2, 3, 140, (1, 140), (3, 64),
         "offset=128"),
        ("as many rows as a tile has not", "A=i8 B=i8 S=f32 R=f32 O=f32 V=f32", "", 19, 3, 20, (8, 20), (2, 8), ""),
        ("blocks of 3 elements", "A=i8 B=i8 S=f32 R=f32 O=f32 V=f32", "", 2, 3, 27, (1, 3), (3, 9), ""),
    ):
        kinds = dict(word.split("=") for word in types.split())
        params = dict(word.split("=") for word in words.split() if "=" in word)
        a, x = matrix(draw, m, k, kinds["A"], "e2m1" if fmt == "e2m1_both" else "")
        b, w = matrix(draw, n, k, kinds["B"], fmt.removesuffix("_both"))
        a_scale, f = scales(draw, m, k, a_block, kinds["S"])
        b_scale, g = scales(draw, n, k, b_block, kinds["R"])
        ins = {"a": a, "b": b, "a_scale": a_scale, "b_scale": b_scale}
        if "+bias" in words:
            ins["bias"] = draw.normal(n, kinds["V"], scale=9)
        left = fractions(x) * fractions(f)
        right = (fractions(w) - int(params.get("offset", 0))) * fractions(g)
        t = Fraction(f32(params.get("alpha", 1))) * np.matmul(left, right.T) + fractions(ins.get("bias", np.zeros(n)))
        activation = ACTIVATIONS[params.get("activation", "none")]
        d = [float(activation(mpmath.mpf(v.numerator) / v.denominator)) for v in t.reshape(-1)]
        form = f"format={fmt}" if fmt.startswith("e2m1") else ""
        sizes = f"m={m} n={n} p={a.shape[1]} q={b.shape[1]} ma={a_scale.shape[0]} ka={a_scale.shape[1]} "
        sizes += f"nb={b_scale.shape[0]} kb={b_scale.shape[1]}"
        yield case(name, " ".join(f"{types} {sizes} {form} {words} +a_scale +b_scale".split()), ins,
                   {"d": np.array(d).reshape(m, n)})
    a, b = draw.integers((2, 6), -9, 9), draw.integers((3, 6), -9, 9)
    yield case("no scales", "A=i8 B=i8 S=f32 R=f32 O=f32 V=f32 m=2 n=3 p=6 q=6", {"a": a, "b": b}, {"d": a @ b.T})
    bias = draw.normal(3)
    yield case("nothing to add up", "A=e4m3 B=e4m3 S=f32 R=f32 O=f32 V=f32 m=2 n=3 p=0 q=0 activation=relu +bias",
               {"a": np.zeros((2, 0)), "b": np.zeros((3, 0)), "bias": bias},
               {"d": np.broadcast_to(np.maximum(bias, 0), (2, 3))})
    scale = np.array([[1, np.nan], [2, 4]])
    d = np.full((2, 1), np.nan)
    d[1] = 32 * 2 + 32 * 4
    yield case("a scale that is none", "A=e4m3 B=e4m3 S=e8m0 R=e8m0 O=f32 V=f32 m=2 n=1 p=64 q=64 ma=2 ka=2 nb=1 kb=2 "
               "+a_scale +b_scale", {"a": np.ones((2, 64)), "b": np.ones((1, 64)), "a_scale": scale,
                                     "b_scale": np.ones((1, 2))}, {"d": d})


def grouped_matmul_scaled(draw):
    for name, types, fmt, r, e, p, n, k, x_block, w_block, offsets, words in (
        ("blocks of 1x128 by 128x128", "A=e4m3 B=e4m3 S=f32 R=f32 O=f32 V=f32", "", 4, 2, 4, 3, 160, (1, 128),
         (128, 128), [0, 3, 4], ""),
        ("empty groups, rows of none", "A=e4m3 B=e5m2 S=f32 R=bf16 O=f16 V=f32", "", 8, 4, 8, 3, 40, (1, 32), (4, 16),
         [1, 1, 4, 4, 6], "+bias activation=silu"),
        ("MXFP8, gathered", "A=e4m3 B=e4m3 S=e8m0 R=e8m0 O=bf16 V=bf16", "", 3, 3, 6, 4, 64, (1, 32), (1, 32),
         [0, 2, 5, 6], "divide=2 +gather +bias"),
        ("MXFP4, gathered from nowhere", "A=u8 B=u8 S=e8m0 R=e8m0 O=f32 V=f32", "e2m1_both", 3, 2, 6, 4, 64, (1, 32),
         (1, 32), [0, 4, 6], "activation=relu +gather +row_scale +bias"),
        ("NVFP4, a scale of each group", "A=u8 B=u8 S=e4m3 R=e4m3 O=bf16 V=f32", "e2m1_both", 5, 3, 5, 4, 48, (1, 16),
         (1, 16), [0, 1, 4, 5], "activation=gelu_tanh +group_scale +bias"),
        ("e4m3 by e2m1, of a capacity", "A=e4m3 B=u8 S=e8m0 R=e8m0 O=f32 V=f32", "e2m1", 9, 3, 9, 2, 32, (1, 32),
         (1, 16), [0, 3, 6, 9], "+counts +row_scale"),
        ("codes of 4 bits", "A=i8 B=u8 S=f32 R=f16 O=f16 V=f16", "uint4", 4, 2, 8, 3, 64, (1, 64), (1, 32), [0, 5, 8],
         "divide=3 code_offset=8 activation=gelu_erf +gather +bias +group_scale"),
        ("codes of 4 bits with a sign", "A=e4m3 B=i8 S=f32 R=bf16 O=f32 V=f32", "int4", 4, 2, 4, 3, 32, (2, 32),
         (1, 16), [0, 2, 4], "code_offset=1"),
        ("numbers without a sign", "A=u8 B=u8 S=f32 R=f32 O=f32 V=f32", "", 3, 1, 3, 3, 70, (1, 70), (3, 64), [0, 3],
         "code_offset=128"),
        ("a row in many groups", "A=i8 B=i8 S=f32 R=f32 O=f32 V=f32", "", 1, 5, 5, 3, 20, (1, 20), (2, 8),
         [0, 1, 2, 3, 4, 5], "divide=5 +gather +row_scale"),
        ("all rows of one group", "A=i8 B=i8 S=f32 R=f32 O=f32 V=f32", "", 19, 3, 19, 2, 18, (1, 18), (2, 8),
         [0, 0, 19, 19], "+group_scale"),
    ):
        kinds = dict(word.split("=") for word in types.split())
        params = dict(word.split("=") for word in words.split() if "=" in word)
        x, values = matrix(draw, r, k, kinds["A"], "e2m1" if fmt == "e2m1_both" else "")
        x_scale, f = scales(draw, r, k, x_block, kinds["S"])
        left = fractions(values) * fractions(f)
        experts = [(matrix(draw, n, k, kinds["B"], fmt.removesuffix("_both")), scales(draw, n, k, w_block, kinds["R"]))
                   for _ in range(e)]
        right = [(fractions(w) - int(params.get("code_offset", 0))) * fractions(g) for (_, w), (_, g) in experts]
        ins = {"x": x, "w": np.array([w for (w, _), _ in experts]), "offsets": np.array(offsets, dtype=np.float64),
               "x_scale": x_scale, "w_scale": np.array([g for _, (g, _) in experts])}
        divide = int(params.get("divide", 1))
        given = {"group_scale": draw.normal(e), "gather": draw.integers(p, 0, r * divide),
                 "bias": draw.normal((e, n), kinds["V"], scale=9), "row_scale": draw.normal(p),
                 "counts": np.arange(e, dtype=np.float64) % 3}
        if "nowhere" in name:
            given["gather"][[0, 4]] = -1, r * divide
        ins |= {key: value for key, value in given.items() if f"+{key}" in words}
        one = {"group_scale": np.ones(e), "gather": np.arange(p) * divide, "bias": np.zeros((e, n)),
               "row_scale": np.ones(p), "counts": np.diff(offsets)} | ins
        activation = ACTIVATIONS[params.get("activation", "none")]
        y = np.zeros((p, n))
        for g in range(e):
            for i in range(offsets[g], min(offsets[g + 1], offsets[g] + int(one["counts"][g]))):
                if 0 <= one["gather"][i] < r * divide:
                    t = np.matmul(right[g], left[int(one["gather"][i]) // divide]) * Fraction(one["group_scale"][g])
                    y[i] = [one["row_scale"][i] * activation(mpmath.mpf(v.numerator) / v.denominator)
                            for v in t + fractions(one["bias"][g])]
        sizes = f"r={r} e={e} p={p} n={n} k={x.shape[1]} q={ins['w'].shape[2]} ra={x_scale.shape[0]} "
        sizes += f"ka={x_scale.shape[1]} nb={ins['w_scale'].shape[1]} kb={ins['w_scale'].shape[2]}"
        form = f"format={fmt}" if fmt.startswith("e2m1") else ""
        yield case(name, " ".join(f"{types} {sizes} {form} {words} +x_scale +w_scale".split()), ins, {"y": y})
    x, w = draw.integers((3, 6), -9, 9), draw.integers((2, 3, 6), -9, 9)
    yield case("no scales", "A=i8 B=i8 S=f32 R=f32 O=f32 V=f32 r=3 e=2 p=3 n=3 k=6 q=6",
               {"x": x, "w": w, "offsets": np.array([0.0, 1, 3])},
               {"y": np.concatenate([x[:1] @ w[0].T, x[1:] @ w[1].T])})
    bias = draw.normal((2, 3))
    yield case("nothing to add up",
               "A=e4m3 B=e4m3 S=f32 R=f32 O=f32 V=f32 r=3 e=2 p=3 n=3 k=0 q=0 activation=relu +bias",
               {"x": np.zeros((3, 0)), "w": np.zeros((2, 3, 0)), "offsets": np.array([0.0, 1, 3]), "bias": bias},
               {"y": np.maximum(bias, 0)[[0, 1, 1]]})
