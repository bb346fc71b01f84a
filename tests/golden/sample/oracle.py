# SPDX-License-Identifier: Apache-2.0
"""ngram_match as transformers does it; sample and speculative_verify by their definitions in include/trine/sample.h,
with Python's whole numbers and NumPy's f32; and what they draw held against torch.softmax in float64 by SciPy's
chi-square test, and against the distribution that the papers promise."""
import math

import numpy as np
import scipy.stats
import torch

from vectors import case, f32, philox

ONE = 2**40


def power(d):
    """floor(2^40 e^d) of an f32 d <= 0: each operation of NumPy's f32 is rounded by itself."""
    if not d >= -28:
        return 0
    one = np.float32
    n = one(one(d * one(1.44269504)) + one(12582912)) - one(12582912)
    r = one(one(d - one(n * one(0.693359375))) + one(n * one(2.12194440e-4)))
    p = one(1.9875691500e-4)
    for c in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        p = one(one(p * r) + one(c))
    p = one(one(one(p * one(r * r)) + r) + one(1))
    return int(math.ldexp(float(p), int(n) + 40))


assert all(abs(power(np.float32(d)) / ONE - math.exp(np.float32(d))) < 3e-7 * math.exp(d) + 2 / ONE
           for d in np.linspace(-27.9, 0, 999))


def words(seed, offset, block, first):
    w = philox(seed, offset, block)
    return w[first] | w[first + 1] << 32


def first_above(weights, random):
    """Of a list of whole numbers the place whose sum passes the random one."""
    place, seen = random * sum(weights) >> 64, 0
    for i, w in enumerate(weights):
        seen += w
        if seen > place:
            return i
    return -1


def scaled(logits, counts, o):
    one = np.float32
    heat = one(1 / f32(o["temperature"])) if o["temperature"] > 0 else one(1)
    penalty = one(o["repetition_penalty"])
    z = []
    with np.errstate(all="ignore"):
        for j, l in enumerate(logits.astype(one)):
            c = 0 if counts is None else int(counts[j])
            if c > 0:
                l = one(l * (one(1 / float(penalty)) if l > 0 else penalty))
                l = one(l - one(one(c) * one(o["frequency_penalty"])))
                l = one(l - one(o["presence_penalty"]))
            z.append(one(l * heat))
    return z


def candidates(z, o):
    """Weights of all tokens, those that are out of question being 0."""
    order = sorted(range(len(z)), key=lambda j: (-z[j], j))
    top = z[order[0]]
    if o["top_k"] > 0:
        order = order[:o["top_k"]]
    with np.errstate(all="ignore"):
        weights = {j: ONE if z[j] == top else power(np.float32(z[j] - top)) for j in order}
    least = math.ceil(f32(min(max(o["min_p"], 0), 1)) * ONE)
    weights = {j: w if w >= least else 0 for j, w in weights.items()}
    share, total, seen, kept = math.ceil(f32(min(max(o["top_p"], 0), 1)) * 2**32), sum(weights.values()), 0, {}
    for j in order:
        if kept and seen << 32 >= share * total:
            break
        seen += weights[j]
        kept[j] = weights[j]
    return [kept.get(j, 0) for j in range(len(z))]


def token_of(logits, counts, o, random):
    z = scaled(logits, counts, o)
    if np.isnan(z).any() or max(z) == -np.inf:
        return -1, math.nan
    if not o["temperature"] > 0:
        return z.index(max(z)), 1.0
    weights = candidates(z, o)
    j = first_above(weights, random)
    return j, float(np.float32(weights[j] / sum(weights)))


PLAIN = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0,
         "presence_penalty": 0.0, "frequency_penalty": 0.0}


