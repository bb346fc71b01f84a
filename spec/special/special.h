/* SPDX-License-Identifier: Apache-2.0 */
/* Modified Bessel functions in long double, for references: power series and quadrature below hypot(v, x) = 40, from
 * there Debye's expansions by Olver's recurrence. None of it is what kernels do (bessel.h), which also change over at
 * 24.
 *
 * Bounds of kernels, with u = 2^-53, w = hypot(v, x), xR = x I_(v+1)/I_v. A logarithm of a quotient is off by 2u of
 * itself, if it is above 2 by 1.4u.
 *
 * log I, w >= 24: w is off by 3u, which moves y by 3u w w/(v+w), since its two places partly cancel; v + w rounds, uv;
 * the logarithm by 2u of v l <= w + |y|; what is left, the last sum included, by 1.2u of w. In all 6u of w + |y|, and v
 * + xR is w but for 1/2. Below, with v log(x/2), log Gamma and log S as its parts: the first is a fused product of what
 * is off by 1.4u; Gamma's product of at most v + 1/2 exact factors by (v + 1/2)u; term k of the power series is rounded
 * 3 k times, and k is xR/2 on the average; sums by u of what they add. Parts are largest beside M = |y| + v + xR where
 * they cancel, at x = 0.66 v, v = 22: 44, 48 and 5 beside 27. There it is 8u M, else less.
 *
 * I_(v+1)/I_v, w >= 24: terms of one sign that are off by 8u at most. Below, D/A = S'/S: roundings of the divisors are
 * in both, and move the quotient by what the average k of D's terms is above that of A's, 1 at most: 4u. Those of the
 * two sums themselves are 7u each at most, where k is 12. In all 22u; its sum with v/x 24u.
 *
 * log K, w >= 24 as log I. Below, x >= 1: at t = k/9 a term's exp(v t) is off by 27 t u + v t u, exp(-x cosh t) by u of
 * its exponent and 2u. t is about asinh(v/x), or as wide as 1/sqrt(w): beside |y| + w + 1 that is most where all are
 * small, 9u; Euler and Maclaurin's error is 2^-60. x < 1: f_0 is a difference of 0.58 and 0.69 at most, off by 12u of
 * the result, and n steps of the recurrence of positive terms by 2nu. In all 12u.
 * Its derivative: what is common to terms of both sums cancels; where not, it counts by the spread of cosh t, 1/sqrt(w)
 * of itself: 8u. Of Temme's series 18u, and 6u for what follows. */
#ifndef TRINE_SPEC_SPECIAL_H
#define TRINE_SPEC_SPECIAL_H

#include <stdlib.h>

#include "spec/spec.h"

#define SHAPE "[p] [q] [r] n"
#define SIZES { "p: 1 2", "q: 1 3", "r: 1 0 2 5 67", "n: 0 1 3 8 17 64 251 1000" }
#define TYPES { "T=f64|f32" }

#define MOST_DIMENSION 0x1p40

#define LOG_TWO_PI 1.8378770664093454835606594728112353L
#define EULER 0.57721566490153286060651209008240243L
#define HALF_PI 1.5707963267948966192313216916397514L

/* Beyond it w and products with it may overflow. */
#define MOST_W 0x1p1000

static inline int64_t element_count(const trine_ref *ref) {
    return ref->dim[0] * ref->dim[1] * ref->dim[2] * ref->dim[3];
}

/* -------------------------------------------------------------------------------------------- w of 40 and beyond */

enum { OLVER = 22, NODES = 600 };

/* u_k(p) = p^k sum of u[k][i] p^2i; DLMF 10.41.9. And v_k, for derivatives, likewise (10.41.11). */
typedef struct olver {
    long double u[OLVER + 1][OLVER + 2], v[OLVER + 1][OLVER + 2];
    long double cosh[NODES]; /* of k/16 */
} olver;

