# SPDX-License-Identifier: Apache-2.0
"""Collectives by numpy in float64 over the tensors of all ranks: sums by math.fsum, which rounds once, the largest by
numpy.max, which gives NaN if one is; who gets what by transposing, repeating and indexing. Tokens go to experts by
Python's sort of (expert, rank, token, choice), and back by math.fsum. Products in exact arithmetic by Python's
fractions, rounded once: of a layer whose matrix is cut between ranks, the product by the whole matrix. Norms by
PyTorch's function, losses by its cross_entropy and autograd over the classes of all ranks, steps by torch.optim.AdamW
over all parameters; codes, the sums of gradients and of what is normalized by ml_dtypes and numpy in float32."""
import math
from fractions import Fraction

import numpy as np
import torch
import torch.nn.functional as F

from optimizer.oracle import by_chance, stepped
from quantize.oracle import normalized, row_codes
from vectors import FLOATS, case, f32, rounded


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


def all_reduce_rms_norm(draw):
    # name, type, ranks, rows, length, of weight, of residual, eps, weight_offset, rounding before the weight, scale
    for name, dtype, ranks, r, n, weight_type, residual_type, eps, offset, before_weight, scale in (
        ("plain", "f32", 2, 3, 21, None, None, 1e-6, 0, False, 1),
        ("weight and residual", "f32", 4, 2, 35, "f32", "f32", 1e-5, 0, False, 1),
        ("bf16", "bf16", 4, 2, 24, "bf16", "bf16", 1e-6, 0, False, 1),
        ("Gemma, 1 + weight", "bf16", 3, 2, 20, "f32", "f32", 1e-6, 1, False, 1),
        ("f16 rounded before the weight", "f16", 2, 2, 19, "f16", "f32", 1e-2, 0.375, True, 1),
        ("eight ranks, one row", "f32", 8, 1, 9, "f32", None, 1e-6, 0, False, 1),
        ("one rank", "bf16", 1, 3, 11, "f32", "bf16", 1e-6, 0, False, 1),
        ("squares beyond f32", "f32", 2, 2, 13, "f32", "f32", 1e-6, 0, False, 2.0**70),
        ("a subnormal rstd", "f32", 2, 2, 9, None, None, 1e-6, 0, False, 2.0**124),
        ("squares below f32, no eps", "f32", 2, 2, 13, "f32", "f32", -0.0, 0, False, 2.0**-90),
        ("rstd beyond f32, no eps", "f32", 2, 2, 9, None, None, -0.0, 0, False, 2.0**-135),
    ):
        x = draw.normal((ranks, r, n), dtype, scale)
        words = f"T={dtype} ranks={ranks} r={r} n={n} eps={eps} weight_offset={offset} +rstd +residual_out"
        ins, residual, weight = {"x": x}, np.zeros((ranks, r, n)), None
        if residual_type:
            residual = ins["residual"] = draw.normal((ranks, r, n), residual_type, scale)
            words += f" R={residual_type} +residual"
        else:
            words += f" R={dtype}"
        if weight_type:
            weight = ins["weight"] = draw.normal((ranks, n), weight_type)
            words += f" W={weight_type} +weight"
        h = np.array([exact_sum(np.concatenate([x, residual[q][None]])) for q in range(ranks)])
        rstd = torch.rsqrt(torch.tensor(h).pow(2).mean(-1) + f32(eps)).numpy()
        y = F.rms_norm(torch.tensor(h), (n,), eps=f32(eps)).numpy()
        if before_weight:
            y = rounded(y, dtype)
        if weight_type:
            y = y * (weight + f32(offset))[:, None, :]
        yield case(name, words + " rounding=before_weight" * before_weight, ins,
                   {"y": y, "residual_out": h, "rstd": rstd})


