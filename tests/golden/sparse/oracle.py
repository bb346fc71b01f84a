# SPDX-License-Identifier: Apache-2.0
"""Thresholds by torch's activations in float64 and numpy's comparisons, no value being near its threshold; products by
numpy's selections and math.fsum; two of four by NumPy's stable sort; updates in place by
numpy.add.at and by Python's own assignments."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, f32, rounded

ACTIVATIONS = {"none": lambda x: x, "relu": torch.relu, "silu": F.silu, "gelu_erf": F.gelu,
               "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


def gated_threshold(draw):
    for name, dtype, r, n, activation, threshold, outputs in (
        ("cats", "bf16", 3, 37, "silu", 0.1, ("mask", "columns", "counts")),
        ("silu f32", "f32", 2, 50, "silu", 0.25, ("columns",)),
        ("silu above its least value", "f16", 2, 40, "silu", 0.3, ("mask", "counts")),
        ("gelu_tanh", "f32", 3, 33, "gelu_tanh", 0.05, ("mask", "columns", "counts")),
        ("gelu_erf", "f16", 2, 41, "gelu_erf", 0.12, ("mask", "columns", "counts")),
        ("relu", "bf16", 2, 29, "relu", 0, ("columns", "counts")),
        ("no activation", "f32", 2, 30, "none", 0.7, ("mask",)),
        ("a threshold for each column", "f32", 4, 21, "silu", None, ("mask", "columns", "counts")),
        ("a threshold in memory", "bf16", 2, 21, "gelu_erf", "one", ("mask", "counts")),
        ("large and small", "f32", 1, 12, "silu", 0.001, ("mask", "columns", "counts")),
        ("large and small, gelu_erf", "f32", 1, 12, "gelu_erf", 0.001, ("mask", "columns", "counts")),
    ):
        x = draw.normal((r, n), dtype, scale=1.5)
        if name.startswith("large"):
            x = rounded(np.array([[-1e30, -200, -90, -20, -9, -1e-20, 0, 1e-20, 5, 30, 1e30, 3e38]]), dtype)
        ins, words = {"x": x}, f"T={dtype} r={r} n={n} activation={activation}"
        if threshold is None or threshold == "one":
            limit = draw.uniform((n,) if threshold is None else (1,), 0.02, 0.6)
            ins, words = ins | {"thresholds": limit}, words + " +thresholds"
        else:
            limit, words = f32(threshold), words + f" threshold={threshold}"
        value = ACTIVATIONS[activation](torch.tensor(x)).numpy()
        assert (np.abs(np.abs(value) - limit) > 1e-6).all() or (threshold == 0 and activation == "relu")
        keep = np.abs(value) > limit
        outs = {"y": np.where(keep, value, 0)}
        if "mask" in outputs:
            outs["mask"] = keep.astype(np.float64)
        if "columns" in outputs:
            outs["columns"] = np.array([list(np.flatnonzero(k)) + [-1] * int((~k).sum()) for k in keep], dtype=float)
        if "counts" in outputs:
            outs["counts"] = keep.sum(1).astype(np.float64)
        yield case(name, words + "".join(f" +{o}" for o in outputs), ins, outs)
    x = np.array([[np.nan, np.inf, -np.inf, 0.5, -0.5, 0.75]])
    yield case("what is not a number is kept, what equals is not", "T=f32 r=1 n=6 threshold=0.5 +mask +columns +counts",
               {"x": x}, {"y": np.array([[np.nan, np.inf, -np.inf, 0, 0, 0.75]]),
                          "mask": np.array([[1., 1, 1, 0, 0, 1]]), "columns": np.array([[0., 1, 2, 5, -1, -1]]),
                          "counts": np.array([4.])})


def gates(draw, shape, dtype, share):
    gate = draw.normal(shape, dtype)
    return np.where(draw.uniform(shape, 0, 1) < share, gate, 0)


def matvec_masked(draw):
    for name, dtype, r, n, k, share in (
        ("one token", "bf16", 1, 19, 40, 0.5), ("four tokens", "f16", 4, 13, 33, 0.4), ("f32", "f32", 2, 17, 70, 0.5),
        ("many", "f32", 7, 9, 24, 0.3), ("all shut", "bf16", 2, 5, 8, 0), ("all open", "f16", 1, 11, 21, 1),
    ):
        x, w, gate = draw.normal((r, k), dtype), draw.normal((n, k), dtype), gates(draw, (r, n), dtype, share)
        w[(gate == 0).all(0)] = np.nan
        y = np.zeros((r, n))
        for i, j in zip(*np.nonzero(gate)):
            y[i, j] = gate[i, j] * math.fsum(x[i] * w[j])
        yield case(name, f"T={dtype} r={r} n={n} k={k}", {"x": x, "w": w, "gate": gate}, {"y": y})
    yield case("wild", "T=f32 r=2 n=3 k=2",
               {"x": np.array([[1.0, 2], [3, -1]]), "w": np.array([[1, 1], [np.inf, 0], [np.nan, 1]]),
                "gate": np.array([[np.nan, -0.0, 0], [2, 1, 0]])},
               {"y": np.array([[np.nan, 0, 0], [4, np.inf, 0]])})


def matvec_sparse(draw):
    for name, dtype, r, n, k, share in (
        ("one token", "bf16", 1, 45, 19, 0.5), ("four tokens", "f16", 4, 33, 13, 0.4), ("f32", "f32", 2, 70, 17, 0.5),
        ("many", "f32", 7, 24, 9, 0.3), ("all zero", "bf16", 2, 8, 5, 0), ("none zero", "f16", 1, 21, 11, 1),
    ):
        h, w = gates(draw, (r, n), dtype, share), draw.normal((n, k), dtype)
        w[(h == 0).all(0)] = np.nan
        y = np.array([[math.fsum(h[i, j] * w[j, l] for j in np.flatnonzero(h[i])) for l in range(k)] for i in range(r)])
        yield case(name, f"T={dtype} r={r} n={n} k={k}", {"h": h, "w": w}, {"y": y})
    yield case("wild", "T=f32 r=3 n=3 k=2",
               {"h": np.array([[1, 0, -0.0], [0, 2, 0], [0, 0, np.nan]]),
                "w": np.array([[3, 4], [np.inf, 1], [np.nan, 1]])},
               {"y": np.array([[3, 4], [np.inf, 2], [np.nan, np.nan]])})


def matvec_rows(draw):
    for name, dtype, out, wide, t, k, m, rows, bias, pad in (
        ("candidates", "bf16", "f32", "i32", 1, 40, 23, [[5, 22, 0, 5]], False, 0),
        ("candidates of each", "f16", "f32", "i64", 3, 17, 11, [[1, 2], [10, 10], [0, 7]], True, 0),
        ("one list for all", "f32", "f32", "i64", 5, 33, 9, [8, 3, 0, 1, 3], True, 0),
        ("narrow", "bf16", "bf16", "i32", 2, 24, 9, [4, 8, 7], False, 0),
        ("out of range", "f32", "f32", "i64", 2, 6, 5, [0, 5, -1, 2**32 + 1, -(2**33), 4], True, 0),
        ("padded", "f16", "f16", "i32", 2, 9, 5, [[3, 4, -1, -1], [-1, 5, -2, 0]], True, 1),
    ):
        x, w, b = draw.normal((t, k), dtype), draw.normal((m, k), dtype), draw.normal(m, dtype)
        rows = np.array(rows)
        full = np.broadcast_to(rows, (t, rows.shape[-1]))
        w[[j for j in range(m) if j not in full]] = np.nan
        y = np.full(full.shape, np.nan)
        for i, a in np.ndindex(full.shape):
            place = int(full[i, a])
            if 0 <= place < m:
                y[i, a] = math.fsum([*(x[i] * w[place]), b[place] if bias else 0])
            elif pad and place == -1:
                y[i, a] = 0
        words = f"T={dtype} O={out} I={wide} t={t} k={k} m={m} r={rows.shape[-1]} pad={pad}" + " +bias" * bias
        yield case(name, words, {"x": x, "w": w, "rows": rows} | ({"bias": b} if bias else {}), {"y": y})


def scatter_axpy(draw):
    for name, dtype, addend, wide, index, put, alpha, saved in (
        ("shira", "bf16", "bf16", "i64", [0, 3, 4, 17, 34], 0, 1, True),
        ("scaled", "f16", "f32", "i32", [2, 9, 33], 0, -0.5, False),
        ("repeats", "f32", "f32", "i64", [1, 6, 6, 6, 20, 34, 34], 0, 2, True),
        ("put", "bf16", "bf16", "i32", [1, 6, 8, 30], 1, 1, True),
        ("put, rounded", "f16", "f32", "i64", [5, 7], 1, 3, False),
        ("put, the last of repeats", "f32", "f32", "i32", [4, 4, 11, 11, 11], 1, 1, True),
        ("out of range", "f32", "f32", "i64", [-(2**33), -1, 0, 2**32 + 3, 7, 35, 34, 36], 0, 1, True),
        ("out of order", "f32", "f32", "i32", [9, 3, 9, 12, 11, 12, 35, 30], 0, 1, True),
        ("times zero", "bf16", "f32", "i32", [8, 13], 0, 0, True),
    ):
        before, d = draw.normal((5, 7), dtype), draw.normal((len(index),), addend)
        after, old, reached = before.copy(), np.zeros(len(index)), -1
        kept = []
        for i, place in enumerate(index):
            if 0 <= place < 35 and place >= reached:
                kept.append(i)
                reached = place
                old[i] = before.flat[place]
        if not put:
            np.add.at(after.reshape(-1), [index[i] for i in kept], f32(alpha) * d[kept])
        else:
            for i in kept:
                after.flat[index[i]] = d[i]
        words = f"W={dtype} D={addend} I={wide} m=5 n=7 p={len(index)} put={put} alpha={alpha}"
        yield case(name, words + " +saved" * saved, {"w": before, "index": np.array(index, dtype=float), "d": d},
                   {"w": after} | ({"saved": old} if saved else {}))


def pairs(x):
    """The places of the two largest of each four, NaN before all, by NumPy's stable sort."""
    four = np.abs(np.asarray(x).reshape(*np.shape(x)[:-1], -1, 4))
    order = np.argsort(-np.where(np.isnan(four), np.inf, four), axis=-1, kind="stable")
    for at in np.argwhere(np.isnan(four).any(-1)):  # Inf and NaN would tie
        group = four[tuple(at)]
        order[tuple(at)] = sorted(range(4), key=lambda i: (not np.isnan(group[i]), -np.nan_to_num(group[i]), i))
    return np.sort(order[..., :2], axis=-1)


