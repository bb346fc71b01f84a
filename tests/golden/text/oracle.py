# SPDX-License-Identifier: Apache-2.0
"""Counts by NLTK's modified_precision and closest_ref_length; scores by NLTK's sentence_bleu and corpus_bleu of the
sentences, and by sacreBLEU's compute_bleu of their counts. NLTK leaves out the logarithm of a precision that its method
4 cannot smooth, that of a single token; ours is then 0, so those sentences have two at least."""
import warnings

import numpy as np
from nltk.translate.bleu_score import (SmoothingFunction, closest_ref_length, corpus_bleu, modified_precision,
                                       sentence_bleu)
from sacrebleu.metrics import BLEU

from vectors import case, f32


def sentences(draw, count, references, low, high, ids):
    """Candidates, and references that have parts of them."""
    def drawn():
        return [int(x) for x in draw.integers(int(draw.integers((), low, high + 1)), 0, ids)]

    own, others = [], []
    for _ in range(count):
        own.append(drawn())
        mixed = []
        for _ in range(references):
            other = drawn()
            at = int(draw.integers((), 0, len(other) + 1))
            mixed.append((own[-1][: int(draw.integers((), 0, len(own[-1]) + 1))] + other[at:])[:high])
        others.append(mixed)
    return own, others


def padded(rows, room):
    """Behind a sentence its last token again, so that reading on would count."""
    return np.array([row + [row[-1] if row else 7] * (room - len(row)) for row in rows], dtype=float)


def counts_of(own, others, k):
    matches, totals = np.zeros((len(own), k)), np.zeros((len(own), k))
    for s, (candidate, references) in enumerate(zip(own, others)):
        for n in range(1, k + 1):
            if references:
                matches[s, n - 1] = modified_precision(references, candidate, n).numerator
            totals[s, n - 1] = max(0, len(candidate) - n + 1)
    sizes = np.array([len(c) for c in own], dtype=float)
    closest = np.array([closest_ref_length(r, len(c)) if r else 0 for c, r in zip(own, others)], dtype=float)
    return matches, totals, sizes, closest


def ngram_counts(draw):
    for name, wide, lengths, s, r, low, high, ids, k in (
        ("one reference", "i32", "i64", 4, 1, 0, 12, 5, 4), ("three", "i64", "i32", 3, 3, 2, 11, 3, 4),
        ("long", "i32", "i32", 1, 2, 60, 70, 9, 3), ("whole rows", "i64", "i64", 3, 2, 9, 9, 2, 4),
        ("none", "i32", "i32", 2, 0, 3, 6, 4, 2), ("the same again and again", "i32", "i32", 2, 2, 5, 9, 1, 4),
    ):
        own, others = sentences(draw, s, r, low, high, ids)
        l, m, given = high + (low < high), high + 2 * (low < high), low < high
        ins = {"candidates": padded(own, l), "references": np.array([padded(o, m) for o in others]).reshape(s, r, m)}
        if not given:
            own, others = ins["candidates"].astype(int).tolist(), ins["references"].astype(int).tolist()
        if given:
            ins["lengths"] = np.array([len(c) for c in own], dtype=float)
            ins["reference_lengths"] = np.array([[len(x) for x in o] for o in others], dtype=float).reshape(s, r)
        outs = dict(zip(("matches", "totals", "sizes", "closest"), counts_of(own, others, k)))
        yield case(name, f"I={wide} L={lengths} s={s} l={l} r={r} m={m} k={k}" + " +lengths +reference_lengths" * given,
                   ins, outs)
    yield case("lengths beyond", "I=i32 L=i64 s=2 l=3 r=1 m=2 k=2 +lengths +reference_lengths",
               {"candidates": np.array([[1.0, 2, 1], [1, 2, 3]]), "references": np.array([[[1.0, 2]], [[3, 1]]]),
                "lengths": np.array([2.0**33, -4]), "reference_lengths": np.array([[7.0], [-(2.0**40)]])},
               {"matches": np.array([[2.0, 1], [0, 0]]), "totals": np.array([[3.0, 2], [0, 0]]),
                "sizes": np.array([3.0, 0]), "closest": np.array([2.0, 0])})


def by_nltk(own, others, k, method):
    def smoothing(amount):
        functions = SmoothingFunction(epsilon=f32(0.1) if amount is None else amount, k=5 if amount is None else amount)
        return {"none": functions.method0, "floor": functions.method1, "add": functions.method2,
                "exp": functions.method3, "length": functions.method4}[method[0]]

    weights = [1 / k] * k
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = np.array([sentence_bleu(r, c, weights, smoothing(method[1])) for c, r in zip(own, others)])
        whole = corpus_bleu(others, own, weights, smoothing(method[1]))
    # method0 takes the least float for 0.
    if method[0] == "none":
        scores, whole = np.where(scores < 1e-30, 0, scores), 0 if whole < 1e-30 else whole
    return scores, whole


def by_sacrebleu(counts, k, method, effective):
    name = {"none": "none", "floor": "floor", "add": "add-k", "exp": "exp"}[method[0]]
    value = method[1] if method[1] is not None else {"floor": f32(0.1), "add": 1}.get(method[0])

    def score(matches, totals, size, closest):
        return BLEU.compute_bleu([int(x) for x in matches], [int(x) for x in totals], int(size), int(closest), name,
                                 value, effective, k).score / 100

    matches, totals, sizes, closest = counts
    return (np.array([score(*row) for row in zip(matches, totals, sizes, closest)]),
            score(matches.sum(0), totals.sum(0), sizes.sum(), closest.sum()))


def bleu(draw):
    for method in (("none", None), ("floor", None), ("floor", 0.25), ("add", None), ("exp", None), ("length", None),
                   ("length", 3)):
        for missing in ("one", "zero", "skip"):
            if missing != "one" and method[0] == "length":
                continue
            k = 3 if method[1] else 4
            own, others = sentences(draw, 9, 2, {"one": 1}.get(missing, 0) + (method[0] == "length"), 14, 7)
            counts = counts_of(own, others, k)
            if missing == "one":
                scores, whole = by_nltk(own, others, k, method)
            else:
                scores, whole = by_sacrebleu(counts, k, method, missing == "skip")
            words = f"T=f32 s=9 k={k} smoothing={method[0]} missing={missing}"
            words += f" amount={method[1]}" if method[1] else ""
            yield case(f"{method[0]} {method[1] or 'by itself'} {missing}", words + " +scores +corpus",
                       dict(zip(("matches", "totals", "sizes", "closest"), counts)),
                       {"scores": scores, "corpus": np.array([whole])})
    for effective in (False, True):
        counts = tuple(np.array(x) for x in ([[3.0, 0, 0, 0]], [[3.0, 2, 1, 0]], [3.0], [90.0]))
        scores, _ = by_sacrebleu(counts, 4, ("exp", None), effective)
        missing = "skip" if effective else "zero"
        yield case(f"short by far, {missing}", f"T=f32 s=1 k=4 smoothing=exp missing={missing} +scores",
                   dict(zip(("matches", "totals", "sizes", "closest"), counts)), {"scores": scores})
