# SPDX-License-Identifier: Apache-2.0
"""Collectives by numpy in float64 over the tensors of all ranks: sums by math.fsum, which rounds once, the largest by
numpy.max, which gives NaN if one is; who gets what by transposing, repeating and indexing. Tokens go to experts by
Python's sort of (expert, rank, token, choice), and back by math.fsum. Products in exact arithmetic by Python's
fractions, rounded once: of a layer whose matrix is cut between ranks, the product by the whole matrix."""
import math
from fractions import Fraction

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


def moe_dispatch(draw):
    for name, dtype, wide, ranks, t, k, e, p, n, capacity, needed in (
        ("two ranks", "f32", "i32", 2, 5, 2, 3, 14, 4, 0, True),
        ("four ranks, bf16", "bf16", "i64", 4, 4, 2, 2, 12, 5, 0, True),
        ("capacity", "i16", "i32", 3, 6, 2, 2, 20, 3, 5, True),
        ("capacity of 1", "f64", "i32", 2, 6, 2, 4, 9, 1, 1, False),
        ("rows that have no room", "u8", "i32", 3, 7, 2, 3, 8, 2, 0, True),
        ("no room, and capacity", "i64", "i32", 2, 9, 3, 3, 11, 2, 4, True),
        ("nobody's", "e4m3", "i64", 2, 6, 3, 4, 20, 3, 0, True),
        ("all to one", "f16", "i32", 3, 4, 1, 2, 9, 4, 0, True),
        ("one rank", "u32", "i32", 1, 5, 2, 4, 12, 2, 0, True),
        ("eight ranks", "f32", "i32", 8, 3, 2, 1, 9, 2, 0, True),
    ):
        x, experts = numbers(draw, (ranks, t, n), dtype), draw.integers((ranks, t, k), 0, ranks * e)
        if name == "nobody's":
            experts.flat[[0, 4, 7, 20, 35]] = -1, ranks * e, 2**40, -(2**33), 2**32
        if name == "all to one":
            experts[:] = 3
        slots = sorted((int(experts[s, i, a]), s, i, a) for s in range(ranks) for i in range(t) for a in range(k)
                       if 0 <= experts[s, i, a] < ranks * e)
        y, places = np.zeros((ranks, p, n)), np.full((ranks, t, k), -1.0)
        counts, offsets, rows = np.zeros((ranks, e)), np.zeros((ranks, e + 1)), [[] for _ in range(ranks)]
        for r in range(ranks):
            for j in range(e):
                queue = [slot for slot in slots if slot[0] == r * e + j]
                counts[r, j] = len(queue)
                rows[r] += queue[:capacity] if capacity else queue
                offsets[r, j + 1] = len(rows[r][:p])
            for q, (_, s, i, a) in enumerate(rows[r][:p]):
                y[r, q], places[s, i, a] = x[s, i], r * p + q
        outs = {"y": y, "counts": counts, "offsets": offsets, "places": places}
        outs |= {"needed": np.tile([float(len(q)) for q in rows], (ranks, 1))} if needed else {}
        words = f"T={dtype} I={wide} ranks={ranks} t={t} k={k} e={e} p={p} n={n} capacity={capacity}"
        yield case(name, words + " +needed" * needed, {"x": x, "experts": experts}, outs)


