#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints spec/chain/terms.h: the coefficients of the polynomials that chains in float64 use, by interpolation at
Chebyshev's nodes. An error is the largest found between them, of the result, in units of 2^-53."""
import mpmath as mp

mp.mp.dps = 60
MIDDLE = mp.mpf(5)  # of the variable for the normal distribution's tail, (a - MIDDLE)/(a + MIDDLE)
MOST = mp.mpf(40)  # beyond it the tail is 0


def even(f, first):
    """The function g of s = x^2 with f(x) = x (first + s g(s))."""
    def g(s):
        with mp.workdps(90):
            x = mp.sqrt(s)
            return (f(x) / x - first) / s
    return g


def tail(t):
    """(a + MIDDLE) Phi(-a) e^(a^2/2)."""
    a = MIDDLE * (1 + t) / (1 - t)
    return (a + MIDDLE) * mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2)


# Name, text, function, interval, coefficients, and what the error is measured against.
POLYNOMIALS = (
    ("EXP", "e^r, |r| <= ln(2)/2 and a little more", mp.exp, (-0.3467, 0.3467), 12, mp.exp),
    ("LOG", "2 artanh(z) = z (2 + s p(s)), s = z^2", even(lambda z: 2 * mp.atanh(z), 2), (1e-30, 0.02944), 8,
     lambda s: 2 / s),
    ("TANH", "tanh x = x (1 + s p(s)), s = x^2, |x| < 0.55", even(mp.tanh, 1), (1e-30, 0.3026), 11,
     lambda s: mp.tanh(mp.sqrt(s)) / mp.sqrt(s) / s),
    ("ERF", "erf x = x (1 + p(s)), s = x^2, |x| < 0.95", lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1,
     (1e-30, 0.9026), 14, lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s)),
    ("TAIL", "Phi(-a) = e^(-a^2/2) p(t)/(a + 5), t = (a - 5)/(a + 5), 0 <= a <= 40", tail,
     (-1, (MOST - MIDDLE) / (MOST + MIDDLE)), 23, tail),
)


def error_of(p, f, size, low, high):
    worst = mp.mpf(0)
    for k in range(400):
        x = low + (high - low) * mp.mpf(2 * k + 1) / 800
        worst = max(worst, abs((mp.polyval(p, x) - f(x)) / size(x)))
    return worst * mp.mpf(2) ** 53


def listed(name, numbers):
    lines, line = [f"#define CHAIN_{name}(FIRST, TERM)"], "   "
    for i, word in enumerate(f"{'TERM' if i else 'FIRST'}({n})" for i, n in enumerate(numbers)):
        if len(line) + len(word) + 1 > 116:
            lines.append(line)
            line = "   "
        line += " " + word
    return " \\\n".join(lines + [line])


if __name__ == "__main__":
    print("""/* SPDX-License-Identifier: Apache-2.0 */
/* Coefficients for spec/chain/functions.h, from the highest power, as tests/golden/chain/coefficients.py prints
 * them. */
#ifndef TRINE_SPEC_CHAIN_TERMS_H
#define TRINE_SPEC_CHAIN_TERMS_H

/* clang-format off */""")
    for name, text, f, (low, high), count, size in POLYNOMIALS:
        low, high = mp.mpf(low), mp.mpf(high)
        p = [mp.mpf(float(c)) for c in mp.chebyfit(f, [low, high], count)]
        print(f"/* {text}: within {mp.nstr(error_of(p, f, size, low, high), 2)} */")
        print(listed(name, [repr(float(c)) for c in p]))
    print("/* clang-format on */\n\n#endif")
