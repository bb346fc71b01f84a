# SPDX-License-Identifier: Apache-2.0
"""Products of largest sums by NumPy's own additions and reductions; alignments by Biopython's PairwiseAligner, and
where they end by Gotoh's recurrences on the whole matrix, which must have Biopython's score."""
import numpy as np
from Bio.Align import PairwiseAligner
from Bio.Align.substitution_matrices import Array

from vectors import case

WRAP = 2**32


def wrapped(x):
    return (np.asarray(x, dtype=np.int64) + 2**31) % WRAP - 2**31


def max_plus_matmul(draw):
    for name, dtype, g, m, n, k, minimum, with_c, with_indices in (
        ("largest", "f32", 1, 3, 5, 4, 0, False, False),
        ("smallest with c", "f32", 2, 4, 3, 6, 1, True, True),
        ("a graph's lengths", "i32", 1, 7, 7, 7, 1, True, True),
        ("integers", "i32", 2, 3, 70, 5, 0, False, True),
        ("f64", "f64", 1, 5, 6, 9, 0, True, True),
        ("nothing to add", "f32", 1, 2, 3, 0, 0, False, True),
        ("nothing to add, integers", "i32", 1, 2, 2, 0, 1, False, True),
        ("many equals", "f32", 1, 4, 8, 33, 0, True, True),
    ):
        if dtype == "i32":
            a, b, c = (np.round(draw.uniform(shape, -50, 50)) + 0.0 for shape in ((g, m, k), (g, k, n), (g, m, n)))
        elif name == "many equals":
            a, b, c = (np.round(draw.uniform(shape, -2, 2)) + 0.0 for shape in ((g, m, k), (g, k, n), (g, m, n)))
        else:
            a, b, c = (draw.normal(shape, dtype) for shape in ((g, m, k), (g, k, n), (g, m, n)))
        kind = np.float64 if dtype == "f64" else np.float32 if dtype == "f32" else np.int64
        sums = a.astype(kind)[:, :, :, None] + b.astype(kind)[:, None, :, :]
        sums = wrapped(sums) if dtype == "i32" else sums.astype(np.float64)
        start = (2**31 - 1 if minimum else -(2**31)) if dtype == "i32" else (np.inf if minimum else -np.inf)
        first = c[:, :, None, :] if with_c else np.full((g, m, 1, n), start)
        every = np.concatenate([first, sums], axis=2)
        d = every.min(2) if minimum else every.max(2)
        where = every.argmin(2) if minimum else every.argmax(2)
        outs = {"d": d.astype(np.float64)} | ({"indices": where - 1.0} if with_indices else {})
        words = f"T={dtype} g={g} m={m} n={n} k={k} minimum={minimum}"
        yield case(name, words + " +c" * with_c + " +indices" * with_indices,
                   {"a": a, "b": b} | ({"c": c} if with_c else {}), outs)
    inf, nan = np.inf, np.nan
    yield case("what is not a number", "T=f32 g=1 m=2 n=2 k=2 +indices",
               {"a": np.array([[[inf, 1], [nan, 2]]]), "b": np.array([[[-inf, 3], [5, nan]]])},
               {"d": np.array([[[nan, nan], [nan, nan]]]), "indices": np.array([[[0., 1], [0, 0]]])})
    yield case("sums that wrap around", "T=i32 g=1 m=1 n=2 k=1",
               {"a": np.array([[[2147483647.]]]), "b": np.array([[[1., -1]]])},
               {"d": np.array([[[-2147483648., 2147483646]]])})


def biopython(query, target, scores, gap_open, gap_extend, kind):
    letters = "ACDEFGHIKLMNPQRSTVWY"[:len(scores)]
    matrix = Array(letters, dims=2)
    for i, x in enumerate(letters):
        for j, y in enumerate(letters):
            matrix[x, y] = float(scores[i, j])
    aligner = PairwiseAligner(mode="local" if kind == "local" else "global")
    aligner.substitution_matrix = matrix
    aligner.open_gap_score, aligner.extend_gap_score = -gap_open, -gap_extend
    if kind == "within":  # gaps beside the query, in the target's ends, cost nothing
        for end in ("left", "right"):
            for gap in ("deletion",):
                setattr(aligner, f"open_{end}_{gap}_score", 0)
                setattr(aligner, f"extend_{end}_{gap}_score", 0)
    return aligner.score("".join(letters[int(j)] for j in target), "".join(letters[int(i)] for i in query))