static inline void olver_terms(olver *o) {
    *o = (olver){ .u[0][0] = 1, .v[0][0] = 1 };
    for (int k = 0; k < OLVER; k++)
        for (int i = 0; i <= k; i++) {
            const long double j = k + 2 * i, a = o->u[k][i];
            o->u[k + 1][i] += a * (j / 2 + 1 / (8 * (j + 1)));
            o->u[k + 1][i + 1] -= a * (j / 2 + 5 / (8 * (j + 3)));
        }
    for (int k = 1; k <= OLVER; k++)
        for (int i = 0; i <= k; i++) {
            const long double a = o->u[k - 1][i] * (0.5L + (k - 1 + 2 * i));
            o->v[k][i] += o->u[k][i] - a;
            o->v[k][i + 1] += a;
        }
    for (int k = 0; k < NODES; k++) o->cosh[k] = coshl(k / 16.0L);
}

/* sum over k >= 1 of row[k](s) r^k. */
static inline long double olver_sum(const long double row[][OLVER + 2], long double s, long double r) {
    long double sum = 0;
    for (int k = OLVER; k > 0; k--) {
        long double q = 0;
        for (int i = k; i >= 0; i--) q = q * s + row[k][i];
        sum = (sum + q) * r;
    }
    return sum;
}

/* -------------------------------------------------------------------------------------------------------- I_v(x) */

/* log Gamma(1 + v), v > -1, small results too: the power series of zeta(k)/k (DLMF 5.7.3). */
static inline long double log_gamma_above(long double v) {
    static const long double term[] = {
        0.822467033424113218236208L,  0.400685634386531428466579L,  0.270580808427784547879001L,
        0.207385551028673985266273L,  0.16955717699740818995242L,   0.144049896768846118119971L,
        0.125509669524743042422336L,  0.111334265869564690490873L,  0.100099457512781808533715L,
        0.0909540171458290422326093L, 0.0833538405461090040248865L, 0.0769325164113521914728271L,
        0.0714329462953613360592328L, 0.0666687058824204680329034L, 0.0625009551412130407419833L,
        0.0588239786586845823389573L, 0.0555557676274036111022142L
    };
    if (fabsl(v) > 0.0625L) return lgammal(1 + v);
    long double sum = 0;
    for (int k = (int)(sizeof term / sizeof *term) - 1; k >= 0; k--) sum = term[k] - v * sum;
    return v * (v * sum - EULER);
}

/* log S, and S'/S, of I_v = (x/2)^v/Gamma(v+1) S(x^2/4). */
typedef struct series {
    long double log, slope;
} series;

static inline series power_series(long double v, long double x) {
    const long double q = x * x / 4;
    long double term = 1, sum = 0, slope = 0;
    for (int k = 1; k < 400; k++) {
        slope += k * term / (k * (k + v));
        term *= q / (k * (k + v));
        sum += term;
        if (term < 0x1p-70L * sum && k * term < 0x1p-70L * q * slope) break;
    }
    return (series){ log1pl(sum), slope / (1 + sum) };
}

/* log(I_v(x) (b/x)^v). */
static inline long double log_i(const olver *o, double order, double at, long double b) {
    const long double v = order, x = at, w = hypotl(v, x);
    if (w < 40) return (v == 0 ? 0 : v * logl(b / 2)) - log_gamma_above(v) + power_series(v, x).log;
    const long double sum = log1pl(olver_sum(o->u, v / w * (v / w), 1 / w));
    return w - (v == 0 ? 0 : v * logl((v + w) / b)) - (LOG_TWO_PI + logl(w)) / 2 + sum;
}

/* I_(v+1)(x)/I_v(x): from Debye's derivative, or where v/x is most of that by the continued fraction (DLMF 10.33.1). */
static inline double ratio_i(const olver *o, double order, double at) {
    const long double v = order, x = at, w = hypotl(v, x);
    if (x == 0) return 0;
    if (w < 40) return (double)(x / 2 * power_series(v, x).slope);
    if (x > v / 2) {
        const long double s = v / w * (v / w), r = 1 / w;
        return (double)(w / x * (1 + olver_sum(o->v, s, r)) / (1 + olver_sum(o->u, s, r)) - v / x);
    }
    long double f = 0;
    for (int k = 40; k > 0; k--) f = 1 / (2 * (v + k) / x + f);
    return (double)f;
}

