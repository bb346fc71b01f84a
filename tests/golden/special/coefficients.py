#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints spec/special/bessel_terms.h: the coefficients of the polynomials that kernels of Bessel functions use.

Olver's u_k (DLMF 10.41.10) in exact fractions, from them the expansion of log(sum u_k/v^k); the nodes of the rule for
K; and of functions of the order minus the nearest integer the Taylor series, or what interpolation at Chebyshev's nodes
makes of them."""
from fractions import Fraction as F

import mpmath as mp

mp.mp.dps = 60
TERMS, NODES = 18, 48


def times(a, b):
    r = [F(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            r[i + j] += x * y
    return r


def plus(a, b):
    n = max(len(a), len(b))
    return [(a[i] if i < len(a) else 0) + (b[i] if i < len(b) else 0) for i in range(n)]


def olver():
    """d_k(s), with log(sum u_k(p) / v^k) = sum d_k(p^2) / w^k, w = v/p."""
    u = [[F(1)]]
    for _ in range(TERMS):
        slope = [i * c for i, c in enumerate(u[-1])][1:] or [F(0)]
        inner = times([F(1, 8), 0, F(-5, 8)], u[-1])
        u.append(plus(times([0, 0, F(1, 2), 0, F(-1, 2)], slope), [F(0)] + [c / (i + 1) for i, c in enumerate(inner)]))
    d = [None]
    for k in range(1, TERMS + 1):
        rest = u[k]
        for j in range(1, k):
            rest = plus(rest, [-F(j, k) * c for c in times(d[j], u[k - j])])
        d.append(rest)
    return [None] + [[row[k + 2 * i] for i in range(k + 1)] for k, row in enumerate(d) if k]


def chebyshev(f, low, high, degree):
    """Coefficients of x^0 .. x^degree of the polynomial that interpolates f."""
    n = degree + 1
    angle = [mp.pi * (2 * k + 1) / (2 * n) for k in range(n)]
    value = [f((low + high) / 2 + (high - low) / 2 * mp.cos(a)) for a in angle]
    part = [2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(value, angle)) / n for j in range(n)]
    x = [-(low + high) / (high - low), 2 / (high - low)]  # of x, in [-1, 1]
    before, now = [mp.mpf(1)], x
    total = plus([part[0] / 2], [part[1] * c for c in now])
    for c in part[2:]:
        before, now = now, plus([2 * t for t in times(x, now)], [-t for t in before])
        total = plus(total, [c * t for t in now])
    return [mp.mpf(t) for t in total]


def listed(name, doc, numbers, head="TERM"):
    words = [f"{head if i == 0 else 'TERM'}({n})" for i, n in enumerate(numbers)]
    arguments = "FIRST, TERM" if head != "TERM" else "TERM"
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) + 1 > 116:
            lines.append(line)
            line = "   "
        line += " " + word
    lines.append(line)
    text = " \\\n".join([f"#define {name}({arguments})"] + lines)
    return (f"/* {doc} */\n" if doc else "") + text + "\n"


def number(x):
    return repr(float(x if isinstance(x, F) else mp.mpf(x)))


def even(f):
    return lambda s: f(mp.sqrt(s))


def gamma_1(m):
    return mp.diff(lambda t: mp.rgamma(1 - t), 0) if m == 0 else (mp.rgamma(1 - m) - mp.rgamma(1 + m)) / (2 * m)


def main():
    half = mp.mpf(1) / 2
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Coefficients for spec/special/bessel.h, from the highest power, as")
    print(" * tests/golden/special/coefficients.py prints them. */")
    print("#ifndef TRINE_SPEC_BESSEL_TERMS_H\n#define TRINE_SPEC_BESSEL_TERMS_H\n\n/* clang-format off */")
    for k, row in enumerate(olver()):
        if k:
            doc = "d_k(s): k, the power of s, the coefficient" if k == 1 else ""
            numbers = [f"{k}, {i}, {number(row[i])}" for i in range(k, -1, -1)]
            print(listed(f"BESSEL_D{k}", doc, numbers, "FIRST"), end="")
    fits = [
        ("BESSEL_GAMMA", "log(Gamma(1 + m))/m, |m| <= 1/2",
         lambda m: -mp.euler if abs(m) < 1e-40 else mp.loggamma(1 + m) / m, -half, half, 28),
        ("BESSEL_GAMMA_1", "(1/Gamma(1-m) - 1/Gamma(1+m))/(2 m), of m^2 <= 1/4", even(gamma_1), mp.mpf(0), half / 2, 8),
        ("BESSEL_GAMMA_2", "(1/Gamma(1-m) + 1/Gamma(1+m))/2, of m^2 <= 1/4",
         even(lambda m: (mp.rgamma(1 - m) + mp.rgamma(1 + m)) / 2), mp.mpf(0), half / 2, 8),
        ("BESSEL_EXP", "e^r, |r| <= ln(2)/2", mp.exp, -mp.log(2) / 2, mp.log(2) / 2, 12),
    ]
    for name, doc, f, low, high, degree in fits:
        row = chebyshev(f, low, high, degree)
        error = max(abs(1 - mp.polyval(row[::-1], x) / f(x)) for x in mp.linspace(low, high, 301))
        assert error < mp.mpf(2) ** -57, (name, mp.nstr(error))
        print(listed(name, doc, [number(c) for c in row[::-1]], "FIRST"), end="")
    for name, doc, row in (
        ("BESSEL_ATANH", "2/(2k+1), k from 11 to 1", [mp.mpf(2) / (2 * k + 1) for k in range(11, 0, -1)]),
        ("BESSEL_SINHC", "1/(2k+1)!, k from 8 to 0", [1 / mp.factorial(2 * k + 1) for k in range(8, -1, -1)]),
    ):
        print(listed(name, doc, [number(c) for c in row], "FIRST"), end="")
    for part in range(NODES // 8):
        doc = "cosh(k/9) - 1, k from 1 to 48" if part == 0 else ""
        nodes = [number(mp.cosh(mp.mpf(k) / 9) - 1) for k in range(8 * part + 1, 8 * part + 9)]
        print(listed(f"BESSEL_NODES_{part + 1}", doc, nodes), end="")
    print("/* clang-format on */\n\n#endif")


main()
