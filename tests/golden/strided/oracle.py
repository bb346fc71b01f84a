# SPDX-License-Identifier: Apache-2.0
"""Strided blocks as numpy.lib.stride_tricks.as_strided sees them in a larger array of which x is the middle; what is
beyond x is 0 there, and is cut off again."""
import numpy as np
from numpy.lib.stride_tricks import as_strided

from vectors import case

MARGIN = 3000


def layouts():
    yield "one block", "f32", 20, (7,), dict(start=4)
    yield "a vector", "bf16", 60, (5, 3), dict(start=2, stride_i=11)
    yield "backwards", "i32", 60, (5, 3), dict(start=50, stride_i=-11)
    yield "vectors of vectors", "f64", 200, (3, 4, 2), dict(start=1, stride_i=5, stride_j=60)
    yield "a subarray", "u8", 343, (3, 4, 2, 3), dict(start=8, stride_i=7, stride_j=14, stride_k=49)
    yield "objects", "f16", 500, (3, 2, 2, 2, 4), dict(start=3, stride_i=10, stride_j=31, stride_k=64, extent=150)
    yield "no gaps", "i8", 130, (2, 2, 3, 4, 5), dict(start=6, stride_i=5, stride_j=20, stride_k=60, extent=61)
    yield "transposed", "u32", 30, (5, 6, 1), dict(stride_i=5, stride_j=1)
    yield "beyond both ends", "i16", 50, (6, 9), dict(start=-13, stride_i=12)
    yield "once more", "i64", 30, (3, 4), dict(start=2)
    yield "over each other", "f32", 30, (4, 3, 5), dict(start=1, stride_i=3, stride_j=5)


def view(wide, shape, words):
    names = ("stride_i", "stride_j", "stride_k", "extent")
    steps = [words.get(names[d], 0) for d in range(len(shape) - 1)][::-1] + [1]
    return as_strided(wide[MARGIN + words.get("start", 0):], shape, [s * wide.itemsize for s in steps])


def text(dtype, n, shape, words):
    sizes = dict(zip("okjim"[5 - len(shape):], shape))
    return f"T={dtype} n={n} " + " ".join(f"{k}={v}" for k, v in (sizes | words).items())


def numbers(draw, shape, dtype):
    low, high = {"u8": (0, 256), "i8": (-128, 128), "u32": (0, 2**31)}.get(dtype, (-9999, 9999))
    return draw.normal(shape, dtype) if dtype[0] in "bf" else draw.integers(shape, low, high)


def pack_strided(draw):
    for name, dtype, n, shape, words in layouts():
        wide = np.zeros(n + 2 * MARGIN)
        x = wide[MARGIN:MARGIN + n]
        x[:] = numbers(draw, n, dtype)
        yield case(name, text(dtype, n, shape, words), {"x": x.copy()}, {"packed": view(wide, shape, words).copy()})


def unpack_strided(draw):
    for name, dtype, n, shape, words in layouts():
        wide = np.zeros(n + 2 * MARGIN)
        x = wide[MARGIN:MARGIN + n]
        x[:] = numbers(draw, n, dtype)
        packed, before = numbers(draw, shape, dtype), x.copy()
        places = view(np.arange(len(wide)), shape, words).reshape(-1)
        for place, value in zip(places, packed.reshape(-1)):
            wide[place] = value
        yield case(name, text(dtype, n, shape, words), {"packed": packed, "x": before}, {"x": x.copy()})
