/* SPDX-License-Identifier: Apache-2.0 */
/* Modified Bessel functions in float64 for kernels, of what spec/doubles.h names and, in the words of who includes
 * this, any_of(mask) and root(x).
 *
 * With w = hypot(v, x), s = (v/w)^2 there are these regions. Errors: spec/special/special.h.
 *   w >= 24: Debye's expansions (DLMF 10.41), in powers of 1/w, which are Hankel's where v = 0:
 *     log I = w - v log((v+w)/x) - log(2 pi w)/2 + sum d_k(s) w^-k,
 *     log K = -w + v log((v+w)/x) + log(pi/(2w))/2 + sum d_k(s) (-w)^-k
 *   I, w < 24: the power series, of 18 terms for x < 5, else of 40
 *   K, w < 24 and x >= 1: the integral of exp(-x cosh t) cosh(v t) by the trapezoidal rule with steps of h = 1/9, which
 *     is within 2 K_v(x cos d) exp(-2 pi d/h) of it for each d < pi/2
 *   K, v < 24 and x < 1: Temme's series for v less the nearest integer (Temme 1975), and recurrence upwards of
 *     (x/2)^v K_v. */
#ifndef TRINE_SPEC_BESSEL_H
#define TRINE_SPEC_BESSEL_H

#include "bessel_terms.h"
#include "spec/doubles.h"

#define BESSEL_LARGE 24.0    /* w from which on Debye's expansions serve, */
#define BESSEL_LARGER 80.0   /* with 8 terms, */
#define BESSEL_LARGEST 600.0 /* and with 4 */
#define BESSEL_SERIES 5.0    /* x below which 18 terms of the power series do */
#define BESSEL_TINY 0x1p-500

#define BESSEL_INF __builtin_huge_val()
#define BESSEL_NAN __builtin_nan("")

POLYNOMIAL(gamma_terms, BESSEL_GAMMA)
POLYNOMIAL(gamma_1, BESSEL_GAMMA_1)
POLYNOMIAL(gamma_2, BESSEL_GAMMA_2)
POLYNOMIAL(exp_terms, BESSEL_EXP)
POLYNOMIAL(atanh_terms, BESSEL_ATANH)
POLYNOMIAL(sinhc_terms, BESSEL_SINHC)

/* ln(a/b) of positive numbers, within 2 of 2^-53 of it: a/b = 2^k m with sqrt(1/2) < m < sqrt(2), and ln m is
 * 2 artanh((m-1)/(m+1)). */
FUNCTION number log_quotient(number a, number b) {
    const mask tiny_a = a < 0x1p-1022, tiny_b = b < 0x1p-1022;
    number ma = pick(tiny_a, a * 0x1p54, a), mb = pick(tiny_b, b * 0x1p54, b);
    number k = exponent_of(ma) - exponent_of(mb) - pick(tiny_a, constant(54), constant(0)) +
               pick(tiny_b, constant(54), constant(0));
    ma = with_exponent(ma), mb = with_exponent(mb);
    const mask above = ma > mb * 0x1.6a09e667f3bcdp0, below = ma * 0x1.6a09e667f3bcdp0 < mb;
    k = k + pick(above, constant(1), constant(0)) - pick(below, constant(1), constant(0));
    ma = pick(below, ma + ma, ma), mb = pick(above, mb + mb, mb);
    const number s = (ma - mb) / (ma + mb), s2 = s * s;
    const number low = fused(s * s2, atanh_terms(s2), k * LN2_LOW);
    return fused(k, constant(LN2_HIGH), s + s + low);
}

/* e^x, |x| <= 708 or less than that, within 2 of 2^-53 of it. */
FUNCTION number exp_of(number x) {
    x = pick(x < -708.0, constant(-708), x);
    const number shifted = fused(x, constant(1.4426950408889634), constant(ROUNDING)), k = shifted - ROUNDING;
    const number r = fused(k, constant(-LN2_LOW), fused(k, constant(-LN2_HIGH), x));
    return two_to_power(exp_terms(r), shifted);
}

FUNCTION number hypotenuse(number a, number b) {
    const mask less = a < b;
    const number most = pick(less, b, a), least = pick(less, a, b), r = pick(most > 0.0, least / most, constant(0));
    return most * root(fused(r, r, constant(1)));
}

/* -------------------------------------------------------------------------------------------------- Debye's sums */

