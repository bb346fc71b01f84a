# SPDX-License-Identifier: Apache-2.0
"""Products in exact arithmetic by Python's fractions; NumPy turns the lower half over."""
from fractions import Fraction

import numpy as np

from vectors import case, f32


def symmetric(a, alpha=1, beta=0, c=None):
    exact = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])
    rows = exact(a)
    t = Fraction(f32(alpha)) * np.matmul(rows, np.swapaxes(rows, -1, -2))
    if c is not None:
        t = t + Fraction(f32(beta)) * exact(c)
    d = np.tril(np.vectorize(float, otypes=[float])(t))
    return d + np.swapaxes(np.tril(d, -1), -1, -2)


def matmul_symmetric(draw):
    for name, dtype, out, g, m, k, alpha, beta, words in (
        ("plain", "f32", "f32", 1, 7, 11, 1, None, ""),
        ("columns", "f32", "f32", 1, 9, 5, 0.5, None, " a=transposed"),
        ("c is read below the diagonal", "f32", "f32", 1, 8, 6, -2, 3, ""),
        ("batch", "bf16", "bf16", 3, 5, 10, 1, -0.5, ""),
        ("batch of columns to f32", "bf16", "f32", 2, 6, 9, 0.5, 1, " a=transposed"),
        ("f16", "f16", "f16", 1, 18, 7, 1, 1, ""),
        ("f16 to f32", "f16", "f32", 1, 4, 33, -2, None, ""),
        ("f64", "f64", "f64", 2, 5, 13, 0.1, 0.3, ""),
        ("one element", "f64", "f64", 1, 1, 3, 1, None, ""),
    ):
        shape = (g,) if g > 1 else ()
        a, c = draw.normal((*shape, m, k), dtype), draw.normal((*shape, m, m), out)
        ins, given = {"a": a}, f"T={dtype} O={out} g={g} m={m} k={k} alpha={alpha}{words}"
        if beta is not None:
            ins["c"], given = c, given + f" beta={beta} +c"
        yield case(name, given, ins, {"d": symmetric(a, alpha, beta, c) if beta is not None else symmetric(a, alpha)})
    c = draw.normal((4, 4))
    yield case("k = 0", "T=f32 O=f32 m=4 k=0 beta=3 +c", {"a": np.zeros((4, 0)), "c": c},
               {"d": symmetric(np.zeros((4, 0)), 1, 3, c)})
    a = np.array([[np.inf, 1.0], [0.0, 2.0], [np.nan, 0.0]])
    with np.errstate(invalid="ignore"):
        d = a @ a.T
    yield case("what is not a number", "T=f32 O=f32 m=3 k=2", {"a": a}, {"d": d})
