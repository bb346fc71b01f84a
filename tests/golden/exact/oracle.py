# SPDX-License-Identifier: Apache-2.0
"""The digits and their products by Python's own fractions and integers; and what comes of them within the bound of the
docstring round the exact product, by fractions as well."""
import math
from fractions import Fraction

import numpy as np

from vectors import case


def nearest(x):
    """The nearest integer, ties to the even one."""
    return round(x)


def digits(line, slices):
    """The exponent of a line, and a list of digits for each of its elements."""
    most = max((abs(Fraction(x)) for x in line), default=Fraction(0))
    exponent = 0
    if most > 0:
        exponent = math.frexp(float(most))[1]
    out = []
    for x in line:
        rest, own = Fraction(x) / Fraction(2) ** exponent * 64, []
        for _ in range(slices):
            own.append(nearest(rest))
            rest = (rest - own[-1]) * 128
        out.append(own)
    return exponent, out


def element(row, column, slices):
    e, a = digits(row, slices)
    f, b = digits(column, slices)
    total = 0.0
    for w in range(slices - 1, -1, -1):
        term = sum(x[s] * y[w - s] for x, y in zip(a, b) for s in range(w + 1))
        total = total * 2.0**-7 + float(term)
    value = float(Fraction(total) * Fraction(2) ** (e + f - 12))
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(row, column))
    bound = (len(row) * Fraction(2) ** (e + f) * (slices + 3) / Fraction(2) ** (7 * slices)
             + Fraction(3, 2**53) * abs(exact) + Fraction(1, 2**1074))
    assert abs(Fraction(value) - exact) <= bound, (value, float(exact), float(bound))
    return value


def int_matmul_exact(draw):
    for name, g, m, n, k, slices, spread in (
        ("doubles", 1, 3, 4, 9, 8, 0),
        ("a batch", 2, 2, 3, 5, 8, 1),
        ("few slices", 1, 3, 2, 7, 2, 0),
        ("many slices", 1, 2, 3, 6, 16, 8),
        ("sizes of all kinds", 1, 3, 3, 8, 8, 30),
        ("nothing to add", 1, 2, 2, 0, 8, 0),
        ("a long line", 1, 1, 2, 150, 8, 0),
    ):
        a, b = draw.normal((g, m, k), "f64"), draw.normal((g, k, n), "f64")
        if spread:
            a, b = a * 2.0 ** np.round(draw.uniform(a.shape, -spread, spread)), b * 2.0 ** np.round(
                draw.uniform(b.shape, -spread, spread))
        d = np.array([[[element(list(a[q, i]), list(b[q, :, j]), slices) for j in range(n)] for i in range(m)]
                      for q in range(g)])
        yield case(name, f"T=f64 g={g} m={m} n={n} k={k} slices={slices}", {"a": a, "b": b}, {"d": d})
    for name, scale in (("close to the largest", 2.0**511), ("products below the smallest", 2.0**-530),
                        ("subnormal lines", 2.0**-1040)):
        a, b = draw.normal((1, 2, 3), "f64") * scale, draw.normal((1, 3, 2), "f64") * min(scale, 2.0**500)
        if scale == 2.0**-1040:
            b = draw.normal((1, 3, 2), "f64") * 2.0**20
        d = np.array([[[element(list(a[0, i]), list(b[0, :, j]), 8) for j in range(2)] for i in range(2)]])
        yield case(name, "T=f64 g=1 m=2 n=2 k=3", {"a": a, "b": b}, {"d": d})
    nan, inf = np.nan, np.inf
    yield case("what is no number", "T=f64 g=1 m=3 n=2 k=2",
               {"a": np.array([[[1, inf], [nan, 1], [1, 2.]]]), "b": np.array([[[1, 2], [3, -inf]]])},
               {"d": np.array([[[nan, nan], [nan, nan], [7, nan]]])})