/* clang-format off */
#define DEBYE_FIRST(k, i, c) q = constant(DEBYE_FACTOR(k, i) * (c));
#define DEBYE_TERM(k, i, c) q = fused(q, s, constant(DEBYE_FACTOR(k, i) * (c)));
#define DEBYE_SUM(k) BESSEL_D##k(DEBYE_FIRST, DEBYE_TERM) sum = fused(sum, r, q);
#define DEBYE(name) \
    FUNCTION number name(number w, number s, number r) { \
        number sum = constant(0), q; \
        if (any_of(w < BESSEL_LARGER)) { \
            DEBYE_SUM(18) DEBYE_SUM(17) DEBYE_SUM(16) DEBYE_SUM(15) DEBYE_SUM(14) \
            DEBYE_SUM(13) DEBYE_SUM(12) DEBYE_SUM(11) DEBYE_SUM(10) DEBYE_SUM(9) \
            sum = pick(w < BESSEL_LARGER, sum, constant(0)); \
        } \
        if (any_of(w < BESSEL_LARGEST)) { \
            DEBYE_SUM(8) DEBYE_SUM(7) DEBYE_SUM(6) DEBYE_SUM(5) \
            sum = pick(w < BESSEL_LARGEST, sum, constant(0)); \
        } \
        DEBYE_SUM(4) DEBYE_SUM(3) DEBYE_SUM(2) DEBYE_SUM(1) \
        return sum * r; \
    }
/* clang-format on */

/* sum of d_k(s) r^k with r = 1/w, or -1/w for K. */
#define DEBYE_FACTOR(k, i) 1.0
DEBYE(debye_sum)
/* And of (k d_k + 2 s d_k') r^k: it is -(w/x^2) w times the derivative of that by x. */
#undef DEBYE_FACTOR
#define DEBYE_FACTOR(k, i) ((double)((k) + 2 * (i)))
DEBYE(debye_slope)

/* ---------------------------------------------------------------------------------------------------------- I_v */

/* The power series S of I_v = (x/2)^v/Gamma(v+1) S: A/B, its derivative by x^2/4 D/B, and S - 1. */
typedef struct bessel_series {
    number a, b, d, rest;
} bessel_series;

FUNCTION void series_terms(bessel_series *f, number v, number q, int terms) {
    for (int k = terms; k > 0; k--) {
        f->b = f->b * fused(constant(k), v, constant((double)k * k));
        f->d = fused(q, f->d, f->a);
        f->rest = f->a;
        f->a = fused(q, f->a, f->b);
    }
    f->rest = q * f->rest / f->b;
}

FUNCTION bessel_series series_of(number v, number x) {
    const bessel_series start = { constant(1), constant(1), constant(0), constant(0) };
    const mask few = x < BESSEL_SERIES;
    const number q = x * x * 0.25;
    bessel_series f = start, more = start;
    if (any_of(few)) series_terms(&f, v, q, 18);
    if (any_of(x >= BESSEL_SERIES)) series_terms(&more, v, q, 40);
    f.a = pick(few, f.a, more.a), f.b = pick(few, f.b, more.b);
    f.d = pick(few, f.d, more.d), f.rest = pick(few, f.rest, more.rest);
    return f;
}

/* log(I_v(x) (b/x)^v), 0 <= v < 24: v log(b/2) + log S - log Gamma(v+1), the last by Gamma(v+1) = (m+1) .. (m+n)
 * Gamma(m+1), v = n + m, |m| <= 1/2. */
FUNCTION number log_i_series(number v, number x, number b) {
    const bessel_series f = series_of(v, x);
    const number n = v + ROUNDING - ROUNDING, m = v - n, sum = f.rest + 1.0, lost = (f.rest - (sum - 1.0)) / sum;
    number product = constant(1);
    for (int i = 1; i <= (int)BESSEL_LARGE; i++) {
        const mask less = n >= constant(i);
        if (!any_of(less)) break;
        product = product * pick(less, m + constant(i), constant(1));
    }
    const number rest = fused(m * constant(-1), gamma_terms(m), log_quotient(sum, product) + lost);
    return fused(v, log_quotient(b, constant(2)), rest);
}

/* log(I_v(x) (b/x)^v) of v >= 0 and x >= 0 that are finite: with b = x the logarithm of I, with another b that of what
 * is finite at 0. */
