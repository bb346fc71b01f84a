/* SPDX-License-Identifier: Apache-2.0 */
/* gelu and its derivative in float64, and what the errors of f32 multiply, for references of ops made of them. */
#ifndef TRINE_SPEC_GELU_H
#define TRINE_SPEC_GELU_H

#include <trine/elementwise.h>

#include "elementwise.h"

#define PI 3.14159265358979323846

/* (1 + tanh(w))/2 = sigmoid(2 w); this is 2 w. */
static inline double gelu_argument(double x) { return 2 * sqrt(2 / PI) * (x + 0.044715 * x * x * x); }

/* The normal distribution function, small results too. */
static inline double normal_cdf(double x) { return erfc(-x * sqrt(0.5)) / 2; }

/* A value that a kernel computes in f32 from a finite x, what its relative errors multiply, and what subnormals may
 * cost besides. */
typedef struct gelu_part {
    double value, size, loss;
} gelu_part;

/* gelu(x), with u = 2^-24. Both forms are x times a distribution function, whose small values must be right too: 1 +
 * tanh and 1 + erf are not.
 *
 * tanh: y = x s, s = sigmoid(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3). All terms of v have one sign: two rounded
 * constants, x^2, one product and one sum each, in all at most 7u of v, which moves s by 7u |v| (1 - s) of itself. With
 * s to 11u and the product: within 12u of |y| (1 + |v| (1 - s)).
 * erf: y = x F, F(x) = erfc(-x/sqrt 2)/2. The argument is off by 2u, which moves F by 2u |x| f(x) of 1, f the density:
 * for x < 0 at most 2u (1 + x^2) of F (since f(x) < F(x) (|x| + 1/|x|), Gordon 1941), for x > 0 at most u. erfc to 4
 * ulp, 8u, and the product: within 12u of |y| (1 + x^2), or of |y|. */
static inline gelu_part gelu_of(int32_t form, double x) {
    const double v = gelu_argument(x), s = form == TRINE_GELU_TANH ? sigmoid(v) : normal_cdf(x), y = x * s;
    const double moved = form == TRINE_GELU_TANH ? fabs(v) * sigmoid(-v) : x < 0 ? x * x : 0;
    return (gelu_part){ y, fabs(y) * (1 + moved), lost(s) * fabs(x) + TINY };
}

/* Its derivative; sigmoid, v, F and f as above.
 *
 * tanh: slope = s + x s t v' with t = 1 - s = sigmoid(-v) and v' = 2 sqrt(2/pi) (1 + 3 0.044715 x^2). s and t are off
 * by 11u of themselves (t by subtraction by 11u of 1: not allowed for here, as x s v' multiplies it), and by 7u |v| t
 * and 7u |v| s through v; v' by 6u. So s t by 23u + 7u |v|, the second term by 33u + 7u |v| of itself with its
 * products, the first by 11u + 7u |v| t; one more sum: within 35u of s (1 + |v| t) + |x| s t v' (1 + |v|).
 * erf: slope = F + x f. F by 10u times 1 + x^2 for x < 0, by 10u for x > 0. f = exp(-x^2/2)/sqrt(2 pi): the
 * exponent is off by u x^2/2, exp by 8u, the constant and two products by 3u: 12u (1 + x^2) of |x| f. With the sum
 * within 15u, and the 35u are not needed. */
static inline gelu_part gelu_slope(int32_t form, double x) {
    if (form == TRINE_GELU_TANH) {
        const double v = gelu_argument(x), s = sigmoid(v), t = sigmoid(-v),
                     dv = 2 * sqrt(2 / PI) * (1 + 3 * 0.044715 * x * x);
        return (gelu_part){ s + x * (s * t * dv), s * (1 + fabs(v) * t) + fabs(x) * (s * t * dv * (1 + fabs(v))),
                            lost(s) + fabs(x) * dv * (lost(s) * t + s * lost(t)) + TINY * (1 + fabs(x)) };
    }
    const double cdf = normal_cdf(x), pdf = exp(-x * x / 2) / sqrt(2 * PI), square = 1 + x * x;
    return (gelu_part){ cdf + x * pdf, (x < 0 ? cdf * square : cdf) + fabs(x) * (pdf * square),
                        lost(cdf) + fabs(x) * lost(pdf) + TINY };
}

#endif
