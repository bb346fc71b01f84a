# SPDX-License-Identifier: Apache-2.0
"""embedding and its gradient by torch.nn.functional.embedding and autograd; sums by math.fsum, which rounds once;
topk and argsort by torch.sort, which is stable if asked to be; argmax by numpy.argmax; gather_rows by indexing and
scatter_add_rows by math.fsum of what numpy.flatnonzero finds; block_mean by math.fsum of slices; segment_reduce by
torch's own reductions of slices, and its gradient by autograd."""
import fractions
import functools
import math

import numpy as np
import torch
import torch.nn.functional as F

from vectors import case, rounded


def looked_up(draw, dtype, v, n, ids):
    table = draw.normal((v, n), dtype)
    if dtype != "f64":
        table[0, 0], table[1, 1], table[2, 2] = -0.0, np.inf, np.nan
    y = F.embedding(torch.tensor(ids), torch.tensor(table)).numpy()
    return table, y


def embedding(draw):
    ids = np.array([3, 0, 6, 3, 3, 1, 2, 6])
    for dtype, label_type in (("f32", "i32"), ("bf16", "i64"), ("f16", "i32"), ("f64", "i64")):
        table, y = looked_up(draw, dtype, 7, 19, ids)
        yield case(dtype, f"T={dtype} I={label_type} v=7 n=19 t=8", {"table": table, "ids": ids}, {"y": y})


def embedding_backward(draw):
    for name, dtype, wide, label_type, accumulate, ids, *padding in (
        ("repeated ids", "f32", "f32", "i64", 0, [3, 0, 6, 3, 3, 1, 2, 6]),
        ("added to what was there", "bf16", "f32", "i32", 1, [5, 5, 5, 0, 6]),
        ("narrow sums", "bf16", "bf16", "i64", 1, [1, 2, 1, 2, 1, 2, 1]),
        ("overwritten", "f16", "f16", "i32", 0, [6, 0, 0]),
        ("each id alike", "f16", "f32", "i32", 0, [4] * 9),
        ("padding", "f32", "f32", "i64", 0, [3, 0, 6, 3, 3, 1, 2, 6], 3),
        ("padding with what was there", "bf16", "f32", "i32", 1, [5, 5, 0, 5, 0, 6], 5),
        ("the first row is padding", "f16", "f16", "i32", 1, [0, 0, 1, 0], 0),
    ):
        dy, before, ids = draw.normal((len(ids), 21), dtype), draw.normal((7, 21), wide), np.array(ids)
        table = torch.zeros(7, 21, dtype=torch.float64, requires_grad=True)
        F.embedding(torch.tensor(ids), table, *padding).backward(torch.tensor(dy))
        after = table.grad.numpy() + (before if accumulate else 0)
        words = f"T={dtype} W={wide} I={label_type} t={len(ids)} v=7 n=21 accumulate={accumulate}"
        if padding:
            dy, words = np.where((ids == padding)[:, None], np.nan, dy), f"{words} padding_index_set=1 "
            words += f"padding_index={padding[0]}"
        yield case(name, words, {"dy": dy, "ids": ids, "dtable": before}, {"dtable": after})


def reduce_sum(draw):
    for name, dtype, wide, r, n, words in (
        ("both", "f32", "f32", 9, 37, " +row_sums +column_sums"),
        ("rows", "bf16", "f32", 5, 40, " +row_sums"),
        ("columns", "f16", "f16", 11, 20, " +column_sums"),
        ("both, narrow", "bf16", "bf16", 6, 33, " +row_sums +column_sums"),
        ("sums of nothing", "f32", "f32", 4, 0, " +row_sums +column_sums"),
    ):
        x, outs = draw.normal((r, n), dtype), {}
        if "row_sums" in words:
            outs["row_sums"] = np.array([math.fsum(row) for row in x])
        if "column_sums" in words:
            outs["column_sums"] = np.array([math.fsum(column) for column in x.T])
        yield case(name, f"T={dtype} S={wide} r={r} n={n}{words}", {"x": x}, outs)


