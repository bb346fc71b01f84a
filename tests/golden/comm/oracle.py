# SPDX-License-Identifier: Apache-2.0
"""Collectives by numpy in float64 over the tensors of all ranks: sums by math.fsum, which rounds once, the largest by
numpy.max, which gives NaN if one is; who gets what by transposing, repeating and indexing."""
import math

import numpy as np

from vectors import case


def exact_sum(x):
    """Over the first dimension, rounded once; by numpy where a number is not finite."""
    flat = x.reshape(len(x), -1)
    with np.errstate(invalid="ignore"):
        sums = flat.sum(axis=0)
    finite = np.isfinite(flat).all(axis=0)
    sums[finite] = [math.fsum(column) for column in flat.T[finite]]
    return sums.reshape(x.shape[1:])


def together(kind, x):
    return x.max(axis=0) if kind == "max" else exact_sum(x)


def special(x):
    """Numbers that are not finite, a sum of nearly nothing, and zeros of both signs."""
    flat = x.reshape(len(x), -1)
    flat[0, 0], flat[-1, 1], flat[0, 2], flat[-1, 2] = np.nan, np.inf, np.inf, -np.inf
    flat[:, 3] = 0.0
    flat[0, 4], flat[1, 4] = 1024.0, -1024.0
    return x


def reductions():
    yield "two ranks", "f32", 2, 19, "sum"
    yield "eight ranks", "f32", 8, 11, "sum"
    yield "bf16", "bf16", 4, 33, "sum"
    yield "f16, three ranks", "f16", 3, 21, "sum"
    yield "f64", "f64", 5, 9, "sum"
    yield "largest", "f32", 3, 17, "max"
    yield "largest, bf16", "bf16", 8, 13, "max"
    yield "largest, f64", "f64", 2, 9, "max"
    yield "one rank", "f16", 1, 7, "sum"


def all_reduce(draw):
    for name, dtype, ranks, n, kind in reductions():
        x = draw.normal((ranks, n), dtype)
        if ranks > 1:
            x = special(x)
        y = np.repeat(together(kind, x)[None], ranks, axis=0)
        yield case(name, f"T={dtype} ranks={ranks} n={n} kind={kind}", {"x": x}, {"y": y})


def reduce_scatter(draw):
    for name, dtype, ranks, n, kind in reductions():
        x = draw.normal((ranks, ranks, n), dtype)
        if ranks > 1:
            x = special(x)
        yield case(name, f"T={dtype} ranks={ranks} n={n} kind={kind}", {"x": x}, {"y": together(kind, x)})


def copies(shape):
    """Of every width, and of floating-point types with NaN and zeros of both signs."""
    for dtype, ranks, n in (("f32", 2, 13), ("bf16", 4, 9), ("f16", 3, 5), ("f64", 8, 3), ("u8", 5, 7), ("i16", 3, 4),
                            ("i64", 2, 6), ("u32", 1, 8), ("e4m3", 4, 5)):
        yield dtype, ranks, n, shape(ranks, n)


def numbers(draw, shape, dtype):
    if dtype[0] in "bfe":
        x = draw.normal(shape, dtype)
        x.reshape(-1)[:3] = (np.nan, -0.0, 0.0)
        return x
    low, high = {"u8": (0, 256), "u32": (0, 2**32)}.get(dtype, (-9999, 9999))
    return draw.integers(shape, low, high)


def all_gather(draw):
    for dtype, ranks, n, shape in copies(lambda r, n: (r, n)):
        x = numbers(draw, shape, dtype)
        yield case(dtype, f"T={dtype} ranks={ranks} n={n}", {"x": x}, {"y": np.tile(x, (ranks, 1, 1))})


def broadcast(draw):
    for dtype, ranks, n, shape in copies(lambda r, n: (r, n)):
        x, root = numbers(draw, shape, dtype), (ranks * 2) // 3
        y = np.broadcast_to(x[root], shape)
        yield case(dtype, f"T={dtype} ranks={ranks} n={n} root={root}", {"x": x}, {"y": y})


def all_to_all(draw):
    for dtype, ranks, n, shape in copies(lambda r, n: (r, r, n)):
        x = numbers(draw, shape, dtype)
        yield case(dtype, f"T={dtype} ranks={ranks} n={n}", {"x": x}, {"y": np.swapaxes(x, 0, 1)})