def distributed(logits, o, expected):
    """20,000 draws by the definition against probabilities in float64."""
    weights = candidates(scaled(logits, None, o), o)
    seen = np.bincount([first_above(weights, words(1, 2, i, 0)) for i in range(20000)], minlength=len(weights))
    there = expected > 0
    assert seen[~there].sum() == 0
    assert scipy.stats.chisquare(seen[there], 20000 * expected[there]).pvalue > 1e-3


def check_distribution():
    logits = np.random.default_rng(5).normal(0, 2, 40).astype(np.float32)
    p = torch.softmax(torch.tensor(logits, dtype=torch.float64) / f32(0.8), 0).numpy()
    distributed(logits, {**PLAIN, "temperature": 0.8}, p)
    best = np.argsort(-p)
    five = np.zeros(40)
    five[best[:5]] = p[best[:5]] / p[best[:5]].sum()
    distributed(logits, {**PLAIN, "temperature": 0.8, "top_k": 5}, five)
    count = int(np.searchsorted(np.cumsum(p[best]), 0.7)) + 1
    nucleus = np.zeros(40)
    nucleus[best[:count]] = p[best[:count]] / p[best[:count]].sum()
    distributed(logits, {**PLAIN, "temperature": 0.8, "top_p": 0.7}, nucleus)
    likely = np.where(p >= 0.2 * p.max(), p, 0)
    distributed(logits, {**PLAIN, "temperature": 0.8, "min_p": 0.2}, likely / likely.sum())


def sample(draw):
    check_distribution()
    for name, dtype, wide, r, v, given, philox_words, seed, offset in (
        ("plain", "f32", "i32", 6, 50, {}, None, 42, 0),
        ("greedy", "bf16", "i64", 4, 33, {"temperature": 0.0}, None, 1, 0),
        ("hot", "f16", "i32", 5, 40, {"temperature": 3.0}, None, 7, 2**33 + 5),
        ("top k with equals", "bf16", "i32", 8, 40, {"temperature": 0.7, "top_k": 9}, None, 9, 1),
        ("top p", "f32", "i64", 8, 60, {"temperature": 0.9, "top_p": 0.6}, None, 10, 3),
        ("top p of equals", "f16", "i32", 8, 60, {"top_p": 0.5}, None, 11, 3),
        ("min p", "f32", "i32", 8, 60, {"min_p": 0.1}, None, 2**63 + 12, 4),
        ("one after the other", "f32", "i32", 12, 80, {"temperature": 1.2, "top_k": 30, "top_p": 0.8, "min_p": 0.05},
         None, 13, 4),
        ("penalties", "bf16", "i32", 8, 40, {"temperature": 0.8, "repetition_penalty": 1.3, "presence_penalty": 0.4,
                                             "frequency_penalty": 0.2}, None, 14, 0),
        ("rewards", "f32", "i64", 8, 40, {"repetition_penalty": 0.7, "presence_penalty": -0.6,
                                          "frequency_penalty": 0.1, "top_k": 12}, None, 15, 0),
        ("told by a tensor", "f32", "i32", 5, 30, {"top_p": 0.95}, [77, 8], 0, 5),
        ("rows of their own", "f32", "i32", 9, 50, None, None, 16, 6),
        ("no numbers", "f32", "i64", 7, 20, {"top_k": 4}, None, 17, 0),
    ):
        o = {**PLAIN, **(given or {})}
        x = draw.integers((r, v), -3, 3) if "equals" in name else draw.normal((r, v), dtype, scale=2.0)
        counts = draw.integers((r, v), -1, 4) if "penal" in name or name == "rewards" else None
        if name == "no numbers":
            x[0, 3], x[1] = np.nan, -np.inf
            x[2, 5], x[3, 7:9], x[4, 1:] = np.inf, np.inf, -np.inf
            x[5, 2] = -np.inf
        ins, rows = {"logits": x}, [dict(o) for _ in range(r)]
        if given is None:
            own = {"temperatures": [0.5, 0.0, 1.5, -1.0, 1.0, 1.0, 1.0, 1.0, 2.0],
                   "top_ks": [0, 3, 2, 5, -1, 1, 50, 60, 10], "top_ps": [1.0, 0.5, 0.9, 0.2, 0.6, 1.0, 7.0, -1.0, 0.9],
                   "min_ps": [0.0, 0.0, 0.2, 0.0, 0.1, 0.0, 0.0, -3.0, 0.05]}
            for key, values in own.items():
                ins[key] = np.array([f32(y) for y in values])
                for row, y in zip(rows, values):
                    row[key[:-1]] = y
        key, stream = (seed, offset) if philox_words is None else (philox_words[0], offset + philox_words[1])
        made = [token_of(x[i], None if counts is None else counts[i], rows[i], words(key, stream, i, 0))
                for i in range(r)]
        text = f"T={dtype} I={wide} r={r} v={v} seed={seed} offset={offset} +probabilities"
        text += "".join(f" {k}={y}" for k, y in (given or {}).items() if y)
        text += "".join(f" +{k}" for k in ins if k != "logits")
        if given is not None and "temperature" not in given:
            text += " temperature=1"
        if counts is not None:
            ins["counts"], text = counts, text + " +counts"
        if philox_words is not None:
            ins["philox"], text = np.array(philox_words), text + " +philox"
        yield case(name, text, ins, {"tokens": np.array([t for t, _ in made]),
                                     "probabilities": np.array([p for _, p in made])})


