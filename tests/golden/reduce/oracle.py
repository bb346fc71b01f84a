# SPDX-License-Identifier: Apache-2.0
"""embedding and its gradient by torch.nn.functional.embedding and autograd; sums by math.fsum, which rounds once;
topk by torch.sort, which is stable if asked to be."""
import math

import numpy as np
import torch
import torch.nn.functional as F

from vectors import case


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