def gotoh(query, target, scores, gap_open, gap_extend, kind):
    """The best score and its ends: of equals the smallest j, then the smallest i."""
    m, n = len(query), len(target)
    none = -(2**30)
    h, e, f = (np.full((m + 1, n + 1), none, dtype=np.int64) for _ in range(3))
    gap = [0] + [-gap_open - (length - 1) * gap_extend for length in range(1, max(m, n) + 1)]
    for i in range(m + 1):
        h[i, 0] = 0 if kind == "local" else gap[i]
    for j in range(n + 1):
        h[0, j] = gap[j] if kind == "global" else 0
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            e[i, j] = max(h[i, j - 1] - gap_open, e[i, j - 1] - gap_extend)
            f[i, j] = max(h[i - 1, j] - gap_open, f[i - 1, j] - gap_extend)
            h[i, j] = max(h[i - 1, j - 1] + scores[int(query[i - 1]), int(target[j - 1])], e[i, j], f[i, j])
            if kind == "local":
                h[i, j] = max(h[i, j], 0)
    if kind == "global":
        return h[m, n], m, n
    if kind == "within":
        j = int(np.argmax(h[m]))
        return h[m, j], m, j
    j = int(np.argmax(h.max(0)))
    i = int(np.argmax(h[:, j]))
    return (h[i, j], i, j) if h[i, j] > 0 else (0, 0, 0)


def smith_waterman(draw):
    for name, b, m, n, s, gap_open, gap_extend, kind, lengths in (
        ("local", 3, 9, 12, 4, 5, 1, "local", False),
        ("global", 3, 8, 11, 4, 4, 2, "global", False),
        ("within", 3, 7, 15, 4, 3, 1, "within", False),
        ("proteins", 2, 30, 41, 20, 11, 1, "local", False),
        ("long gaps", 2, 12, 30, 4, 2, 0, "global", False),
        ("lengths", 4, 10, 9, 5, 6, 1, "local", True),
        ("lengths, global", 4, 6, 13, 5, 6, 1, "global", True),
        ("lengths, within", 4, 6, 13, 5, 6, 3, "within", True),
    ):
        query, target = np.floor(draw.uniform((b, m), 0, s)), np.floor(draw.uniform((b, n), 0, s))
        target[0, 1:m // 2] = query[0, 1:m // 2]
        scores = np.round(draw.uniform((s, s), -4, 2))
        scores = np.round((scores + scores.T) / 2) + 4 * np.eye(s)
        most = np.stack([np.floor(draw.uniform((b,), 1, m + 1)), np.floor(draw.uniform((b,), 1, n + 1))])
        if not lengths:
            most = np.array([[m] * b, [n] * b], dtype=float)
        best, ends = np.zeros(b), np.zeros((b, 2))
        for k in range(b):
            q, t = query[k, :int(most[0, k])], target[k, :int(most[1, k])]
            score, i, j = gotoh(q, t, scores, gap_open, gap_extend, kind)
            best[k], ends[k] = biopython(q, t, scores, gap_open, gap_extend, kind), (i, j)
            assert score == best[k], (name, k, score, best[k])
        ins = {"query": query, "target": target, "scores": scores}
        words = f"T=u8 b={b} m={m} n={n} s={s} gap_open={gap_open} gap_extend={gap_extend} alignment={kind} +ends"
        if lengths:
            ins, words = ins | {"queries": most[0], "targets": most[1]}, words + " +queries +targets"
        yield case(name, words, ins, {"best": best, "ends": ends})
    yield case("letters that the table has not", "T=u8 b=1 m=3 n=3 s=2 gap_open=2 gap_extend=1 +ends",
               {"query": np.array([[0., 7, 1]]), "target": np.array([[0., 7, 1]]),
                "scores": np.array([[3., -1], [-1, 3]])},
               {"best": np.array([3.]), "ends": np.array([[1., 1]])})