def all_to_all_v(draw):
    for name, dtype, index, ranks, m, capacity, n, counts in (
        ("two ranks", "f32", "i32", 2, 5, 6, 3, [[2, 3], [1, 4]]),
        ("rows and room are left", "bf16", "i64", 3, 6, 9, 4, [[1, 0, 2], [3, 3, 0], [0, 0, 5]]),
        ("more than there is room for", "i16", "i32", 3, 4, 5, 2, [[4, 0, 0], [3, 1, 0], [2, 2, 0]]),
        ("more than there are", "f64", "i64", 2, 3, 8, 2, [[2, 2**40], [7, 1]]),
        ("less than none", "u8", "i32", 4, 3, 4, 5, [[-1, 2, -5, 1], [0, 0, 0, 3], [1, 1, 1, 1], [-(2**31), 0, 3, 0]]),
        ("nothing for anyone", "f32", "i32", 2, 3, 2, 3, [[0, 0], [0, 0]]),
        ("one rank", "e4m3", "i64", 1, 4, 6, 3, [[3]]),
    ):
        x, counts = numbers(draw, (ranks, m, n), dtype), np.array(counts, dtype=float)
        cut = np.diff(np.minimum(np.cumsum(np.maximum(counts, 0), axis=1), m), axis=1, prepend=0)
        pieces = [np.split(x[i], np.cumsum(cut[i]).astype(int)) for i in range(ranks)]
        y = np.zeros((ranks, capacity, n))
        for q in range(ranks):
            rows = np.concatenate([pieces[i][q] for i in range(ranks)])[:capacity]
            y[q, :len(rows)] = rows
        yield case(name, f"T={dtype} I={index} ranks={ranks} m={m} capacity={capacity} n={n} +received",
                   {"x": x, "counts": counts}, {"y": y, "received": cut.T})


def through_codes(x, block, codes):
    """What the codes of each block of float32 numbers stand for."""
    x = x.astype(np.float32)
    y = np.empty_like(x)
    for at in range(0, len(x), block):
        part = x[at:at + block]
        if not np.isfinite(part).all():
            y[at:at + block] = np.nan
            continue
        scale = np.abs(part).max() / np.float32(127 if codes == "i8" else 448)
        q = part / scale + np.float32(0) if scale > 0 else part * 0 + 0
        q = np.rint(q) + 0 if codes == "i8" else np.clip(q, -448, 448).astype(FLOATS["e4m3"]).astype(np.float32)
        y[at:at + block] = q * scale
    return y


def all_reduce_quantized(draw):
    for name, dtype, ranks, n, block, codes, scale in (
        ("i8", "f32", 2, 50, 16, "i8", 1),
        ("e4m3", "f32", 4, 50, 16, "e4m3", 1),
        ("bf16", "bf16", 3, 40, 8, "i8", 1),
        ("f16 by e4m3", "f16", 2, 40, 10, "e4m3", 1),
        ("blocks of 128", "f32", 2, 140, 0, "i8", 1),
        ("one rank", "f32", 1, 20, 32, "e4m3", 1),
        ("large", "f32", 2, 24, 8, "i8", 1e37),
        ("small", "f32", 2, 24, 8, "e4m3", 1e-41),
    ):
        x = draw.normal((ranks, n), dtype, scale)
        if scale == 1 and ranks > 1:
            x[0, :8] = 0
            x[1, :8] = np.arange(8) - 3.5 if codes == "i8" else 0
            x[1, 20], x[0, 33] = np.nan, np.inf
        with np.errstate(all="ignore"):
            total = through_codes(x[0], block or 128, codes)
            for own in x[1:]:
                total = total + through_codes(own, block or 128, codes)
            y = rounded(through_codes(total, block or 128, codes).astype(float), dtype)
        words = f"T={dtype} ranks={ranks} n={n} codes={codes}" + (f" block={block}" if block else "")
        yield case(name, words, {"x": x}, {"y": np.repeat(y[None], ranks, axis=0)})


