# SPDX-License-Identifier: Apache-2.0
"""Tsetlin machines as Granmo 2018 has them, by NumPy on arrays of truth values and, where they learn, by the paper's
tables, literal by literal; random words by randomgen's Philox."""
import numpy as np

from vectors import case, f32, philox


def packed(bits):
    """Truth values of a last dimension as bytes, the first the lowest bit."""
    return np.packbits(bits, axis=-1, bitorder="little").astype(np.float64)


def tm_clauses(draw):
    for name, e, c, j, literals, given in (
        ("inference", 7, 2, 6, 21, {}),
        ("training", 5, 3, 5, 16, {"empty": 1, "threshold": 2}),
        ("weights", 6, 2, 8, 70, {"weights": True}),
        ("weights and a threshold", 4, 1, 9, 300, {"weights": True, "threshold": 5}),
    ):
        x = draw.uniform((e, literals), 0, 1) < 0.6
        include = draw.uniform((c, j, literals), 0, 1) < 2.5 / literals
        include[:, 1] = False
        holds = ~(include[None] & ~x[:, None, None]).any(-1)
        holds &= include.any(-1)[None] | bool(given.get("empty"))
        polarity = np.where(np.arange(j) % 2, -1, 1) * np.ones((c, 1), dtype=int)
        weights = np.floor(draw.uniform((c, j), -5, 6)) if "weights" in given else polarity
        votes = (holds * weights).sum(-1)
        if "threshold" in given:
            votes = np.clip(votes, -given["threshold"], given["threshold"])
        words = f"T=u8 e={e} w={-(-literals // 8)} c={c} j={j} +clauses"
        words += "".join(f" {p}={given[p]}" for p in ("threshold", "empty") if p in given)
        words += " +weights" if "weights" in given else ""
        ins = {"literals": packed(x), "include": packed(include)} | ({"weights": weights} if "weights" in given else {})
        yield case(name, words, ins, {"votes": votes.astype(np.float64), "clauses": holds.astype(np.float64)})
    yield case("sums beyond i32", "T=u8 e=1 w=1 c=1 j=3 +weights", {
        "literals": np.array([[255.]]), "include": np.array([[[1.], [2], [4]]]),
        "weights": np.array([[2.**31 - 1, 5, 0]])}, {"votes": np.array([[-(2.**31) + 4]])})


class Learner:
    def __init__(self, states, threshold, s, depth, boost, seed, offset):
        self.states, self.threshold, self.s, self.depth = states, threshold, s, depth
        self.boost, self.seed, self.offset = boost, seed, offset

    def word(self, block, i):
        return philox(self.seed, self.offset, block + i // 4)[i % 4]

    def example(self, i, x, y):
        c = len(self.states)
        self.teach(i, x, y, True)
        if c > 1:
            z = self.word(2**63, i) * (c - 1) // 2**32
            self.teach(i, x, z + (z >= y), False)

    def teach(self, i, x, of_class, target):
        states = self.states[of_class]
        j, l = states.shape
        turn = 2 * i + (not target)
        output = [all(x[k] for k in range(l) if states[q, k] >= 0) for q in range(j)]
        v = sum(output[0::2]) - sum(output[1::2])
        v = max(-self.threshold, min(self.threshold, v))
        share = self.threshold - v if target else self.threshold + v
        for q in range(j):
            if self.word(2**62 + turn * -(-j // 4), q) / 2**32 >= share / (2 * self.threshold):
                continue
            for k in range(l):
                word = self.word((turn * j + q) * -(-l // 4), k)
                if (q % 2 == 0) == target:
                    self.type_one(states, q, k, output[q], x[k], word)
                elif output[q] and not x[k] and states[q, k] < 0:
                    self.move(states, q, k, 1)

    def type_one(self, states, q, k, output, literal, word):
        rare = word < 2**32 // self.s
        if output and literal:
            if self.boost or not rare:
                self.move(states, q, k, 1)
        elif rare:
            self.move(states, q, k, -1)

    def move(self, states, q, k, step):
        if states[q, k] + step <= self.depth - 1 if step > 0 else states[q, k] + step >= -self.depth:
            states[q, k] += step


def tm_update(draw):
    for name, dtype, e, c, j, l, given in (
        ("xor", "i8", 30, 2, 6, 8, {"threshold": 3, "specificity": 3.9, "depth": 4}),
        ("three classes", "i16", 12, 3, 5, 21, {"threshold": 4, "specificity": 2.5, "seed": 7, "offset": 2**40 + 5}),
        ("boost", "i8", 8, 2, 7, 13, {"threshold": 2, "specificity": 10.0, "boost": 1, "seed": 2**63 + 11}),
        ("one class", "i8", 6, 1, 4, 9, {"threshold": 1, "specificity": 1.0, "depth": 3}),
    ):
        most = 128 if dtype == "i8" else 32768
        x = draw.uniform((e, -(-l // 8) * 8), 0, 1) < 0.5
        y = np.floor(draw.uniform((e,), 0, c + 0.4))
        states = np.floor(draw.uniform((c, j, l), -3, 0.5))
        states[0, 0, :4] = [most - 1, -most, given.get("depth", most) - 1, -given.get("depth", most)]
        learner = Learner(states.copy(), given["threshold"], f32(given["specificity"]), given.get("depth", most),
                          given.get("boost", 0), given.get("seed", 0), given.get("offset", 0))
        for i in range(e):
            if 0 <= y[i] < c:
                learner.example(i, x[i], int(y[i]))
        assert (learner.states != states).any()
        w = x.shape[1] // 8
        include = np.zeros((c, j, 8 * w), dtype=bool)
        include[..., :l] = learner.states >= 0
        words = f"S={dtype} e={e} w={w} c={c} j={j} l={l} +include"
        words += "".join(f" {p}={given[p]}" for p in ("threshold", "specificity", "depth", "boost", "seed", "offset")
                         if p in given)
        yield case(name, words, {"literals": packed(x), "labels": y, "states": states},
                   {"states": learner.states, "include": packed(include)})