FUNCTION number bessel_log_i(number v, number x, number b) {
    const number w = hypotenuse(v, x);
    const mask large = w >= BESSEL_LARGE, small = w < BESSEL_LARGE;
    number y = constant(0);
    if (any_of(large)) {
        const number r = constant(1) / w, vr = v * r, l = log_quotient(v + w, b),
                     half = log_quotient(w, constant(0.5)) * 0.5;
        const number tail = debye_sum(w, vr * vr, r) - half - 0.5723649429247001; /* ln(pi)/2 */
        y = fused(v * constant(-1), l, w) + tail;
    }
    if (any_of(small)) {
        const number low =
            log_i_series(pick(small, v, constant(0)), pick(small, x, constant(1)), pick(small, b, constant(1)));
        y = pick(small, low, y);
    }
    return y;
}

/* I_(v+1)(x)/I_v(x). */
FUNCTION number bessel_ratio_i(number v, number x) {
    const number w = hypotenuse(v, x);
    const mask large = w >= BESSEL_LARGE, small = w < BESSEL_LARGE;
    number y = constant(0);
    if (any_of(large)) {
        const number r = constant(1) / w, vr = v * r, sum = debye_slope(w, vr * vr, r) + 0.5;
        const number half = x * 0.5 / (w * 0.5 + v * 0.5);
        y = half - x * r * r * sum;
    }
    if (any_of(small)) {
        const bessel_series f = series_of(pick(small, v, constant(0)), pick(small, x, constant(1)));
        y = pick(small, x * 0.5 * (f.d / f.a), y);
    }
    return y;
}

/* ---------------------------------------------------------------------------------------------------------- K_v */

/* log K_v(x), and x times its derivative by x. */
typedef struct bessel_k {
    number log, slope;
} bessel_k;

#define NODE(c) \
    up = up * step, down = down * back; \
    term = exp_of(x * -(c)) * (up + down) * 0.5; \
    sum = sum + term, moment = fused(term, constant(c), moment);

/* 1 <= x, hypot(v, x) < 24. Terms ascend, if v > 0, and then fall off faster and faster: those that are left out are
 * below 2^-64 of the sum, which they would not change. */
FUNCTION bessel_k k_integral(number v, number x) {
    const number step = exp_of(v / 9.0), back = constant(1) / step;
    number up = constant(1), down = constant(1), term, sum = constant(0.5), moment = constant(0);
    BESSEL_NODES_1(NODE)
    if (any_of(term > sum * 0x1p-70)) {
        BESSEL_NODES_2(NODE)
    }
    if (any_of(term > sum * 0x1p-70)) {
        BESSEL_NODES_3(NODE)
    }
    if (any_of(term > sum * 0x1p-70)) {
        BESSEL_NODES_4(NODE)
    }
    if (any_of(term > sum * 0x1p-70)) {
        BESSEL_NODES_5(NODE)
    }
    if (any_of(term > sum * 0x1p-70)) {
        BESSEL_NODES_6(NODE)
    }
    const bessel_k y = { log_quotient(sum, constant(9)) - x, x * (moment / sum + 1.0) * constant(-1) };
    return y;
}

/* x < 1, v < 24, with p_k, q_k, f_k of Temme 1975, times (x/2)^m. */
FUNCTION bessel_k k_series(number v, number x) {
    const number n = v + ROUNDING - ROUNDING, m = v - n, l = log_quotient(constant(2), x), q = x * x * 0.25;
    /* of a tiny x, K_v (x/2)^v depends on it below 1/2 alone */
    const number bounded = pick((n >= 1.0) & (x < BESSEL_TINY), constant(501 * 0.6931471805599453), l), z = m * bounded;
    const number power = exp_of(z * constant(-1)), square = power * power, m2 = m * m, g1 = gamma_1(m2),
                 g2 = gamma_2(m2);
    const number plus = fused(m * constant(-1), g1, g2), minus = fused(m, g1, g2); /* 1/Gamma(1+m), 1/Gamma(1-m) */
    const mask flat = z * z < 0.25;
    const number sinhc =
        pick(flat, power * sinhc_terms(z * z), (constant(1) - square) / pick(flat, constant(1), z + z));
    number f = (g1 * (square + 1.0) * 0.5 + g2 * bounded * sinhc) / (plus * minus), p = constant(0.5) / plus;
    number r = square * 0.5 / minus, c = constant(1);
    number a = f, b = p, less_one = r; /* of orders m, m + 1 and 1 - m */
    for (int k = 1; k <= 10; k++) {
        const number by = constant(1) / (constant((double)k * k) - m2);
        f = fused(constant(k), f, p + r) * by;
        p = p * (m + constant(k)) * by, r = r * (constant(k) - m) * by, c = c * q / constant(k);
        a = fused(c, f, a), b = fused(c, fused(constant(-k), f, p), b);
        less_one = fused(c, fused(constant(-k), f, r), less_one);
    }
    for (int i = 1; i <= (int)BESSEL_LARGE; i++) { /* a and b are of m + i - 1 and m + i */
        const mask less = n >= constant(i);
        if (!any_of(less)) break;
        const number next = fused(m + constant(i), b, q * a);
        less_one = pick(less, q * a, less_one), a = pick(less, b, a), b = pick(less, next, b);
    }
    const bessel_k y = { fused(v, l, log_quotient(a, constant(1))), (v + less_one / a * 2.0) * constant(-1) };
    return y;
}