def all_reduce_norm_clip(draw):
    for name, dtype, ranks, n, others, max_norm in (
        ("clipped", "f32", 2, 20, 0, 1),
        ("within the limit", "f32", 3, 9, 0, 100),
        ("no limit", "bf16", 2, 12, 0, 0),
        ("with others", "bf16", 4, 10, 3, 0.01),
        ("with others, f16", "f16", 2, 17, 1, 2.5),
        ("eight ranks", "f32", 8, 5, 2, 2),
        ("nothing but zeros", "f32", 2, 9, 0, 1),
        ("nothing but others", "f32", 3, 0, 5, 0.5),
        ("one rank", "f16", 1, 11, 0, 0.25),
    ):
        x = draw.normal((ranks, n), dtype) * (name != "nothing but zeros")
        squares = [v * v for v in x.reshape(-1)]
        ins, words = {"x": x}, f"T={dtype} ranks={ranks} n={n} +norm +coefficient"
        if others:
            ins["other_squares"] = draw.uniform((ranks, others), 0, 50, "f64")
            squares += list(ins["other_squares"].reshape(-1))
            words += f" g={others} +other_squares"
        norm = math.sqrt(math.fsum(squares))
        coefficient = min(1.0, f32(max_norm) / norm) if max_norm and norm else 1.0
        outs = {"norm": np.full((ranks, 1), norm), "coefficient": np.full((ranks, 1), coefficient)}
        if n:
            outs, words = {"y": coefficient * x} | outs, words + " +y"
        yield case(name, words + (f" max_norm={max_norm}" if max_norm else ""), ins, outs)


def vocab_parallel_cross_entropy(draw):
    for name, dtype, narrow, label_type, ranks, r, v, smoothing, z_loss, scale, ignored, rows in (
        ("two ranks", "f32", "f32", "i64", 2, 4, 19, 0, 0, 1, -100, ()),
        ("ignored rows", "f32", "f32", "i32", 3, 5, 9, 0, 0, 1, -100, (0, 3)),
        ("smoothing, an ignored label that is a class", "f32", "f32", "i64", 2, 5, 13, 0.1, 0, 1, 3, (1,)),
        ("bf16, z-loss", "bf16", "bf16", "i64", 4, 3, 21, 0, 0.01, 1, -100, ()),
        ("f16, scaled", "f16", "f16", "i32", 2, 4, 30, 0, 0, 0.7, -100, (2,)),
        ("all at once", "bf16", "bf16", "i32", 8, 4, 11, 0.9, 0.01, -2, 7, (0,)),
        ("gradient in bf16", "f32", "bf16", "i64", 3, 3, 10, 0.1, 0, 1, -100, ()),
        ("one rank", "f32", "f32", "i64", 1, 3, 12, 0, 1e-4, 1, -100, ()),
    ):
        logits = draw.normal((ranks, r, v), dtype, scale=2)
        labels = draw.integers((r,), 0, ranks * v - 1).astype(int)
        labels[-1] = ranks * v - 1
        labels[labels == ignored] = 1
        labels[list(rows)] = ignored
        dloss = draw.normal((ranks, r))
        if name == "two ranks":
            logits[1, 0, 4] = -np.inf  # a class of probability 0
        x = torch.tensor(np.concatenate(list(logits), 1), requires_grad=True)
        z, kept = f32(scale) * x, torch.tensor(labels != ignored)
        lse = torch.logsumexp(z, -1)
        loss = F.cross_entropy(z, torch.tensor(labels), reduction="none", label_smoothing=f32(smoothing),
                               ignore_index=ignored)
        loss = torch.where(kept, loss + (f32(z_loss) * lse**2 if z_loss else 0), 0.0)
        dlogits = np.zeros(logits.shape)
        for q in range(ranks):
            dx, = torch.autograd.grad(loss, x, torch.tensor(dloss[q]), retain_graph=True)
            dlogits[q] = torch.where(kept[:, None], dx, 0.0).numpy()[:, q * v:(q + 1) * v]
        words = f"T={dtype} G={narrow} L={label_type} ranks={ranks} r={r} v={v} label_smoothing={smoothing} " \
                f"z_loss={z_loss} logit_scale={scale}"
        if ignored != -100:
            words += f" ignore_index_set=1 ignore_index={ignored}"
        every = np.ones((ranks, 1))
        yield case(name, words + " +lse +dloss +dlogits",
                   {"logits": logits, "labels": np.tile(labels, (ranks, 1)), "dloss": dloss},
                   {"loss": every * loss.detach().numpy(), "lse": every * lse.detach().numpy(), "dlogits": dlogits})