def verified(proposed, target, probs, key, stream, block):
    """Leviathan et al. 2023, algorithm 1, with whole numbers."""
    def whole(row):
        return [0 if not p > 0 else int(min(p, 1.0) * ONE) for p in row]
    g, v, out = len(proposed), len(target[0]), []
    for k in range(g + 1):
        p = whole(target[k])
        if k < g:
            x = int(proposed[k])
            q = whole(probs[k]) if probs is not None else [ONE * (j == x) for j in range(v)]
            if 0 <= x < v and words(key, stream, block + k, 0) * q[x] >> 64 < p[x]:
                out.append(x)
                continue
            left = [max(a - b, 0) for a, b in zip(p, q)]
            p = left if any(left) else p
        out.append(first_above(p, words(key, stream, block + k, 2)) if any(p) else -1)
        break
    return len(out) - 1, out + [-1] * (g + 1 - len(out))


def check_verified():
    """Whatever the draft: the first token is distributed as the target has it."""
    random = np.random.default_rng(8)
    p, q = (random.dirichlet(np.full(12, 0.7)).astype(np.float32) for _ in range(2))
    tokens = random.choice(12, 20000, p=q.astype(np.float64) / q.astype(np.float64).sum())
    seen = np.bincount([verified([x], [p, p], [q], 3, 4, 2 * i)[1][0] for i, x in enumerate(tokens)], minlength=12)
    assert scipy.stats.chisquare(seen, 20000 * p.astype(np.float64) / p.astype(np.float64).sum()).pvalue > 1e-3