def topk(draw):
    for name, dtype, wide, r, n, k, smallest in (
        ("largest", "f32", "i32", 3, 40, 7, 0),
        ("smallest", "f32", "i64", 3, 40, 7, 1),
        ("all of a row", "bf16", "i32", 2, 19, 19, 0),
        ("all of a row, from the smallest", "f16", "i32", 2, 19, 19, 1),
        ("equals", "bf16", "i32", 4, 60, 20, 0),
        ("equals, smallest", "f16", "i64", 4, 60, 20, 1),
        ("one of one", "f32", "i32", 2, 1, 1, 0),
    ):
        x = draw.integers((r, n), -2, 3) if "equals" in name else draw.normal((r, n), dtype)
        if n > 6:
            x[0, :5] = np.nan, -0.0, 0.0, np.inf, -np.inf
            x[1, 3:6] = np.nan, 0.0, np.nan
        values, indices = torch.sort(torch.tensor(x), dim=-1, descending=not smallest, stable=True)
        words = f"T={dtype} I={wide} r={r} n={n} k={k} smallest={smallest} +values +indices"
        yield case(name, words, {"x": x}, {"values": values[:, :k].numpy(), "indices": indices[:, :k].numpy()})


def argsort(draw):
    for name, dtype, wide, r, n, descending in (
        ("ascending", "f32", "i32", 3, 40, 0),
        ("descending", "f32", "i64", 3, 40, 1),
        ("bf16", "bf16", "i64", 2, 33, 0),
        ("f16, descending", "f16", "i32", 2, 33, 1),
        ("equals", "bf16", "i32", 4, 60, 0),
        ("equals, descending", "f16", "i64", 4, 60, 1),
        ("integers", "i32", "i32", 2, 50, 0),
        ("long integers, descending", "i64", "i32", 2, 50, 1),
        ("equal integers", "i64", "i64", 2, 70, 0),
        ("a long row", "f32", "i32", 1, 700, 0),
        ("one of one", "f32", "i32", 2, 1, 1),
    ):
        if "equal" in name:
            x = draw.integers((r, n), -2, 3)
        elif "integers" in name:
            x = np.floor(draw.uniform((r, n), -1, 1, "f64") * (2.0**52 if "long" in name else 2.0**31 - 1))
            x[0, :3] = 0, -1, 1
        else:
            x = draw.normal((r, n), dtype)
        if n > 6 and "integers" not in name:
            x[0, :5] = np.nan, -0.0, 0.0, np.inf, -np.inf
            x[-1, 3:6] = np.nan, 0.0, np.nan
        values, indices = torch.sort(torch.tensor(x), dim=-1, descending=bool(descending), stable=True)
        words = f"T={dtype} I={wide} r={r} n={n} descending={descending} +values"
        yield case(name, words, {"x": x}, {"indices": indices.numpy(), "values": values.numpy()})


def argmax(draw):
    for name, dtype, wide, r, n, smallest in (
        ("largest", "f32", "i32", 3, 40, 0),
        ("smallest", "f32", "i64", 3, 40, 1),
        ("equals", "bf16", "i32", 5, 60, 0),
        ("equals, smallest", "f16", "i64", 5, 60, 1),
        ("one of one", "f16", "i32", 2, 1, 0),
    ):
        x = draw.integers((r, n), -2, 3) if "equals" in name else draw.normal((r, n), dtype)
        if n > 6:
            x[0, 3:8] = -np.inf, np.nan, 0.0, np.nan, np.inf
            x[1, 5:7] = -0.0, 0.0
            x[2] = np.nan
        # NumPy takes NaN for the largest, and for the smallest too.
        chosen = np.array([np.argmin(row) if smallest and np.isnan(row).all() else
                           np.nanargmin(row) if smallest else np.argmax(row) for row in x])
        words = f"T={dtype} I={wide} r={r} n={n} smallest={smallest} +values"
        yield case(name, words, {"x": x}, {"indices": chosen, "values": x[np.arange(r), chosen]})