def adamw_sharded(draw):
    for name, dtype, grads, moments, copy, ranks, n, p, step, weight_decay, max_norm, scale, found in (
        ("two ranks", "f32", "f32", "f32", "f32", 2, 34, 17, 2, 0.1, 0, None, None),
        ("the last part is shorter", "f32", "bf16", "f32", "bf16", 3, 25, 9, 1000, 0.01, 0, None, None),
        ("parts that are empty", "f32", "f32", "f32", "f16", 4, 5, 3, 3, 0.1, 0, None, None),
        ("a mean", "f32", "f16", "f32", "f16", 4, 24, 6, 7, 0, 0, 0.25, None),
        ("clipped", "f32", "f32", "f32", "bf16", 2, 21, 16, 2, 0.1, 1, None, None),
        ("a mean, clipped", "bf16", "bf16", "bf16", "bf16", 8, 20, 3, 5, 0.1, 0.5, 0.125, None),
        ("within the limit", "f16", "f32", "f32", "f16", 3, 18, 6, 12, 0.01, 1000, None, None),
        ("skipped for one rank", "f32", "f32", "f32", "bf16", 3, 14, 5, 2, 0.1, 1, None, (0, np.nan, 0)),
        ("nothing found", "f32", "f32", "f32", "f32", 2, 9, 6, 2, 0.1, 0, None, (0, 0)),
        ("by chance", "bf16", "f32", "f32", "bf16", 3, 40, 14, 3, 0.1, 0, None, None),
        ("one rank", "f32", "bf16", "bf16", "bf16", 1, 15, 15, 1, 0.1, 2, None, None),
    ):
        param, m, v = (draw.normal(ranks * p, t) for t in (dtype, moments, moments))
        grad, v = draw.normal((ranks, n), grads, scale=2), np.abs(v)
        g = np.float32(grad[0])
        for own in grad[1:]:
            g = g + np.float32(own)
        g = (g if scale is None else g * np.float32(scale)).astype(np.float64)
        norm = math.sqrt(math.fsum(x * x for x in g))
        after = stepped(param[:n], g * min(1, f32(max_norm) / norm) if max_norm else g, m[:n].copy(), v[:n].copy(),
                        step, 1e-2, 0.9, 0.95, 1e-8, weight_decay)
        words = f"T={dtype} G={grads} S={moments} C={copy} ranks={ranks} n={n} p={p} lr=0.01 beta2=0.95 +norm " \
                f"weight_decay={weight_decay} step={step}"
        if max_norm:
            words += f" max_norm={max_norm}"
        if name == "by chance":  # the stream 7 + 2^56 q of rank q
            words += " stochastic=1 seed=12345678901 stream=7"
            parts = [by_chance(after[0][q * p:(q + 1) * p], 12345678901, 7 + (q << 56)) for q in range(ranks)]
            after = np.concatenate(parts), *after[1:]
        ins = {"param": param, "grad": grad, "m": m, "v": v}
        if scale is not None:
            ins["grad_scale"], words = np.full((ranks, 1), scale), words + " +grad_scale"
        if found:
            ins["found_inf"], words = np.array(found, dtype=float)[:, None], words + " +found_inf"
            if any(x != 0 for x in found):  # torch.amp.GradScaler: the optimizer's step is left out
                after = param[:n], m[:n], v[:n]
        outs = {x: np.concatenate((new, ins[x][n:])) for x, new in zip(("param", "m", "v"), after)}
        outs |= {"copy": np.tile(after[0], (ranks, 1)), "norm": np.full((ranks, 1), norm)}
        for x in ("param", "m", "v"):
            ins[x], outs[x] = ins[x].reshape(ranks, p), outs[x].reshape(ranks, p)
        yield case(name, words, ins, outs)
    ranks, n, p, lr, step = 2, 11, 6, 0.1, 2**40 + 1
    param, m, v, grad = draw.normal(ranks * p), draw.normal(ranks * p), np.abs(draw.normal(ranks * p)), draw.normal(n)
    after = stepped(param[:n], grad * 2, m[:n].copy(), v[:n].copy(), step, lr, 0.9, 0.999, 1e-8, 0)
    ins = {"param": param, "grad": np.tile(grad, (ranks, 1)), "m": m, "v": v,
           "lr_tensor": np.full((ranks, 1), f32(lr)), "step_tensor": np.full((ranks, 1), step)}
    outs = {x: np.concatenate((new, ins[x][n:])).reshape(ranks, p) for x, new in zip(("param", "m", "v"), after)}
    for x in ("param", "m", "v"):
        ins[x] = ins[x].reshape(ranks, p)
    yield case("lr and step in tensors", f"T=f32 G=f32 S=f32 C=bf16 ranks={ranks} n={n} p={p} +lr_tensor +step_tensor",
               ins, outs | {"copy": np.tile(after[0], (ranks, 1))})