def speculative_verify(draw):
    check_verified()
    for name, wide, b, g, v, has_draft, philox_words, seed, offset in (
        ("plain", "i32", 8, 3, 20, True, None, 42, 0),
        ("looked up", "i64", 8, 3, 6, False, None, 5, 2**33),
        ("no draft", "i32", 5, 0, 9, True, None, 6, 1),
        ("told by a tensor", "i64", 4, 2, 11, True, [91, 2], 0, 3),
        ("out of range", "i32", 4, 2, 5, True, None, 7, 0),
        ("the same twice", "i32", 6, 4, 8, True, None, 8, 0),
        ("not probabilities", "i64", 7, 3, 5, True, None, 9, 0),
    ):
        def probabilities(shape):
            e = np.exp(draw.normal(shape, "f32"))
            return (e / e.sum(-1, keepdims=True)).astype(np.float32).astype(np.float64) if e.size else e
        target, probs = probabilities((b, g + 1, v)), probabilities((b, g, v))
        proposed = draw.integers((b, g), 0, v)
        if name == "the same twice":
            probs = target[:, :g].copy()
        if name == "out of range":
            proposed[0, 0], proposed[1, 1], proposed[2, 0] = -1, v, 2**31 - 1
        if name == "not probabilities":
            target[0], probs[1], target[2, 0, 1] = 0, 0, np.nan
            target[3] *= -1
            target[4] *= 8
            probs[5] = target[5, :g] = 1
        key, stream = (seed, offset) if philox_words is None else (philox_words[0], offset + philox_words[1])
        made = [verified(proposed[i], target[i], probs[i] if has_draft else None, key, stream, i * (g + 1))
                for i in range(b)]
        ins = {"draft_tokens": proposed, "target_probs": target}
        text = f"I={wide} b={b} g={g} v={v} seed={seed} offset={offset}"
        if has_draft:
            ins["draft_probs"], text = probs, text + " +draft_probs"
        if philox_words is not None:
            ins["philox"], text = np.array(philox_words), text + " +philox"
        yield case(name, text, ins, {"accepted": np.array([n for n, _ in made]),
                                     "tokens": np.array([t for _, t in made])})


def looked_up(tokens, n_max, n_min, m, first):
    """As transformers' PromptLookupCandidateGenerator.get_candidates has it: windows of each size that equal the last
    tokens, of which the first one (or here the last) that something follows."""
    tokens = torch.tensor(tokens, dtype=torch.int64)[None]
    length = tokens.shape[1]
    for size in range(min(n_max, length - 1), n_min - 1, -1):
        windows = tokens.unfold(dimension=1, size=size, step=1)
        matches = (windows == tokens[0, -size:]).all(dim=2).nonzero(as_tuple=True)[1]
        followed = [int(at) + size for at in matches if int(at) + size < length]
        if followed:
            start = followed[0 if first else -1]
            return tokens[0, start:min(start + m, length)].tolist()
    return []


def ngram_match(draw):
    for name, dtype, wide, b, s, m, n_max, n_min, first, words in (
        ("latest", "i32", "i32", 6, 60, 4, 0, 0, 0, 3),
        ("first", "i64", "i32", 6, 60, 4, 0, 0, 1, 3),
        ("lengths", "i32", "i64", 8, 40, 5, 4, 2, 0, 2),
        ("lengths, first", "i64", "i64", 8, 40, 5, 4, 2, 1, 2),
        ("one token repeated", "i32", "i32", 3, 30, 7, 5, 1, 0, 1),
        ("one token repeated, first", "i32", "i32", 3, 30, 7, 5, 1, 1, 1),
        ("seldom found", "i64", "i32", 8, 24, 3, 2, 2, 0, 12),
        ("a long n-gram", "i32", "i32", 4, 80, 6, 20, 6, 0, 2),
        ("none that is so short", "i32", "i32", 3, 20, 3, 2, 4, 0, 2),
    ):
        tokens = draw.integers((b, s), 0, words)
        lengths = np.full(b, s, dtype=np.float64)
        if "lengths" in name:
            lengths = draw.integers((b,), 0, s + 1)
            lengths[:5] = 0, 1, 2, s + 9, -3
        drafts, counts = np.full((b, m), -1.0), np.zeros(b)
        for i in range(b):
            length = int(min(max(lengths[i], 0), s))
            found = looked_up(tokens[i, :length], n_max or 3, n_min or 1, m, first) if length > 1 else []
            drafts[i, :len(found)], counts[i] = found, len(found)
        ins = {"tokens": tokens} | ({"lengths": lengths} if "lengths" in name else {})
        yield case(name, f"I={dtype} L={wide} b={b} s={s} m={m} n_max={n_max} n_min={n_min} first={first}" +
                   (" +lengths" if "lengths" in name else ""), ins, {"draft": drafts, "counts": counts})
