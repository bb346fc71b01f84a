# SPDX-License-Identifier: Apache-2.0
"""Products in exact arithmetic by Python's integers and fractions, activations by mpmath."""
import math
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np

from vectors import case, f32

mpmath.mp.dps = 50

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: max(x, 0),
    "gelu_tanh": lambda x: x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3))),
    "gelu_erf": lambda x: x * mpmath.ncdf(x),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
}


def fractions(x):
    return np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(np.asarray(x))


def product(a, b, shape, alpha=1, a_scale=1, b_scale=1, beta=1, c=0, bias=0, activation="none"):
    """act(alpha a_scale b_scale a b + beta c + bias), exact up to the activation. Scales are of rows of a and of
    columns of b."""
    columns = fractions(b_scale)[..., None, :] if np.ndim(b_scale) else Fraction(float(b_scale))
    scales = fractions(a_scale)[..., None] * columns
    t = Fraction(f32(alpha)) * scales * np.matmul(fractions(a), fractions(b))
    t = t + Fraction(f32(beta)) * fractions(c) + fractions(bias)
    t = np.broadcast_to(t, shape)
    flat = [float(ACTIVATIONS[activation](mpmath.mpf(v.numerator) / v.denominator)) for v in t.reshape(-1)]
    return np.array(flat).reshape(shape)


def wrapped(d):
    """Modulo 2^32."""
    return (d + 2**31) % 2**32 - 2**31


def matmul(draw):
    a, b = draw.normal((5, 11)), draw.normal((11, 17))
    yield case("plain", "T=f32 m=5 n=17 k=11", {"a": a, "b": b}, {"d": product(a, b, (5, 17))})
    for which in ("a", "b"):
        yield case(f"{which} transposed", f"T=f32 m=5 n=17 k=11 {which}=transposed", {"a": a, "b": b},
                   {"d": product(a, b, (5, 17))})
    a, b = draw.normal((2, 3, 8), "bf16"), draw.normal((2, 8, 10), "bf16")
    c, bias = draw.normal((2, 3, 10), "bf16"), draw.normal(10)
    d = product(a, b, (2, 3, 10), alpha=-2, beta=3, c=c, bias=bias, activation="gelu_tanh")
    words = "T=bf16 O=bf16 B=f32 g=2 ga=2 gb=2 m=3 n=10 k=8 alpha=-2 beta=3 activation=gelu_tanh "
    words += "a=transposed b=transposed +c +bias"
    yield case("batch, transposed, all of the epilogue", words, {"a": a, "b": b, "c": c, "bias": bias}, {"d": d})
    a, b, c = draw.normal((4, 9), "f16"), draw.normal((3, 9, 6), "f16"), draw.normal((1, 6))
    words = "T=f16 O=f32 B=f32 g=3 ga=1 gb=3 m=4 n=6 k=9 beta=-0.5 activation=silu +c"
    yield case("one a for the batch, c a row", words, {"a": a, "b": b, "c": c},
               {"d": product(a, b, (3, 4, 6), beta=-0.5, c=c, activation="silu")})
    for activation in ("relu", "gelu_erf"):
        a, b, bias = draw.normal((3, 7)), draw.normal((7, 12)), draw.normal(12)
        words = f"T=f32 m=3 n=12 k=7 activation={activation} alpha=0.5 +bias"
        yield case(activation, words, {"a": a, "b": b, "bias": bias},
                   {"d": product(a, b, (3, 12), alpha=0.5, bias=bias, activation=activation)})
    a, b, c = draw.normal((3, 0)), draw.normal((0, 5)), draw.normal((3, 5))
    yield case("k = 0", "T=f32 m=3 n=5 k=0 beta=3 +c", {"a": a, "b": b, "c": c}, {"d": 3 * c})
    a, b, c = draw.normal((3, 13), "f64"), draw.normal((13, 5), "f64"), draw.normal((3, 5), "f64")
    yield case("f64", "T=f64 m=3 n=5 k=13 alpha=0.1 beta=1 +c", {"a": a, "b": b, "c": c},
               {"d": product(a, b, (3, 5), alpha=0.1, c=c)})
    yield from scaled(draw)
    yield from integers(draw)