def all_reduce_rms_norm_quantize(draw):
    for name, dtype, other, weight_type, code_type, scale_type, ranks, r, k, groups, eps, offset, size in (
        ("two ranks", "f32", "f32", "f32", "i8", "f32", 2, 2, 24, 1, 1e-6, 0, 1),
        ("by groups, bf16", "bf16", "bf16", "bf16", "i8", "f32", 4, 2, 24, 3, 1e-6, 0, 1),
        ("e4m3", "f16", "f32", "f32", "e4m3", "f32", 3, 3, 16, 2, 1e-5, 1, 1),
        ("e5m2", "f32", "f32", None, "e5m2", "bf16", 2, 2, 16, 2, -0.0, 0, 1),
        ("mxfp8", "bf16", "bf16", "f32", "e4m3", "e8m0", 8, 1, 32, 2, 1e-6, 0, 1),
        ("mxfp8 upward", "bf16", None, "bf16", "e5m2", "e8m0", 2, 2, 16, 2, 1e-6, 0, 1),
        ("powers in f16", "f16", None, "f16", "e4m3", "f16", 3, 2, 16, 2, 1e-6, 0, 1),
        ("large", "f32", "f32", "f32", "i8", "f32", 2, 2, 12, 1, 1e-6, 0, 1e37),
        ("small", "f32", None, "f32", "e4m3", "f32", 2, 2, 12, 2, -0.0, 0, 1e-40),
        ("one rank", "bf16", "f32", None, "i8", "f32", 1, 2, 16, 2, 0.5, 0, 1),
    ):
        ins, outs = {"x": draw.normal((ranks, r, k), dtype, scale=size)}, {"codes": [], "scales": [], "y": []}
        if other:
            ins["residual"] = draw.normal((ranks, r, k), other, scale=size)
            outs["residual_out"] = []
            if r > 2:
                ins["residual"][1, 2, 1] = np.inf
        if weight_type:
            ins["weight"] = draw.normal((ranks, k), weight_type)
        total = ins["x"][0].astype(np.float32)
        for own in ins["x"][1:]:
            total = total + own.astype(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            for q in range(ranks):
                h = total + ins["residual"][q].astype(np.float32) if other else total
                y = normalized(h, ins["weight"][q] if weight_type else None, eps, offset)
                code, scale = row_codes(y, groups, code_type, scale_type, "upward" in name, "powers" in name)
                for place, value in (("codes", code), ("scales", scale), ("y", rounded(y, dtype))):
                    outs[place].append(value)
                if other:
                    outs["residual_out"].append(rounded(h, other))
        words = f"T={dtype} R={other or dtype} W={weight_type or dtype} C={code_type} S={scale_type} ranks={ranks} " \
                f"r={r} k={k} groups={groups} eps={eps} weight_offset={offset} +y"
        words += " upward=1" * ("upward" in name) + " powers=all" * ("powers" in name)
        words += " +weight" * bool(weight_type) + " +residual +residual_out" * bool(other)
        yield case(name, words, ins, {place: np.stack(values) for place, values in outs.items()})
