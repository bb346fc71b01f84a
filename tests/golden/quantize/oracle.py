# SPDX-License-Identifier: Apache-2.0
"""Codes by NumPy's arithmetic in f32 and its packbits, e2m1 and float8 by ml_dtypes; Hadamard matrices from their
definitions as Kronecker products, by Legendre symbols and of circulants, multiplied in float64."""
import math

import ml_dtypes
import numpy as np

from vectors import case, codes, philox, rounded

F = np.float32
E2M1 = ml_dtypes.float4_e2m1fn


def packed(values, bits, sign):
    """Codes along the last dimension as bytes, the first in the lowest bits."""
    ones = (values.astype(np.int64)[..., None] >> np.arange(bits)) & 1
    whole = np.packbits(ones.reshape(*values.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")
    return whole.view(np.int8).astype(float) if sign else whole.astype(float)


def unpacked(whole, bits, sign):
    ones = np.unpackbits(whole.astype(np.int64).astype(np.uint8), axis=-1, bitorder="little")
    ones = ones.reshape(*whole.shape[:-1], -1, bits).astype(np.int64)
    weights = 2 ** np.arange(bits)
    if sign:
        weights[-1] *= -1
    return ones @ weights


def chances(shape, seed, stream):
    """(w + 1/2) 2^-23 for each element, from the words that dropout has."""
    count = math.prod(shape)
    words = np.array([philox(seed, stream, b) for b in range(-(-count // 8))], dtype=np.uint64).reshape(-1)
    pairs = np.repeat(words, 2)
    pairs[1::2] = (words << np.uint64(16) | words >> np.uint64(16)) & np.uint64(0xFFFFFFFF)
    return ((pairs[:count] >> np.uint64(9)).astype(float) + 0.5).reshape(shape) * 2.0**-23


def by_chance(x, chance):
    """x, in steps of 1, down or up."""
    return np.floor(x) + (chance < (x - np.floor(x)).astype(F))


FLOAT8 = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
MOST = {"e4m3": 448, "e5m2": 57344}


def float8_by_chance(x, chance, dtype):
    table = codes(dtype)
    table = np.unique(table[np.isfinite(table) & (table >= 0)]).astype(F)
    size = np.abs(x).astype(F)
    below = np.minimum(np.searchsorted(table, size, side="right") - 1, len(table) - 2)
    part = (size - table[below]) / (table[below + 1] - table[below])
    return np.copysign(table[below + (chance < part)], x)


def power_of_two(size, most, scale, upward):
    """The scale of e8m0, by frexp, whose fractions are from 1/2 to 1."""
    if upward:
        fraction, exponent = np.frexp(scale)
        exponent = np.where(fraction == 0.5, exponent - 1, exponent)
    else:
        exponent = np.frexp(size)[1] - np.frexp(F(most))[1]
    return np.ldexp(1.0, np.clip(np.where(size == 0, -127, exponent), -127, 127)).astype(F)


def within(power, scale_type):
    """f16 has fewer powers of two than e8m0; f32 and bf16 have them all."""
    return np.clip(power, 2.0**-24, 2.0**15).astype(F) if scale_type == "f16" else power


def fitted(x, most, deviations):
    """QuEST's scale as Quartet's code has it (mxfp4_forward_kernel), sums in the order that the header tells."""
    def mean(values):
        parts = np.zeros((*values.shape[:-1], 32))
        for j in range(values.shape[-1]):
            parts[..., j % 32] += values[..., j]
        while parts.shape[-1] > 1:
            parts = parts[..., 0::2] + parts[..., 1::2]
        return parts[..., 0] / values.shape[-1]
    x = x.astype(float)
    variance = mean(x * x) - mean(x).astype(F).astype(float) ** 2
    std = np.sqrt(np.maximum(variance, 0)).astype(F).astype(float)
    assert np.allclose(std, x.std(-1), rtol=1e-4, atol=1e-6)
    return np.exp2(np.floor(np.log2(float(F(deviations) / F(most)) * std + 1e-8))).astype(F)


def at_middles(size, table, away):
    """The place of the nearest value; from the middle the larger one, or the one beneath."""
    middles = (table[:-1] + table[1:]) / 2  # exact
    return np.searchsorted(middles, size, side="right" if away else "left")


def whole_at_middles(x, away):
    size = np.abs(x).astype(float)
    return np.copysign(np.floor(size + 0.5) if away else np.ceil(size - 0.5), x)


def e2m1_by_chance(x, chance):
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=F)
    size = np.abs(x).astype(F)
    below = np.minimum(np.searchsorted(table, size, side="right") - 1, 6)
    part = (size - table[below]) / (table[below + 1] - table[below])
    code = below + (chance < part)
    return np.where((x < 0) & (code > 0), code + 8, code)


def quantized(x, scale_type, bits, code_type, offset, asymmetric, e2m1, chance, upward, powers=None, ties=None,
              deviations=2.92247856):
    sign, float8 = code_type == "i8", code_type in FLOAT8
    low, high = (-6, 6) if e2m1 else (-(1 << bits - 1), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
    if float8:
        low, high = -MOST[code_type], MOST[code_type]
    x = x.astype(F)
    broken = ~np.isfinite(x).all(-1)
    least, most = np.minimum(x, 0).min(-1, initial=0), np.maximum(x, 0).max(-1, initial=0)
    if asymmetric:
        scale = most / F(high - low) - least / F(high - low)
    else:
        scale = np.abs(x).max(-1, initial=0) / F(max(1, high - offset))
    largest = np.finfo(F).max
    if powers == "fitted" and not asymmetric:
        finite = np.where(broken[..., None], F(0), x)
        scale = within(fitted(finite, max(1, high - offset), deviations), scale_type)
    elif scale_type == "e8m0" or powers:
        size = np.where(broken, F(0), np.abs(x).max(-1, initial=0))
        scale = within(power_of_two(size, max(1, high - offset), scale, upward or asymmetric), scale_type)
    elif scale_type != "f32":
        values = codes(scale_type)
        largest = values[np.isfinite(values)].max()
    scale = rounded(np.minimum(scale, largest), scale_type).astype(F)
    scale = np.where(broken, F(np.nan), scale)
    alive = scale > 0
    divisor = np.where(alive, scale, F(1))
    zero = np.zeros_like(scale)
    if asymmetric:
        steps = np.rint(np.where(alive, least / divisor, F(0)))
        zero_type = "f32" if scale_type == "e8m0" else scale_type
        zero = rounded(np.clip(F(low - offset) - steps, low - offset, high - offset), zero_type).astype(F)
    base = (F(offset) + zero)[..., None]
    q = np.where(alive[..., None], x / divisor[..., None], F(0))
    q = np.clip(q, F(low) - base, F(high) - base)
    if float8 and ties:
        table = codes(code_type)
        table = np.unique(table[np.isfinite(table) & (table >= 0)])
        value = (q + base).astype(float)
        return np.copysign(table[at_middles(np.abs(value), table, ties == "away")], value), scale, zero
    if float8:
        value = q + base
        code = value.astype(FLOAT8[code_type]) if chance is None else float8_by_chance(value, chance, code_type)
        return code.astype(float), scale, zero
    if e2m1:
        value = q + base
        if ties:
            code = at_middles(np.abs(value), np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]), ties == "away")
            code = np.where((value < 0) & (code > 0), code + 8, code)
        elif chance is not None:
            code = e2m1_by_chance(value, chance)
        else:
            code = value.astype(E2M1).view(np.uint8).astype(int) & 15
            code = np.where(code == 8, 0, code)
    else:
        code = whole_at_middles(q, ties == "away") if ties else np.rint(q) if chance is None else by_chance(q, chance)
        code = code + base
    return packed(code, bits, sign), scale, zero


def shaped(x, groups):
    return x.reshape(x.shape[0], groups, -1)


def quantize_by_powers(draw):
    """Scales that are powers of two, and numbers in the middle of codes."""
    for name, dtype, code_type, scale_type, k, groups, bits, offset, asymmetric, e2m1, powers, upward, ties, most in (
        ("f32 up", "f32", "i8", "f32", 40, 1, 8, 0, 0, 0, "all", 1, None, 0),
        ("f32 as the OCP", "bf16", "u8", "f32", 64, 2, 4, 0, 0, 1, "all", 0, None, 0),
        ("bf16 up with zeros", "f32", "u8", "bf16", 48, 2, 4, 0, 1, 0, "all", 0, None, 0),
        ("f16 up", "f32", "e4m3", "f16", 40, 2, 8, 0, 0, 0, "all", 1, None, 0),
        ("mxfp4 away", "f32", "u8", "e8m0", 64, 2, 4, 0, 0, 1, None, 0, "away", 0),
        ("mxfp4 toward 0", "bf16", "u8", "e8m0", 64, 2, 4, 0, 0, 1, None, 0, "zero", 0),
        ("mxfp4 fitted", "f32", "u8", "e8m0", 96, 3, 4, 0, 0, 1, "fitted", 0, "zero", 0),
        ("f32 fitted", "bf16", "i8", "f32", 144, 2, 4, 0, 0, 0, "fitted", 0, None, 3.5),
        ("f16 fitted", "f32", "e5m2", "f16", 40, 1, 8, 0, 0, 0, "fitted", 0, "away", 100),
        ("e4m3 away", "f32", "e4m3", "e8m0", 40, 1, 8, 0, 0, 0, None, 0, "away", 0),
        ("e5m2 toward 0", "f32", "e5m2", "e8m0", 40, 1, 8, 0, 0, 0, None, 1, "zero", 0),
        ("8 bits away", "f32", "i8", "e8m0", 40, 1, 8, 0, 0, 0, None, 1, "away", 0),
        ("8 bits with an offset toward 0", "f32", "u8", "f32", 40, 1, 8, 128, 0, 0, "all", 1, "zero", 0),
    ):
        r = 4
        x = draw.normal((r, k), dtype)
        x[1] = np.round(x[1] * 8) / 8  # many in the middle
        x[2] = np.ldexp(draw.integers(k, -31, 32), draw.integers(k, -6, 1).astype(int))
        x[3, : k // groups] = 0
        x[3, -1] = 1e5 if groups > 1 else np.nan
        x = rounded(x, dtype)
        deviations = most or 2.92247856
        with np.errstate(invalid="ignore"):
            whole, scale, zero = quantized(shaped(x, groups), scale_type, bits, code_type, offset, asymmetric, e2m1,
                                           None, upward, powers, ties, deviations)
        words = (f"T={dtype} C={code_type} S={scale_type} r={r} k={k} groups={groups} bytes={whole.shape[-1]} "
                 f"offset={offset}" + (" format=e2m1" if e2m1 else "") + (" +zeros" if asymmetric else "") +
                 (f" powers={powers}" if powers else "") + (" upward=1" if upward else "") +
                 (f" ties={ties}" if ties else "") + (f" deviations={most}" if most else ""))
        outs = {"codes": whole, "scales": scale}
        if asymmetric:
            outs["zeros"] = zero
        yield case(name, words, {"x": x}, outs)


def quantize(draw):
    for name, dtype, code_type, scale_type, k, groups, bits, offset, asymmetric, e2m1, stochastic in (
        ("4 bits as GPTQ has them", "f32", "u8", "f16", 48, 3, 4, 8, 0, 0, 0),
        ("4 bits with zeros", "bf16", "u8", "bf16", 64, 2, 4, 0, 1, 0, 0),
        ("4 bits with zeros and an offset", "f32", "i8", "f32", 24, 1, 4, -3, 1, 0, 0),
        ("8 bits", "bf16", "i8", "f32", 40, 1, 8, 0, 0, 0, 0),
        ("8 bits unsigned with zeros", "f32", "u8", "bf16", 40, 2, 8, 0, 1, 0, 0),
        ("3 bits", "f16", "u8", "f32", 48, 3, 3, 4, 0, 0, 0),
        ("2 bits", "f32", "i8", "f32", 24, 2, 2, 0, 0, 0, 0),
        ("1 bit", "f32", "u8", "f32", 16, 1, 1, 0, 1, 0, 0),
        ("6 bits with an offset beyond", "f32", "u8", "f32", 12, 1, 6, 128, 0, 0, 0),
        ("5 bits by chance", "f32", "i8", "f32", 40, 1, 5, 0, 0, 0, 1),
        ("4 bits with zeros by chance", "bf16", "u8", "bf16", 36, 3, 4, 0, 1, 0, 1),
        ("e2m1", "f32", "u8", "f32", 64, 2, 4, 0, 0, 1, 0),
        ("e2m1 with zeros", "bf16", "u8", "f16", 32, 1, 4, 1, 1, 1, 0),
        ("e2m1 by chance", "f32", "u8", "bf16", 64, 4, 4, 0, 0, 1, 1),
        ("e4m3", "bf16", "e4m3", "f32", 40, 2, 8, 0, 0, 0, 0),
        ("e5m2 with zeros and an offset", "f32", "e5m2", "f16", 24, 1, 8, 5, 1, 0, 0),
        ("e4m3 by chance", "f32", "e4m3", "bf16", 40, 1, 8, 0, 0, 0, 1),
        ("e5m2 by chance", "f32", "e5m2", "f32", 40, 1, 8, 0, 0, 0, 1),
        ("mxfp8", "f32", "e4m3", "e8m0", 64, 2, 8, 0, 0, 0, 0),
        ("mxfp8 of e5m2, upward", "bf16", "e5m2", "e8m0", 64, 2, 8, 0, 0, 0, 0),
        ("mxfp4", "f32", "u8", "e8m0", 64, 2, 4, 0, 0, 1, 0),
        ("mxint8 upward", "f32", "i8", "e8m0", 64, 2, 8, 0, 0, 0, 0),
        ("powers of two with zeros", "f32", "u8", "e8m0", 64, 2, 4, 0, 1, 0, 0),
    ):
        r, upward = 4, "upward" in name
        x = draw.normal((r, k), dtype)
        x[1] = np.abs(x[1]) + 1  # without 0 in the range
        x[1] = rounded(x[1], dtype)
        x[2, : k // groups] = 0
        x[2, 1] = -0.0
        x[3, 1] = np.inf if "chance" in name else np.nan
        x[3, -1] = 20  # nearly all others are small
        seed, stream = (987654321987, 3) if stochastic else (0, 0)
        chance = shaped(chances(x.shape, seed, stream), groups) if stochastic else None
        with np.errstate(invalid="ignore"):
            whole, scale, zero = quantized(shaped(x, groups), scale_type, bits, code_type, offset, asymmetric, e2m1,
                                           chance, upward)
        words = (f"T={dtype} C={code_type} S={scale_type} r={r} k={k} groups={groups} bytes={whole.shape[-1]} "
                 f"offset={offset}" + (" format=e2m1" if e2m1 else "") + (" +zeros" if asymmetric else "") +
                 (f" stochastic=1 seed={seed} stream={stream}" if stochastic else "") +
                 (" upward=1" if upward else ""))
        outs = {"codes": whole, "scales": scale}
        if asymmetric:
            outs["zeros"] = zero
        yield case(name, words, {"x": x}, outs)


    yield from quantize_by_powers(draw)


def dequantize(draw):
    for name, dtype, code_type, scale_type, k, groups, bits, offset, zeros, mins, e2m1 in (
        ("4 bits as GPTQ has them", "f32", "u8", "f16", 48, 3, 4, 8, 0, 0, 0),
        ("4 bits with zeros", "bf16", "u8", "bf16", 64, 2, 4, 0, 1, 0, 0),
        ("4 bits with mins", "f32", "u8", "f16", 64, 2, 4, 0, 0, 1, 0),
        ("8 bits", "f16", "i8", "f32", 40, 1, 8, 0, 0, 0, 0),
        ("8 bits with all", "f32", "u8", "f32", 40, 2, 8, 128, 1, 1, 0),
        ("7 bits", "f32", "i8", "f32", 16, 2, 7, 0, 0, 0, 0),
        ("5 bits", "f32", "u8", "f32", 24, 1, 5, 255, 0, 0, 0),
        ("3 bits", "bf16", "u8", "f32", 48, 3, 3, 4, 1, 0, 0),
        ("2 bits", "f32", "i8", "f32", 24, 2, 2, -3, 0, 0, 0),
        ("1 bit", "f32", "u8", "f32", 16, 1, 1, 0, 0, 1, 0),
        ("e2m1", "f32", "u8", "bf16", 64, 2, 4, 0, 0, 0, 1),
        ("e2m1 with all", "f32", "u8", "f32", 32, 1, 4, 2, 1, 1, 1),
        ("e4m3", "bf16", "e4m3", "f32", 40, 2, 8, 0, 0, 0, 0),
        ("e5m2 with all", "f32", "e5m2", "f16", 24, 1, 8, 3, 1, 1, 0),
        ("mxfp8", "f32", "e4m3", "e8m0", 64, 2, 8, 0, 0, 0, 0),
        ("mxfp4", "bf16", "u8", "e8m0", 64, 2, 4, 0, 0, 0, 1),
        ("powers of two with all", "f32", "u8", "e8m0", 32, 2, 8, 0, 1, 1, 0),
    ):
        r, sign = 2, code_type == "i8"
        other_type = "f32" if scale_type == "e8m0" else scale_type
        size = k // groups * bits // 8
        whole = draw.integers((r, groups, size), -128 if sign else 0, 128 if sign else 256)
        if code_type in FLOAT8:
            whole = codes(code_type)[whole.astype(int)]
            whole = np.where(np.isnan(whole), 1.0, whole)
        ins = {"codes": whole, "scales": draw.normal((r, groups), other_type)}
        if scale_type == "e8m0":
            ins["scales"] = np.ldexp(1.0, draw.integers((r, groups), -9, 9).astype(int))
        if code_type in FLOAT8:
            code = whole
        elif e2m1:
            code = unpacked(whole, 4, False).astype(np.uint8).view(E2M1).astype(float)
        else:
            code = unpacked(whole, bits, sign).astype(float)
        y = code - offset
        if zeros:
            ins["zeros"] = draw.normal((r, groups), other_type, scale=4)
            y = y - ins["zeros"][..., None]
        y = y * ins["scales"][..., None]
        if mins:
            ins["mins"] = draw.normal((r, groups), other_type)
            y = y + ins["mins"][..., None]
        words = (f"T={dtype} C={code_type} S={scale_type} r={r} k={k} groups={groups} bytes={size} offset={offset}" +
                 (" format=e2m1" if e2m1 else "") + (" +zeros" if zeros else "") + (" +mins" if mins else ""))
        yield case(name, words, ins, {"y": y.reshape(r, k)})


def row_codes(y, groups, code_type, scale_type, upward, powers=False):
    """Of rows of f32: codes of a byte, and scales."""
    y = shaped(y, groups)
    most = {"i8": 127, "e4m3": 448, "e5m2": 57344}[code_type]
    scale = np.abs(y).max(-1) / F(most)
    largest = np.finfo(F).max
    if scale_type == "e8m0" or powers:
        size = np.abs(y).max(-1)
        size = np.where(np.isfinite(size), size, F(1))
        scale = within(power_of_two(size, most, size / F(most), upward), scale_type)
    elif scale_type != "f32":
        values = codes(scale_type)
        largest = values[np.isfinite(values)].max()
    scale = rounded(np.minimum(scale, largest), scale_type).astype(F)
    scale = np.where(np.isfinite(y).all(-1), scale, F(np.nan))
    alive = (scale > 0)[..., None]
    q = np.where(alive, y / np.where(alive, scale[..., None], F(1)), F(0)) + F(0)
    q = np.clip(q, -128 if code_type == "i8" else -most, 127 if code_type == "i8" else most)
    code = np.rint(q).astype(int).astype(float) if code_type == "i8" else q.astype(FLOAT8[code_type]).astype(float)
    return code.reshape(len(y), -1), scale


def by_pairs(squares):
    """The sum of each row: 2048 partial sums, by ascending place, and these by neighbours."""
    r, k = squares.shape
    padded = np.zeros((r, -(-k // 2048), 2048))
    padded.reshape(r, -1)[:, :k] = squares
    total = np.zeros((r, 2048))
    for part in range(padded.shape[1]):
        total = total + padded[:, part]
    while total.shape[1] > 1:
        total = total[:, 0::2] + total[:, 1::2]
    return total[:, 0]


def normalized(h, weight, eps, offset):
    """Rows of f32 by the steps that the header tells, and by float64 nearly the same."""
    rstd = 1 / np.sqrt(by_pairs(h.astype(float) ** 2) / h.shape[1] + float(F(eps)))
    mantissa, exponent = np.frexp(rstd)  # from 1/2 to 1
    mantissa, exponent = (mantissa * 2).astype(F)[:, None], (exponent - 1)[:, None]
    half = np.floor_divide(exponent, 2)
    y = np.ldexp(np.ldexp(h, half), exponent - half) * mantissa
    exact = h.astype(float) * rstd[:, None]
    if weight is not None:
        y = y * (weight.astype(F) + F(offset))
        exact = exact * (weight.astype(F) + F(offset)).astype(float)
    dead = ~np.isfinite(h).all(-1)
    assert np.allclose(y[~dead], exact[~dead], rtol=4 * 2.0**-24, atol=0)
    return y


def rms_norm_quantize(draw):
    for name, dtype, other, weight_type, code_type, scale_type, r, k, groups, eps, offset, size in (
        ("a token's scale", "f32", "f32", "f32", "i8", "f32", 4, 40, 1, 1e-6, 0, 1),
        ("by groups", "bf16", "bf16", "bf16", "i8", "f32", 3, 96, 3, 1e-6, 0, 1),
        ("e4m3", "f16", "f32", "f32", "e4m3", "f32", 3, 64, 2, 1e-5, 1, 1),
        ("e5m2", "f32", "f32", None, "e5m2", "bf16", 3, 48, 2, -0.0, 0, 1),
        ("scales in f16", "f32", "f32", "f32", "e4m3", "f16", 3, 48, 2, 0.5, 0, 1),
        ("mxfp8", "f32", None, "f32", "e4m3", "e8m0", 3, 64, 2, 1e-6, 0, 1),
        ("mxfp8 upward", "bf16", None, "f32", "e5m2", "e8m0", 3, 64, 2, 1e-6, 0, 1),
        ("powers upward", "f32", None, "f32", "i8", "f32", 3, 64, 2, 1e-6, 0, 1),
        ("powers in f16", "bf16", None, "f32", "e4m3", "f16", 3, 64, 2, 1e-6, 0, 1),
        ("large", "f32", "f32", "f32", "i8", "f32", 2, 24, 1, 1e-6, 0, 1e37),
        ("small", "f32", None, "f32", "e4m3", "f32", 2, 24, 2, -0.0, 0, 1e-40),
        ("long", "bf16", None, None, "i8", "f32", 1, 2060, 2, 1e-6, 0, 1),
    ):
        x = draw.normal((r, k), dtype, scale=size)
        ins = {"x": x}
        h = x.astype(F)
        if other:
            ins["residual"] = draw.normal((r, k), other, scale=size)
            if r > 2:
                ins["residual"][2, 1] = np.inf
            h = h + ins["residual"].astype(F)
        with np.errstate(invalid="ignore", over="ignore"):
            if weight_type:
                ins["weight"] = draw.normal((k,), weight_type)
            y = normalized(h, ins.get("weight"), eps, offset)
            code, scale = row_codes(y, groups, code_type, scale_type, "upward" in name, "powers" in name)
        outs = {"codes": code, "scales": scale}
        if k < 1000:
            outs["y"] = rounded(y, dtype)
        if other:
            outs["residual_out"] = rounded(h, other)
        words = (f"T={dtype} R={other or dtype} W={weight_type or dtype} C={code_type} S={scale_type} r={r} k={k} "
                 f"groups={groups} eps={eps} weight_offset={offset}" + (" upward=1" if "upward" in name else "") +
                 (" powers=all" if "powers" in name else "") +
                 (" +y" if "y" in outs else "") + (" +weight" if weight_type else "") +
                 (" +residual +residual_out" if other else ""))
        yield case(name, words, ins, outs)


def told_sigmoid(v):
    """By the steps that the header tells, in f32."""
    z = np.maximum(-np.abs(v), F(-105))
    n = np.rint(F(1.44269504) * z)
    s = (z - n * F(0.693359375)) - n * F(-2.12194440e-4)
    p = F(1.38186966e-3)
    for c in (8.36871564e-3, 4.16682921e-2, 1.66665211e-1, 4.9999994e-1):
        p = p * s + F(c)
    e = (s * s * p + s) + F(1)
    half = np.floor_divide(n.astype(int), 2)
    e = np.ldexp(np.ldexp(e, half), n.astype(int) - half)
    return np.where(v < 0, e, F(1)) / (F(1) + e)


def swiglu_quantize(draw):
    for name, dtype, code_type, scale_type, k, groups, gelu, smoothed in (
        ("a token's scale", "f32", "i8", "f32", 40, 1, 0, 0),
        ("by groups", "bf16", "i8", "bf16", 96, 3, 0, 1),
        ("e4m3", "f16", "e4m3", "f32", 64, 2, 0, 0),
        ("e5m2", "f32", "e5m2", "f16", 48, 2, 0, 0),
        ("gelu", "f32", "i8", "f32", 48, 1, 1, 0),
        ("gelu to e4m3", "bf16", "e4m3", "f32", 48, 3, 1, 1),
        ("mxfp8", "f32", "e4m3", "e8m0", 64, 2, 0, 0),
        ("mxint8 upward", "bf16", "i8", "e8m0", 64, 2, 0, 0),
        ("powers upward", "f32", "e4m3", "bf16", 64, 2, 0, 0),
    ):
        gate, up = draw.normal((4, k), dtype, scale=3), draw.normal((4, k), dtype)
        gate[1] = rounded(gate[1] * 20, dtype)
        gate[2, : k // groups] = 0
        gate[3, 0] = np.inf
        x = gate.astype(F)
        with np.errstate(invalid="ignore", over="ignore"):
            v = x * (x * x * F(7.13548139e-2) + F(1.59576917)) if gelu else x
            y = x * told_sigmoid(v) * up.astype(F)
            argument = 2 * math.sqrt(2 / math.pi) * (gate + 0.044715 * gate**3) if gelu else gate
            exact = np.where(gate == np.inf, np.inf, gate / (1 + np.exp(-argument))) * up
            bound = (8 + (3 * np.abs(argument) if gelu else 0)) * 2.0**-24 * np.abs(exact) + 2.0**-125
            assert ((np.abs(y - exact) <= bound) | (y == exact)).all()
        ins = {"gate": gate, "up": up}
        if smoothed:
            ins["factor"] = draw.normal((k,), "f32")
            y = y * ins["factor"].astype(F)
        with np.errstate(invalid="ignore"):
            code, scale = row_codes(y, groups, code_type, scale_type, "upward" in name, "powers" in name)
        words = (f"T={dtype} C={code_type} S={scale_type} r=4 k={k} groups={groups} +y" +
                 (" upward=1" if "upward" in name else "") +
                 (" powers=all" if "powers" in name else "") + (" activation=gelu" if gelu else "") +
                 (" +factor" if smoothed else ""))
        yield case(name, words, ins, {"codes": code, "scales": scale, "y": rounded(y, dtype)})


def block_size(size, count):
    """A power of two of which there are `count`, or what is left."""
    fitting = [2**e for e in range(40) if -(-size // 2**e) == count]
    return size if count == 1 else fitting[0] if fitting else -(-size // count)


BLOCKS = (
    ("one scale", "f32", "e4m3", "f32", 5, 12, 1, 1),
    ("blocks of 4 by 8", "bf16", "e4m3", "f32", 8, 24, 2, 3),
    ("the last are not whole", "f32", "i8", "f32", 7, 20, 2, 3),
    ("the last have nothing", "f32", "e5m2", "bf16", 5, 7, 4, 5),
    ("rows", "f16", "i8", "f16", 4, 16, 4, 1),
    ("powers of two", "f32", "e4m3", "e8m0", 8, 16, 2, 2),
    ("powers of two, upward", "bf16", "i8", "e8m0", 8, 16, 2, 2),
    ("all powers, upward", "f32", "i8", "f32", 8, 16, 2, 2),
    ("all powers in f16", "f32", "e5m2", "f16", 7, 20, 2, 3),
)


def parts(matrix, rows, columns):
    """Each block's slices and place."""
    high, wide = block_size(matrix.shape[0], rows), block_size(matrix.shape[1], columns)
    for i in range(rows):
        for j in range(columns):
            yield (slice(i * high, (i + 1) * high), slice(j * wide, (j + 1) * wide)), (i, j)


def quantize_blocks(draw):
    for name, dtype, code_type, scale_type, r, k, rows, columns in BLOCKS:
        x = draw.normal((r, k), dtype)
        x[-1, -1] = np.nan if columns == 3 else 20
        x[0, 0] = -0.0
        codes_out, scales = np.zeros((r, k)), np.zeros((rows, columns))
        with np.errstate(invalid="ignore"):
            for part, at in parts(x, rows, columns):
                flat = x[part].reshape(1, -1)
                if not flat.size:
                    scales[at] = 2.0**-127 if scale_type == "e8m0" else 0
                    continue
                code, scale = row_codes(flat.astype(F), 1, code_type, scale_type, "upward" in name,
                                        "all powers" in name)
                codes_out[part], scales[at] = code.reshape(x[part].shape), scale[0, 0]
        words = (f"T={dtype} C={code_type} S={scale_type} r={r} k={k} rows={rows} columns={columns}" +
                 (" upward=1" if "upward" in name else "") + (" powers=all" if "all powers" in name else ""))
        yield case(name, words, {"x": x}, {"codes": codes_out, "scales": scales})


def dequantize_blocks(draw):
    for name, dtype, code_type, scale_type, r, k, rows, columns in BLOCKS:
        if "upward" in name or "all powers" in name:
            continue
        whole = draw.integers((r, k), -127, 128)
        if code_type in FLOAT8:
            whole = codes(code_type)[whole.astype(int) + 127]
            whole = np.where(np.isnan(whole), 1.0, whole)
        scales = draw.normal((rows, columns), "f32" if scale_type == "e8m0" else scale_type)
        if scale_type == "e8m0":
            scales = np.ldexp(1.0, draw.integers((rows, columns), -9, 9).astype(int))
        y = np.zeros((r, k))
        for part, at in parts(whole, rows, columns):
            y[part] = (whole[part].astype(F) * F(scales[at])).astype(float)
        words = f"T={dtype} C={code_type} S={scale_type} r={r} k={k} rows={rows} columns={columns}"
        yield case(name, words, {"codes": whole, "scales": scales}, {"y": rounded(y, dtype)})


AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def words_of(codes, bits, width, order):
    """Rows of unsigned codes as words, by packbits, by AWQ's own loop, and by HQQ's shifts of slabs."""
    rows, k = codes.shape
    if order == "awq":
        words = np.zeros((rows, k // 8), dtype=np.int64)
        for place, code in enumerate(AWQ_ORDER):
            words |= codes[:, code::8] << place * bits
        return words
    if order == "descending":
        each = width // bits
        words = np.zeros((rows, k // each), dtype=np.int64)
        for place in range(each):
            words = words << bits | codes[:, place::each]
        return words
    ones = ((codes[..., None] >> np.arange(bits)) & 1).reshape(rows, -1).astype(np.uint8)
    ones = np.pad(ones, ((0, 0), (0, -ones.shape[1] % width)))
    return np.packbits(ones, axis=-1, bitorder="little").view("<u4" if width == 32 else "u1").astype(np.int64)


def packings(draw):
    """Name, words of the case, codes as they are passed, and what they are packed into."""
    for name, code_type, width, bits, p, q, k, order in (
        ("here, 4 bits", "u8", 8, 4, 3, 2, 32, "ascending"),
        ("here, 3 bits with a sign", "i8", 8, 3, 2, 1, 40, "ascending"),
        ("here, 1 bit", "u8", 8, 1, 1, 2, 24, "ascending"),
        ("bits that are left", "u8", 8, 5, 1, 3, 3, "ascending"),
        ("GPTQ, 4 bits", "u8", 32, 4, 1, 5, 64, "ascending"),
        ("GPTQ, 3 bits", "u8", 32, 3, 1, 5, 96, "ascending"),
        ("GPTQ, 2 bits with a sign", "i8", 32, 2, 1, 3, 32, "ascending"),
        ("GPTQ, 8 bits", "u8", 32, 8, 1, 3, 12, "ascending"),
        ("AWQ", "u8", 32, 4, 1, 5, 24, "awq"),
        ("HQQ, 4 bits", "u8", 8, 4, 3, 4, 2, "descending"),
        ("HQQ, 3 bits", "u8", 32, 3, 2, 3, 10, "descending"),
        ("HQQ, 2 bits", "i8", 8, 2, 2, 3, 4, "descending"),
        ("HQQ, 1 bit", "u8", 8, 1, 1, 3, 8, "descending"),
        ("upper half first", "u8", 8, 4, 1, 2, 18, "descending"),
    ):
        plain = draw.integers((p * q, k), 0, 1 << bits).astype(np.int64)
        whole = words_of(plain, bits, width, order)
        if width == 32:
            whole = whole.astype(np.uint32).view(np.int32)
        codes = np.where(plain >> (bits - 1), plain - (1 << bits), plain) if code_type == "i8" else plain
        words = (f"C={code_type} P={'i32' if width == 32 else 'u8'} p={p} q={q} k={k} words={whole.shape[1]} "
                 f"order={order}")
        yield name, words, codes.reshape(p, q, k).astype(float), whole.reshape(p, q, -1).astype(float)


def pack_codes(draw):
    for name, words, codes, whole in packings(draw):
        yield case(name, words, {"codes": codes}, {"packed": whole})


def unpack_codes(draw):
    for name, words, codes, whole in packings(draw):
        yield case(name, words, {"packed": whole}, {"codes": codes})


def paley_12():
    residues = {i * i % 5 for i in range(1, 5)}
    legendre = [0] + [1 if i in residues else -1 for i in range(1, 5)]
    conference = np.ones((6, 6), dtype=int) - np.eye(6, dtype=int)
    conference[1:, 1:] = [[legendre[(i - j) % 5] for j in range(5)] for i in range(5)]
    return np.kron(conference, [[1, 1], [1, -1]]) + np.kron(np.eye(6, dtype=int), [[1, -1], [-1, -1]])


def williamson(*rows):
    p, q, r, t = (np.array([np.roll([1 if c == "+" else -1 for c in row], i) for i in range(len(row))])
                  for row in rows)
    return np.block([[p, q, r, t], [-q, p, -t, r], [-r, t, p, -q], [-t, -r, q, p]])


OUTER = {1: np.ones((1, 1), dtype=int), 12: paley_12(), 20: williamson("+----", "+----", "++--+", "+-++-"),
         28: williamson("+------", "++----+", "+-+--+-", "+--++--")}


def sylvester(size):
    h = np.ones((1, 1), dtype=int)
    while len(h) < size:
        h = np.kron([[1, 1], [1, -1]], h)
    return h


def hadamard(draw):
    for name, dtype, m, size, scale, transposed in (
        ("one", "f32", 1, 1, -2, 0),
        ("two", "bf16", 1, 2, 1, 0),
        ("16", "f16", 1, 16, 0.25, 0),
        ("128", "f32", 1, 128, 1, 0),
        ("12", "f32", 12, 1, 1, 0),
        ("12 by 8", "bf16", 12, 8, 0.5, 0),
        ("20", "f32", 20, 1, 1, 0),
        ("20 by 2", "f32", 20, 2, 1, 1),
        ("28", "f32", 28, 1, 1, 1),
        ("28 by 4", "f16", 28, 4, 1, 0),
    ):
        h = np.kron(OUTER[m], sylvester(size))
        assert (h @ h.T == m * size * np.eye(m * size)).all()
        x = draw.normal((2, m * size), dtype)
        y = scale * (x @ (h if transposed else h.T))
        words = f"T={dtype} r=2 n={m * size} scale={scale} transposed={transposed}"
        yield case(name, words, {"x": x}, {"y": y})