def taken(x, places):
    four = np.asarray(x).reshape(*np.shape(x)[:-1], -1, 4)
    return np.take_along_axis(four, places, axis=-1)


def put(values, places):
    four = np.zeros((*places.shape[:-1], 4))
    np.put_along_axis(four, places, values.reshape(places.shape), axis=-1)
    return four.reshape(*four.shape[:-2], -1)


def halves(places):
    """Bytes of indices: two groups each, the first in the lower half."""
    half = places[..., 0] + 4 * places[..., 1]
    return (half[..., 0::2] + 16 * half[..., 1::2]).astype(float)


def elements(draw, shape, dtype):
    return draw.integers(shape, -128, 128) if dtype == "i8" else draw.normal(shape, dtype)


def prune24(draw):
    for dtype, r, n in (("f32", 3, 12), ("bf16", 2, 24), ("f16", 1, 36), ("i8", 3, 16)):
        x = elements(draw, (r, n), dtype)
        mask = put(np.ones(r * n // 2), pairs(x))
        yield case(dtype, f"T={dtype} r={r} n={n} +y +mask", {"x": x}, {"y": np.where(mask, x, 0), "mask": mask})
    x = np.array([[1.0, -1, 1, 1, 0, -0.0, 2, -0.0, np.nan, np.inf, -np.inf, np.nan, 3, -4, 4, -3],
                  [0.0, 0, 0, 0, np.inf, np.nan, 1, np.inf, 1, 2, 3, 4, 4, 3, 2, 1]])
    mask = np.array([[1.0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0],
                     [1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0]])
    yield case("equals and what is not a number", "T=f32 r=2 n=16 +y +mask", {"x": x},
               {"y": np.where(mask, x, 0), "mask": mask})
    yield case("the least integer", "T=i8 r=1 n=4 +y", {"x": np.array([[127.0, -128, -127, 5]])},
               {"y": np.array([[127.0, -128, 0, 0]])})


def sparse24(draw, shape, dtype):
    x = elements(draw, shape, dtype)
    return np.where(put(np.ones(x.size // 2), pairs(x)), x, 0)


def pack24(draw):
    for dtype, r, n in (("f32", 2, 16), ("bf16", 3, 24), ("f16", 1, 40), ("i8", 2, 32)):
        for prune in (0, 1):
            x = elements(draw, (r, n), dtype) if prune else sparse24(draw, (r, n), dtype)
            places = pairs(x)
            yield case(f"{dtype}, prune {prune}", f"T={dtype} r={r} n={n} h={n // 2} q={n // 8} prune={prune}",
                       {"x": x}, {"values": taken(x, places).reshape(r, -1), "indices": halves(places)})
    x = np.array([[0.0, 0, 5, -0.0, 1, 2, 3, 0, 0, 7, -0.0, 8, 0, 0, 0, 0]])
    yield case("too many, and too few", "T=f32 r=1 n=16 h=8 q=2", {"x": x},
               {"values": np.array([[0.0, 5, np.nan, np.nan, 7, 8, 0, 0]]),
                "indices": np.array([[0 + 4 * 2 + 16 * (1 + 4 * 2), 1 + 4 * 3 + 16 * (0 + 4 * 1)]], dtype=float)})


def unpack24(draw):
    for dtype, r, n in (("f32", 2, 16), ("bf16", 3, 24), ("f16", 1, 40), ("i8", 2, 32)):
        x = sparse24(draw, (r, n), dtype)
        places = pairs(x)
        yield case(dtype, f"T={dtype} r={r} n={n} h={n // 2} q={n // 8}",
                   {"values": taken(x, places).reshape(r, -1), "indices": halves(places)}, {"y": x})
    yield case("places in any order, and the same twice", "T=f32 r=1 n=8 h=4 q=1",
               {"values": np.array([[1.0, 2, 3, 4]]), "indices": np.array([[3.0 + 4 * 1 + 16 * (2 + 4 * 2)]])},
               {"y": np.array([[0.0, 2, 0, 1, 0, 0, 4, 0]])})


def matmul_sparse24(draw):
    for name, dtype, out, biased, m, n, k, activation in (
        ("bf16", "bf16", "bf16", "f32", 3, 5, 16, "none"),
        ("bf16 to f32", "bf16", "f32", None, 2, 4, 40, "gelu_erf"),
        ("f16", "f16", "f16", "f16", 4, 3, 24, "silu"),
        ("f32", "f32", "f32", "f32", 1, 6, 32, "relu"),
        ("i8", "i8", "i32", "i32", 3, 4, 24, "relu"),
    ):
        x, w = elements(draw, (m, k), dtype), sparse24(draw, (n, k), dtype)
        places = pairs(w)
        ins = {"x": x, "values": taken(w, places).reshape(n, -1), "indices": halves(places)}
        words = f"T={dtype} O={out} B={biased or 'f32'} m={m} n={n} k={k} h={k // 2} q={k // 8} activation={activation}"
        y = np.array([[math.fsum(x[i] * w[j]) for j in range(n)] for i in range(m)])
        if biased:
            ins["bias"] = draw.integers(n, -9000, 9000) if biased == "i32" else draw.normal(n, biased)
            y, words = y + ins["bias"], words + " +bias"
        yield case(name, words, ins, {"y": ACTIVATIONS[activation](torch.tensor(y)).numpy()})