def scaled(draw):
    for name, left, right, out, a_scale, b_scale in (
        ("e4m3, a scale for each row and column", "e4m3", "e4m3", "bf16", draw.uniform(4, 0.1, 2),
         draw.uniform(6, 0.1, 2)),
        ("e4m3 by e5m2, one scale each", "e4m3", "e5m2", "f32", draw.uniform(1, 0.1, 2), draw.uniform(1, 0.1, 2)),
        ("e5m2 by e4m3, a scale for each row", "e5m2", "e4m3", "f16", draw.uniform(4, 0.1, 2), None),
        ("bf16, a scale for each column", "bf16", "bf16", "f32", None, draw.uniform(6, 0.1, 2)),
    ):
        a, b, bias = draw.normal((4, 16), left, scale=2), draw.normal((16, 6), right, scale=2), draw.normal(6)
        words = f"T={left} U={right} O={out} B=f32 m=4 n=6 k=16 alpha=0.5 activation=relu +bias"
        ins = {"a": a, "b": b, "bias": bias}
        if a_scale is not None:
            ins["a_scale"], words = a_scale, words + " +a_scale"
        if b_scale is not None:
            ins["b_scale"], words = b_scale, words + " +b_scale"
        rows = np.ones(1) if a_scale is None else a_scale
        columns = 1 if b_scale is None else b_scale
        d = product(a, b, (4, 6), alpha=0.5, a_scale=rows, b_scale=columns, bias=bias, activation="relu")
        yield case(name, words, ins, {"d": d})


def integers(draw):
    a, b = draw.integers((3, 21), -128, 128), draw.integers((21, 9), -128, 128)
    c, bias = draw.integers((3, 9), -(2**31), 2**31), draw.integers(9, -1000, 1000)
    words = "T=i8 m=3 n=9 k=21 alpha=3 beta=-2 activation=relu +c +bias"
    d = np.maximum(wrapped(3 * (a @ b) - 2 * c + bias), 0)
    yield case("i8 modulo 2^32", words, {"a": a, "b": b, "c": c, "bias": bias}, {"d": d})
    a, b = draw.integers((2, 40), -128, 128), draw.integers((40, 5), -128, 128)
    yield case("i8 times 2^20", "T=i8 m=2 n=5 k=40 alpha=1048576", {"a": a, "b": b}, {"d": wrapped(2**20 * (a @ b))})
    # Pairs of products beyond 16 bits, and a sum beyond 32: an instruction that saturates would show.
    k = 131080
    a, b = np.full((2, k), -128.0), np.full((k, 2), -128.0)
    a[1] = 127
    yield case("i8 sums beyond 2^31", f"T=i8 m=2 n=2 k={k} b=transposed", {"a": a, "b": b}, {"d": wrapped(a @ b)})