/* v + xR, nearly, of which errors are a part: R by Amos' bound (1974). */
static inline double moved_i(double v, double x) { return v + x * (x / (v + 0.5 + hypot(v + 1.5, x))); }

/* -------------------------------------------------------------------------------------------------------- K_v(x) */

/* log K_v(x), and x times its derivative. */
typedef struct part_k {
    long double log, slope;
} part_k;

/* The integral by the trapezoidal rule, from its largest term outwards; t from -Inf, exp(v t) in place of the cosine's
 * two halves. */
static inline part_k quadrature_k(const olver *o, long double v, long double x) {
    const long double w = hypotl(v, x), peak = asinhl(v / x), most = v * peak - w;
    const int step = w < 4 ? 2 : 1, centre = (int)(peak * 16);
    long double sum = 0, moment = 0;
    for (int way = 0; way < 2; way++)
        for (int k = way ? centre + step : centre; abs(k) < NODES; k += way ? step : -step) {
            const long double c = o->cosh[abs(k)], e = expl(v * k / 16 - x * c - most);
            sum += e, moment += e * c;
            if (e < 0x1p-72L) break;
        }
    return (part_k){ logl(sum * step / 32) + most, -x * (moment / sum) };
}

/* What K is of an x so small that the square of it is lost: 1/2 (Gamma(v) (x/2)^-v + Gamma(-v) (x/2)^v). */
static inline part_k limit_k(long double v, long double x) {
    const long double l = logl(2 / x);
    if (v >= 0.9L) return (part_k){ lgammal(v) + v * l - logl(2), -v };
    if (v < 0x1p-70L) return (part_k){ logl(l - EULER), -1 / (l - EULER) };
    const long double plus = log_gamma_above(v), minus = log_gamma_above(-v), z = v * l + (plus - minus) / 2;
    return (part_k){ (plus + minus) / 2 + logl(sinhl(z) / v), -v / tanhl(z) };
}

static inline part_k log_k(const olver *o, double order, double at) {
    const long double v = order, x = at, w = hypotl(v, x);
    if (w < 40) return x < 0x1p-36L ? limit_k(v, x) : quadrature_k(o, v, x);
    const long double s = v / w * (v / w), r = -1 / w, u = olver_sum(o->u, s, r);
    return (part_k){ -w + (v == 0 ? 0 : v * logl((v + w) / x)) + logl(HALF_PI / w) / 2 + log1pl(u),
                     -w * (1 + olver_sum(o->v, s, r)) / (1 + u) };
}

/* ------------------------------------------------------------------------------------------------------ gradients */

/* dx = dy slope of a float64 dy and slope, in float64: writes an element, its magnitude and its slack. Where the slope
 * or the product may overflow it may be anything. */
static inline void put_gradient(trine_ref *ref, const char *name, int64_t i, double dy, double slope) {
    const double dx = dy * slope;
    trine_ref_value(ref, name)[i] = dx;
    if (isfinite(dy) && (trine_finite_abs(slope) > 0x1p1020 || trine_finite_abs(dx) > 0x1p1020))
        trine_ref_magnitude(ref, name)[i] = INFINITY;
    else if (isinf(dy) && fabs(slope) < 0x1p-1020)
        trine_ref_magnitude(ref, name)[i] = slope == 0 ? 0 : INFINITY;
    if (!isfinite(dx)) return;
    trine_ref_magnitude(ref, name)[i] += fabs(dx);
    trine_ref_slack(ref, name)[i] = fabs(dy) * 0x1p-1072 + trine_smallest_normal(trine_ref_type(ref, "T"));
}

#endif