def gather_rows(draw):
    far = {"i32": 2**31 - 1, "i64": 2**32 + 1}
    for name, dtype, wide, n, pad, index in (
        ("repeated", "f32", "i32", 19, 0, [3, 0, 6, 3, 3, 1, 2, 6]),
        ("out of range", "bf16", "i64", 5, 0, [3, -1, 7, 0, -2, far["i64"]]),
        ("padded", "f16", "i32", 9, 1, [-1, 5, -1, 7, -2, far["i32"]]),
        ("integers", "i8", "i64", 7, 0, [6, 7, -1, 2]),
        ("padded integers", "i32", "i32", 6, 1, [6, 7, -1, 2]),
        ("codes", "e4m3", "i32", 11, 0, [1, 7, 0, -1]),
        ("bytes", "u8", "i64", 3, 0, [-1, 4, 4]),
        ("wide", "f64", "i32", 4, 1, [-1, 4, 8]),
    ):
        whole = dtype in ("i8", "u8", "i32")
        small = whole or dtype == "e4m3"
        x = draw.integers((7, n), 0 if dtype == "u8" else -9, 10) if small else draw.normal((7, n), dtype)
        if not whole:
            x[0, 0], x[1, 1] = -0.0, np.nan
        y = np.full((len(index), n), 0.0 if whole else np.nan)
        for i, at in enumerate(index):
            if at == -1 and pad:
                y[i] = 0
            elif at in range(7):
                y[i] = x[at]
        yield case(name, f"T={dtype} I={wide} p={len(index)} m=7 n={n} pad={pad}",
                   {"x": x, "index": np.array(index)}, {"y": y})


def scatter_add_rows(draw):
    for name, dtype, wide, label_type, overwrite, weighted, index in (
        ("repeated", "f32", "f32", "i64", 1, 0, [3, 0, 6, 3, 3, 1, 2, 6]),
        ("added to what was there", "bf16", "f32", "i32", 0, 1, [5, 5, 5, 0, 6]),
        ("narrow sums", "bf16", "bf16", "i64", 0, 0, [1, 2, 1, 2, 1, 2, 1]),
        ("weights", "f16", "f16", "i32", 1, 1, [6, 0, 0, 6, 6]),
        ("out of range", "f16", "f32", "i64", 0, 1, [4, -1, 7, 4, 2**32 + 1, -(2**32), 4]),
        ("nothing left", "f32", "f32", "i32", 1, 1, [-1, 7]),
    ):
        index = np.array(index)
        x, before = draw.normal((len(index), 13), dtype), draw.normal((7, 13), wide)
        weight = draw.normal((len(index),), "f32")
        x = np.where(((index < 0) | (index > 6))[:, None], np.nan, x)
        after = np.zeros((7, 13)) if overwrite else before.copy()
        for row in range(7):
            for j in range(13):
                terms = [x[i, j] * (weight[i] if weighted else 1) for i in np.flatnonzero(index == row)]
                after[row, j] = math.fsum([after[row, j], *terms])
        ins = {"x": x, "index": index, "y": before}
        words = f"T={dtype} W={wide} I={label_type} p={len(index)} m=7 n=13 overwrite={overwrite}"
        if weighted:
            ins["weight"], words = weight, words + " +weight"
        yield case(name, words, ins, {"y": after})


def block_mean(draw):
    for name, dtype, wide, shape, blocks, size in (
        ("whole blocks", "f32", "f32", (12, 9), 3, 4),
        ("a short last one", "bf16", "f32", (13, 17), 4, 4),
        ("narrow", "f16", "f16", (10, 8), 2, 7),
        ("in batches", "bf16", "bf16", (3, 11, 5), 4, 3),
        ("blocks beyond the end", "f32", "f32", (2, 7, 6), 5, 3),
        ("rows beyond the blocks", "f16", "f32", (20, 5), 2, 6),
        ("single rows", "f32", "f32", (5, 3), 5, 1),
        ("no rows", "f32", "f32", (0, 4), 2, 3),
    ):
        x = draw.normal(shape, dtype)
        if name == "rows beyond the blocks":
            x[12:] = np.nan
        y = np.zeros((*shape[:-2], blocks, shape[-1]))
        for i in np.ndindex(y.shape):
            rows = x[(*i[:-2], slice(i[-2] * size, (i[-2] + 1) * size), i[-1])]
            if len(rows):
                y[i] = math.fsum(rows) / len(rows)
        dims = f"s={shape[-2]} n={shape[-1]}" + (f" b={shape[0]}" if len(shape) > 2 else "")
        yield case(name, f"T={dtype} W={wide} {dims} blocks={blocks} size={size}", {"x": x}, {"y": y})


def most_of(slice_of_rows):
    """The first that has it gets the gradient, which torch.max does not promise."""
    places = slice_of_rows.detach().numpy().argmax(0)
    return slice_of_rows[places, range(slice_of_rows.shape[1])]