def packed(b, dtype, beyond=0):
    """Matrices as matmul_pack's header says, by views of a padded array."""
    g, k, n = b.shape
    deep = {"f16": 2, "bf16": 2, "i8": 4, "e4m3": 4, "e5m2": 4}.get(dtype, 1)
    blocks, groups = -(-k // 4), -(-n // 16)
    whole = np.full((g, 4 * blocks, 16 * groups), float(beyond))
    whole[:, :k, :n] = b
    lines = whole.reshape(g, blocks, 4 // deep, deep, groups, 16)
    return lines.transpose(0, 4, 1, 2, 5, 3).reshape(g, groups, blocks, 64)


def matmul_pack(draw):
    for name, dtype, g, k, n, words in (
        ("f32", "f32", 1, 5, 18, ""),
        ("f32 transposed, whole", "f32", 1, 8, 16, "b=transposed"),
        ("f64, a batch", "f64", 2, 3, 4, ""),
        ("bf16", "bf16", 1, 7, 19, ""),
        ("bf16 transposed, a batch", "bf16", 2, 6, 17, "b=transposed"),
        ("f16, whole", "f16", 1, 4, 32, ""),
        ("e4m3 transposed", "e4m3", 1, 9, 20, "b=transposed"),
        ("e5m2", "e5m2", 1, 2, 33, ""),
    ):
        b = draw.normal((g, k, n), dtype)
        yield case(name, f"T={dtype} g={g} k={k} n={n} {words}".strip(), {"b": b}, {"packed": packed(b, dtype)})
    b = draw.integers((1, 11, 21), -128, 128)
    yield case("i8", "T=i8 g=1 k=11 n=21", {"b": b}, {"packed": packed(b, "i8")})


def matmul_packed(draw):
    for name, left, right, out, wide, g, ga, gb, m, n, k, activation, words in (
        ("plain", "f32", "f32", "f32", "f32", 1, 1, 1, 5, 17, 11, "none", ""),
        ("a transposed, whole blocks", "f32", "f32", "f32", "f32", 1, 1, 1, 3, 16, 8, "relu", "a=transposed +bias"),
        ("a batch, all of the epilogue", "bf16", "bf16", "bf16", "f32", 2, 2, 2, 3, 20, 7, "gelu_tanh", "+c +bias"),
        ("one b for the batch", "f16", "f16", "f32", "f32", 3, 3, 1, 2, 18, 9, "silu", "+c"),
        ("f64", "f64", "f64", "f64", "f64", 1, 1, 1, 3, 19, 13, "gelu_erf", "+c"),
        ("e4m3 by e5m2, scales", "e4m3", "e5m2", "f16", "f32", 1, 1, 1, 4, 6, 10, "relu", "+bias +a_scale +b_scale"),
        ("e5m2 by e4m3", "e5m2", "e4m3", "f32", "f32", 1, 1, 1, 2, 33, 6, "none", "+b_scale"),
    ):
        a, b = draw.normal((ga, m, k), left), draw.normal((gb, k, n), right)
        given = {"c": draw.normal((g, m, n), out), "bias": draw.normal(n, wide), "a_scale": draw.uniform(m, 0.1, 2),
                 "b_scale": draw.uniform(n, 0.1, 2)}
        given = {key: value for key, value in given.items() if f"+{key}" in words}
        d = product(a, b, (g, m, n), alpha=-2, beta=3, a_scale=given.get("a_scale", np.ones(m)),
                    b_scale=given.get("b_scale", np.ones(n)), c=given.get("c", 0), bias=given.get("bias", 0),
                    activation=activation)
        text = f"T={left} U={right} O={out} B={wide} g={g} ga={ga} gb={gb} m={m} n={n} k={k} alpha=-2 beta=3 "
        ins = {"a": a, "packed": packed(b, right, beyond=7)} | given
        yield case(name, (text + f"activation={activation} {words}").strip(), ins, {"d": d})
    a, b = draw.integers((3, 21), -128, 128), draw.integers((1, 21, 18), -128, 128)
    c, bias = draw.integers((3, 18), -(2**31), 2**31), draw.integers(18, -1000, 1000)
    d = np.maximum(wrapped(3 * (a @ b[0]) - 2 * c + bias), 0)
    yield case("i8 modulo 2^32", "T=i8 m=3 n=18 k=21 alpha=3 beta=-2 activation=relu +c +bias",
               {"a": a, "packed": packed(b, "i8", beyond=-5)[0], "c": c, "bias": bias}, {"d": d})


def grouped_matmul(draw):
    for name, dtype, out, wide, r, e, p, n, k, offsets, divide, activation, words in (
        ("plain", "f32", "f32", "f32", 7, 3, 7, 5, 6, [0, 2, 5, 7], 1, "none", ""),
        ("empty groups, rows of none", "f32", "f32", "f32", 8, 4, 8, 3, 9, [0, 0, 3, 3, 6], 1, "none", "w=transposed"),
        ("gathered", "bf16", "bf16", "f32", 4, 3, 10, 6, 8, [0, 4, 8, 10], 2, "silu", "+gather +bias"),
        ("gathered from nowhere", "f16", "f32", "f32", 3, 2, 6, 4, 5, [0, 3, 6], 1, "relu", "+gather +row_scale"),
        ("all of it", "bf16", "f32", "f32", 5, 2, 9, 7, 10, [0, 4, 8], 3, "gelu_erf",
         "w=transposed +gather +bias +row_scale"),
        ("a bias of f16", "f16", "f16", "f16", 4, 5, 4, 8, 3, [0, 1, 1, 2, 4, 4], 1, "gelu_tanh", "+bias +row_scale"),
        ("late start", "f32", "f32", "f32", 6, 2, 6, 4, 5, [1, 3, 5], 1, "none", "+bias"),
        ("groups of a capacity", "bf16", "bf16", "f32", 12, 3, 12, 4, 6, [0, 4, 8, 12], 1, "relu", "+bias +counts"),
        ("gathered, of a capacity", "f32", "f32", "f32", 5, 4, 12, 3, 7, [0, 3, 6, 9, 12], 2, "none",
         "+gather +row_scale +counts"),
    ):
        x, w = draw.normal((r, k), dtype), draw.normal((e, n, k), dtype)
        gather = draw.integers(p, 0, r * divide) if "+gather" in words else np.arange(p) * divide
        bias = draw.normal((e, n), wide) if "+bias" in words else np.zeros((e, n))
        scale = draw.normal(p) if "+row_scale" in words else np.ones(p)
        if "nowhere" in name:
            gather[[0, 4]] = -1, r * divide
        counts = np.arange(e) * 2 % 5 % (np.diff(offsets) + 1) if "+counts" in words else np.diff(offsets)
        y = np.zeros((p, n))
        for g in range(e):
            for i in range(offsets[g], offsets[g] + int(counts[g])):
                if 0 <= gather[i] < r * divide:
                    row = x[int(gather[i]) // divide][None]
                    y[i] = scale[i] * product(row, w[g].T, (1, n), bias=bias[g], activation=activation)[0]
        ins = {"x": x, "w": w, "offsets": np.array(offsets, dtype=np.float64)}
        ins |= {key: value for key, value in (("gather", gather), ("bias", bias), ("row_scale", scale),
                                                 ("counts", np.asarray(counts, dtype=np.float64)))
                if f"+{key}" in words}
        yield case(name, f"T={dtype} O={out} B={wide} r={r} e={e} p={p} n={n} k={k} activation={activation} "
                   f"divide={divide} {words}".strip(), ins, {"y": y})


def grouped_matmul_weights(draw):
    for name, dtype, out, wide, r, e, p, n, k, offsets, divide, words in (
        ("plain", "f32", "f32", "f32", 7, 3, 7, 5, 6, [0, 2, 5, 7], 1, "+dbias"),
        ("empty groups, rows of none", "f32", "f32", "f32", 8, 4, 8, 3, 9, [0, 0, 3, 3, 6], 1, ""),
        ("gathered", "bf16", "bf16", "bf16", 4, 3, 10, 6, 8, [0, 4, 8, 10], 2, "+gather +dbias"),
        ("gathered from nowhere", "f16", "f32", "f32", 3, 2, 6, 4, 5, [0, 3, 6], 1, "+gather +dbias"),
        ("thirds", "bf16", "f32", "f32", 5, 2, 9, 7, 10, [0, 4, 8], 3, "+gather"),
        ("many rows", "f16", "f16", "f32", 150, 2, 150, 3, 4, [5, 20, 149], 1, "+dbias"),
    ):
        x, dy = draw.normal((r, k), dtype), draw.normal((p, n), dtype)
        gather = draw.integers(p, 0, r * divide) if "+gather" in words else np.arange(p) * divide
        if "nowhere" in name:
            gather[[0, 4]] = -1, r * divide
        dw, dbias = np.zeros((e, n, k)), np.zeros((e, n))
        for g in range(e):
            rows = [i for i in range(offsets[g], offsets[g + 1]) if 0 <= gather[i] < r * divide]
            for j in range(n):
                dbias[g, j] = math.fsum(dy[i, j] for i in rows)
                for q in range(k):
                    dw[g, j, q] = math.fsum(dy[i, j] * x[int(gather[i]) // divide, q] for i in rows)
        ins = {"dy": dy, "x": x, "offsets": np.array(offsets, dtype=np.float64)}
        ins |= {"gather": gather} if "+gather" in words else {}
        yield case(name, f"T={dtype} O={out} B={wide} r={r} e={e} p={p} n={n} k={k} divide={divide} {words}".strip(),
                   ins, {"dw": dw} | ({"dbias": dbias} if "+dbias" in words else {}))


def bit_strings(codes, bits):
    """Codes of groups, the lowest bit first, as bytes."""
    bit = (codes[..., None].astype(np.int64) >> np.arange(bits)) & 1
    return np.packbits(bit.reshape(*codes.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")


def draw_codes(draw, shape, bits, kind, e2m1=False):
    """Codes, as the numbers that they are and as bytes."""
    codes = draw.integers(shape, 0, 2**bits)
    stored = bit_strings(codes, bits)
    if kind == "i8":
        codes, stored = np.where(codes >= 2 ** (bits - 1), codes - 2**bits, codes), stored.view(np.int8)
    if e2m1:
        codes = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(float)[codes.astype(int)]
    return codes, stored.astype(np.float64)


def weights_of(codes, offset, ins):
    none = np.zeros(ins["scales"].shape)
    steps = fractions(codes) - offset - fractions(ins.get("zeros", none))[..., None]
    return steps * fractions(ins["scales"])[..., None] + fractions(ins.get("mins", none))[..., None]


def matmul_quantized(draw):
    for name, types, m, n, groups, size, bits, offset, extra, activation in (
        ("4 bits as GPTQ has them", "T=f32 C=u8 S=f32", 3, 5, 2, 32, 4, 8, "", "none"),
        ("8 bits, a scale for each row", "T=bf16 O=f32 C=i8 S=f32", 2, 6, 1, 24, 8, 0, "bias", "silu"),
        ("3 bits with zeros", "T=f16 O=f16 B=f32 C=u8 S=f16", 1, 7, 3, 16, 3, 0, "zeros bias", "none"),
        ("4 bits with minima as GGUF has them", "T=f32 C=u8 S=f16", 5, 4, 2, 32, 4, 0, "mins", "gelu_erf"),
        ("2 bits, all of it", "T=bf16 O=bf16 B=bf16 C=i8 S=bf16", 4, 9, 2, 20, 2, -3, "zeros mins bias", "gelu_tanh"),
        ("one bit", "T=f32 C=u8 S=f32", 2, 3, 2, 40, 1, 0, "zeros", "relu"),
        ("5 bits with a sign", "T=f32 C=i8 S=bf16", 2, 4, 2, 8, 5, 1, "", "none"),
        ("e2m1", "T=f32 C=u8 S=bf16", 3, 4, 3, 32, 4, 0, "bias format=e2m1", "none"),
        ("6 bits", "T=f32 C=u8 S=f32", 1, 3, 1, 12, 6, 31, "", "none"),
        ("7 bits with a sign", "T=f32 C=i8 S=f32", 1, 3, 2, 8, 7, 0, "mins", "none"),
    ):
        kinds = dict(word.split("=") for word in types.split())
        k = groups * size
        e2m1, tensors = "format=e2m1" in extra, [word for word in extra.split() if "=" not in word]
        codes, stored = draw_codes(draw, (n, groups, size), bits, kinds["C"], e2m1)
        ins = {"x": draw.normal((m, k), kinds["T"]), "codes": stored, "scales": draw.normal((n, groups), kinds["S"])}
        for tensor in tensors:
            shape, kind = ((n,), kinds.get("B", "f32")) if tensor == "bias" else ((n, groups), kinds["S"])
            ins[tensor] = draw.normal(shape, kind, scale=3)
        weights = weights_of(codes, offset, ins).reshape(n, k)
        t = np.matmul(fractions(ins["x"]), weights.T) + fractions(ins.get("bias", np.zeros(n)))
        y = [float(ACTIVATIONS[activation](mpmath.mpf(v.numerator) / v.denominator)) for v in t.reshape(-1)]
        words = f"{types} m={m} n={n} k={k} groups={groups} bytes={size * bits // 8} offset={offset}"
        words += f" activation={activation}" + " format=e2m1" * e2m1 + "".join(f" +{tensor}" for tensor in tensors)
        yield case(name, words, ins, {"y": np.array(y).reshape(m, n)})
    bias = draw.normal(4)
    yield case("no weights", "T=f32 C=u8 S=f32 m=2 n=4 k=0 groups=1 bytes=0 activation=relu +bias",
               {"x": np.zeros((2, 0)), "codes": np.zeros((4, 1, 0)), "scales": np.ones((4, 1)), "bias": bias},
               {"y": np.broadcast_to(np.maximum(bias, 0), (2, 4))})


def grouped_matmul_quantized(draw):
    for name, types, r, e, p, n, groups, size, bits, offset, offsets, divide, activation, words in (
        ("4 bits", "T=f32 C=u8 S=f32", 7, 3, 7, 5, 2, 16, 4, 8, [0, 2, 5, 7], 1, "none", ""),
        ("empty groups, rows of none", "T=f32 C=i8 S=f16", 8, 4, 8, 3, 1, 12, 8, 0, [0, 0, 3, 3, 6], 1, "none", ""),
        ("gathered", "T=bf16 O=bf16 B=f32 C=u8 S=bf16", 4, 3, 10, 6, 2, 16, 4, 0, [0, 2, 8, 10], 2, "silu",
         "+zeros +gather +bias"),
        ("gathered from nowhere", "T=f16 O=f32 C=u8 S=f16", 3, 2, 6, 4, 3, 8, 3, 1, [0, 3, 6], 1, "relu",
         "+gather +row_scale"),
        ("all of it", "T=bf16 O=f32 C=i8 S=bf16", 5, 2, 13, 4, 2, 20, 2, -3, [0, 4, 12], 3, "gelu_erf",
         "+zeros +mins +gather +bias +row_scale"),
        ("e2m1", "T=f32 C=u8 S=bf16", 9, 2, 9, 3, 2, 32, 4, 0, [0, 6, 9], 1, "none", "format=e2m1 +bias"),
        ("a bias of f16", "T=f16 O=f16 B=f16 C=u8 S=f32", 4, 5, 4, 6, 1, 8, 5, 3, [0, 1, 1, 2, 4, 4], 1, "gelu_tanh",
         "+bias +row_scale"),
        ("one bit, late start", "T=f32 C=u8 S=f32", 6, 2, 6, 4, 2, 24, 1, 0, [1, 3, 5], 1, "none", "+zeros +bias"),
        ("groups of a capacity", "T=bf16 O=bf16 B=f32 C=i8 S=f32", 12, 3, 12, 4, 2, 8, 6, 0, [0, 4, 8, 12], 1, "relu",
         "+mins +bias +counts"),
        ("gathered, of a capacity", "T=f32 C=u8 S=f32", 5, 4, 12, 3, 3, 8, 7, 0, [0, 3, 6, 9, 12], 2, "none",
         "+gather +row_scale +counts"),
    ):
        kinds, k = dict(word.split("=") for word in types.split()), groups * size
        codes, stored = draw_codes(draw, (e, n, groups, size), bits, kinds["C"], "format=e2m1" in words)
        ins = {"x": draw.normal((r, k), kinds["T"]), "codes": stored,
               "scales": draw.normal((e, n, groups), kinds["S"])}
        for tensor in ("zeros", "mins"):
            if f"+{tensor}" in words:
                ins[tensor] = draw.normal((e, n, groups), kinds["S"], scale=3)
        weights = weights_of(codes, offset, ins).reshape(e, n, k)
        gather = draw.integers(p, 0, r * divide) if "+gather" in words else np.arange(p) * divide
        bias = draw.normal((e, n), kinds.get("B", "f32")) if "+bias" in words else np.zeros((e, n))
        scale = draw.normal(p) if "+row_scale" in words else np.ones(p)
        if "nowhere" in name:
            gather[[0, 4]] = -1, r * divide
        counts = np.arange(e) * 2 % 5 % (np.diff(offsets) + 1) if "+counts" in words else np.diff(offsets)
        y = np.zeros((p, n))
        for g in range(e):
            for i in range(offsets[g], offsets[g] + int(counts[g])):
                if 0 <= gather[i] < r * divide:
                    t = np.matmul(weights[g], fractions(ins["x"][int(gather[i]) // divide])) + fractions(bias[g])
                    y[i] = [scale[i] * ACTIVATIONS[activation](mpmath.mpf(v.numerator) / v.denominator) for v in t]
        given = {"gather": gather, "bias": bias, "row_scale": scale, "counts": np.asarray(counts, dtype=np.float64)}
        ins |= {"offsets": np.array(offsets, dtype=np.float64)}
        ins |= {key: value for key, value in given.items() if f"+{key}" in words}
        yield case(name, f"{types} r={r} e={e} p={p} n={n} k={k} groups={groups} bytes={size * bits // 8} "
                   f"code_offset={offset} divide={divide} activation={activation} {words}".strip(), ins, {"y": y})
    bias = draw.normal((2, 4))
    yield case("no weights", "T=f32 C=u8 S=f32 r=3 e=2 p=3 n=4 k=0 groups=1 bytes=0 activation=relu +bias",
               {"x": np.zeros((3, 0)), "codes": np.zeros((2, 4, 1, 0)), "scales": np.ones((2, 4, 1)), "bias": bias,
                "offsets": np.array([0.0, 1, 3])}, {"y": np.maximum(bias, 0)[[0, 1, 1]]})