FUNCTION bessel_k bessel_of_k(number v, number x) {
    const number w = hypotenuse(v, x);
    const mask large = w >= BESSEL_LARGE, middle = (w < BESSEL_LARGE) & (x >= 1.0),
               small = (w < BESSEL_LARGE) & (x < 1.0);
    bessel_k y = { constant(0), constant(0) };
    if (any_of(large)) {
        const number r = constant(1) / w, vr = v * r, s = vr * vr, xr = x * r, l = log_quotient(v + w, x);
        const number half = log_quotient(w, constant(0.5)) * 0.5;
        y.log = fused(v, l, w * constant(-1)) + (debye_sum(w, s, r * constant(-1)) - half + 0.5723649429247001);
        y.slope = (w + xr * xr * (debye_slope(w, s, r * constant(-1)) + 0.5)) * constant(-1);
    }
    if (any_of(middle)) {
        const bessel_k f = k_integral(pick(middle, v, constant(0)), pick(middle, x, constant(1)));
        y.log = pick(middle, f.log, y.log), y.slope = pick(middle, f.slope, y.slope);
    }
    if (any_of(small)) {
        const bessel_k f = k_series(pick(small, v, constant(0)), pick(small, x, constant(0.5)));
        y.log = pick(small, f.log, y.log), y.slope = pick(small, f.slope, y.slope);
    }
    return y;
}

/* --------------------------------------------------------------------------------- ops, at limits as headers say */

FUNCTION number not_wrong(number v, number x, number y) {
    return pick((v >= 0.0) & (x >= 0.0) & ((v < BESSEL_INF) | (x < BESSEL_INF)), y, constant(BESSEL_NAN));
}

FUNCTION number special_log_iv(number v, number x) {
    number y = bessel_log_i(v, x, x);
    y = pick(x == 0.0, pick(v == 0.0, constant(0), constant(-BESSEL_INF)), y);
    y = pick(v == BESSEL_INF, constant(-BESSEL_INF), pick(x == BESSEL_INF, constant(BESSEL_INF), y));
    return not_wrong(v, x, y);
}

FUNCTION number special_log_iv_slope(number v, number x) {
    const number part = pick(x == 0.0, constant(BESSEL_INF), v / x); /* of a zero of either sign */
    const number y = pick(v == 0.0, constant(0), part) + bessel_ratio_i(v, x);
    return not_wrong(v, x, pick(v == BESSEL_INF, constant(BESSEL_INF), pick(x == BESSEL_INF, constant(1), y)));
}

FUNCTION number special_log_kv(number order, number x) {
    const number v = pick(order < 0.0, order * constant(-1), order);
    const number y = pick((x == 0.0) | (v == BESSEL_INF), constant(BESSEL_INF), bessel_of_k(v, x).log);
    return not_wrong(v, x, pick(x == BESSEL_INF, constant(-BESSEL_INF), y));
}

FUNCTION number special_log_kv_slope(number order, number x) {
    const number v = pick(order < 0.0, order * constant(-1), order);
    const number y = pick((x == 0.0) | (v == BESSEL_INF), constant(-BESSEL_INF), bessel_of_k(v, x).slope / x);
    return not_wrong(v, x, pick(x == BESSEL_INF, constant(-1), y));
}

FUNCTION number special_vmf_log_norm(number v, number x) {
    const number y = constant(-1.8378770664093453) - bessel_log_i(v, x, constant(6.283185307179586));
    return not_wrong(v, x, pick(x == BESSEL_INF, constant(-BESSEL_INF), y));
}

FUNCTION number special_vmf_slope(number v, number x) {
    return not_wrong(v, x, pick(x == BESSEL_INF, constant(-1), bessel_ratio_i(v, x) * constant(-1)));
}

#endif