def moe_collect(draw):
    for name, dtype, out, ranks, p, n, t, k, weighted in (
        ("weighted", "f32", "f32", 2, 9, 5, 4, 2, True),
        ("weighted, bf16, four ranks", "bf16", "bf16", 4, 6, 9, 3, 4, True),
        ("wider result", "f16", "f32", 3, 12, 4, 3, 4, True),
        ("sums alone", "bf16", "f32", 2, 6, 10, 5, 3, False),
        ("slots that were dropped", "f32", "f32", 3, 6, 7, 4, 3, True),
        ("one rank", "f16", "f16", 1, 8, 3, 4, 2, True),
        ("eight ranks", "f32", "f32", 8, 3, 3, 2, 2, True),
    ):
        x, weights = draw.normal((ranks, p, n), dtype), draw.uniform((ranks, t, k), 0, 1)
        places = draw.integers((ranks, t, k), 0, ranks * p)
        if "dropped" in name:
            places[0, 0] = -1
            places[1, 1, 1], places[2, 2, 2] = -1, ranks * p
        y = np.zeros((ranks, t, n))
        for s, i, j in np.ndindex(y.shape):
            used = [a for a in range(k) if 0 <= places[s, i, a] < ranks * p]
            y[s, i, j] = math.fsum((weights[s, i, a] if weighted else 1) *
                                   x[int(places[s, i, a]) // p, int(places[s, i, a]) % p, j] for a in used)
        ins = {"x": x, "places": places} | ({"weights": weights} if weighted else {})
        yield case(name, f"T={dtype} O={out} ranks={ranks} p={p} n={n} t={t} k={k}" + " +weights" * weighted, ins,
                   {"y": y})


def exact_product(a, b):
    """The matrix product, rounded once."""
    exact = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])
    return np.vectorize(float, otypes=[np.float64])(np.matmul(exact(a), exact(b)))


def layers():
    yield "two ranks", "T=f32 O=f32", 2, 3, 5, 7
    yield "eight ranks", "T=f32 O=f32", 8, 1, 3, 4
    yield "bf16", "T=bf16 O=bf16", 4, 2, 6, 9
    yield "bf16 to f32, b transposed", "T=bf16 O=f32 b=transposed", 3, 3, 4, 8
    yield "f16, a transposed", "T=f16 O=f16 a=transposed", 2, 4, 9, 5
    yield "f16 to f32", "T=f16 O=f32", 5, 1, 7, 3
    yield "one rank", "T=f32 O=f32", 1, 5, 8, 6
    yield "a part of nothing", "T=bf16 O=bf16", 2, 2, 3, 0


def type_of(words):
    return words.split()[0][2:]


def cut(draw, words, ranks, rows, n, k):
    """A matrix cut by columns, and the one that it is multiplied by cut by rows."""
    whole_a, whole_b = draw.normal((rows, ranks * k), type_of(words)), draw.normal((ranks * k, n), type_of(words))
    a = np.stack([whole_a[:, r * k:(r + 1) * k] for r in range(ranks)])
    b = np.stack([whole_b[r * k:(r + 1) * k] for r in range(ranks)])
    d = exact_product(whole_a, whole_b) if k > 0 else np.zeros((rows, n))
    return a, b, d


def matmul_reduce_scatter(draw):
    for name, words, ranks, m, n, k in layers():
        a, b, d = cut(draw, words, ranks, ranks * m, n, k)
        yield case(name, f"{words} ranks={ranks} m={m} n={n} k={k}",
                   {"a": a.reshape(ranks, ranks, m, k), "b": b}, {"d": d.reshape(ranks, m, n)})


def matmul_all_reduce(draw):
    for name, words, ranks, m, n, k in layers():
        a, b, d = cut(draw, words, ranks, m, n, k)
        yield case(name, f"{words} ranks={ranks} m={m} n={n} k={k}", {"a": a, "b": b}, {"d": np.stack([d] * ranks)})


def all_gather_matmul(draw):
    """The matrix cut by rows, and the one that it is multiplied by cut by columns."""
    for name, words, ranks, m, n, k in layers():
        dtype, gathers = type_of(words), ranks % 2 == 0
        words = words.replace(" a=transposed", "")
        whole_a, whole_b = draw.normal((ranks * m, k), dtype), draw.normal((k, ranks * n), dtype)
        whole_d = exact_product(whole_a, whole_b) if k > 0 else np.zeros((ranks * m, ranks * n))
        b = np.stack(np.split(whole_b, ranks, axis=1))
        d = np.stack([part.reshape(ranks, m, n) for part in np.split(whole_d, ranks, axis=1)])
        a = whole_a.reshape(ranks, m, k)
        outs = {"d": d, "gathered": np.tile(a, (ranks, 1, 1, 1))} if gathers else {"d": d}
        yield case(name.replace(", a transposed", ""),
                   f"{words} ranks={ranks} m={m} n={n} k={k}{' +gathered' if gathers else ''}", {"a": a, "b": b}, outs)