SEGMENTS = {  # the reduction, and what an empty segment has
    "sum": (lambda x: x.sum(0), 0.0), "mean": (lambda x: x.mean(0), 0.0),
    "max": (most_of, -np.inf), "min": (lambda x: -most_of(-x), np.inf),
    "logsumexp": (lambda x: torch.logsumexp(x, 0), -np.inf), "product": (lambda x: x.prod(0), 1.0)}


def segmented(draw, equals):
    for kind, dtype, places, offsets in (
        ("sum", "f32", "i32", [0, 3, 3, 9, 10, 17]), ("sum", "bf16", "i64", [2, 6, 6, 11]),
        ("mean", "f32", "i32", [0, 1, 1, 8, 11]), ("mean", "f16", "i32", [0, 12]),
        ("max", "f32", "i32", [0, 4, 4, 10, 13]), ("max", "bf16", "i64", [1, 8, 12]),
        ("min", "f32", "i32", [0, 4, 4, 10, 13]), ("min", "f16", "i64", [0, 0, 9]),
        ("logsumexp", "f32", "i32", [0, 5, 5, 6, 14]), ("logsumexp", "bf16", "i32", [3, 9, 12]),
        ("product", "f32", "i32", [0, 5, 5, 6, 14]), ("product", "f16", "i64", [0, 2, 7]),
    ):
        p, n = offsets[-1] + 2, 11
        x = draw.normal((p, n), dtype, scale=3 if kind == "logsumexp" else 1)
        if kind in ("max", "min") and equals:
            x = np.round(x)
        if kind == "product":
            x[0, 0] = x[1, 1] = x[2, 1] = 0
        x = torch.tensor(x, requires_grad=True)
        reduce, empty = SEGMENTS[kind]
        rows = [reduce(x[a:b]) if b > a else torch.full((n,), empty, dtype=torch.float64)
                for a, b in zip(offsets, offsets[1:])]
        name = f"{kind} {dtype}"
        words = f"T={dtype} I={places} p={p} e={len(offsets) - 1} n={n} kind={kind}"
        yield name, words, dtype, x, np.array(offsets, dtype=np.float64), torch.stack(rows)


def segment_reduce(draw):
    for name, words, _, x, offsets, y in segmented(draw, False):
        yield case(name, words, {"x": x.detach().numpy(), "offsets": offsets}, {"y": y.detach().numpy()})
    x = np.array([[1.0, np.nan, np.inf, -np.inf, 1e38], [2.0, 3.0, 1.0, -np.inf, 1e38]])
    want = {"sum": [3, np.nan, np.inf, -np.inf, 2 * float(np.float32(1e38))], "max": [2, np.nan, np.inf, -np.inf, 1e38],
            "min": [1, np.nan, 1, -np.inf, 1e38], "logsumexp": [2 + math.log1p(math.exp(-1)), np.nan, np.inf, -np.inf,
                                                                float(np.float32(1e38)) + math.log(2)]}
    x = np.float32(x).astype(np.float64)
    for kind, y in want.items():
        y = [float(np.float32(v)) if v == 1e38 else v for v in y]
        yield case(f"{kind} of what is not finite", f"T=f32 I=i32 p=2 e=1 n=5 kind={kind}",
                   {"x": x, "offsets": np.array([0.0, 2.0])}, {"y": np.array([y])})
    x = rounded(np.array([[1e30, 1e-30]] * 4 + [[1e-30, 1e30]] * 4), "f32")
    yield case("a product that f32 has only at its end", "T=f32 I=i32 p=8 e=1 n=2 kind=product",
               {"x": x, "offsets": np.array([0.0, 8.0])}, {"y": np.array([[float(mp_product(c)) for c in x.T]])})


def mp_product(values):
    return functools.reduce(lambda a, b: a * b, [fractions.Fraction(float(v)) for v in values])


def segment_reduce_backward(draw):
    for name, words, dtype, x, offsets, y in segmented(draw, True):
        dy = draw.normal(y.shape, dtype)
        y.backward(torch.tensor(dy))
        dx = x.grad.numpy()
        yield case(name, words, {"dy": dy, "x": x.detach().numpy(), "offsets": offsets}, {"dx": dx})
