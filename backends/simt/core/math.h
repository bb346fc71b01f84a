/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions of device code, right at zeros, infinities and NaN; results below 2^-126 may be 0. Errors in
 * units of 2^-24 of the result. */
#ifndef TRINE_SIMT_MATH_H
#define TRINE_SIMT_MATH_H

#include "simt.h"

/* log2(e) as two floats. */
#define LOG2E 1.44269502f
#define LOG2E_REST 1.92596299e-8f
#define LN2 0.693147182f

/* e^x for x <= 88, within 6: the product x log2(e) is taken with its rounding error, which is then multiplied in. */
DEVICE float exp_of(float x) {
    const float bounded = x < -104.0f ? -104.0f : x; /* there it is 0, and not Inf - Inf */
    const float t = bounded * LOG2E, rest = fused(bounded, LOG2E_REST, fused(bounded, LOG2E, -t));
    const float e = exp2_approx(t);
    return fused(e, rest * LN2, e);
}

/* ln x for x >= 0, within 4: x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and a minimax polynomial of f
 * (backends/cpu/core/vec_math.h). */
DEVICE float log_of(float x) {
    if (!(x > 0) || x == infinity()) return x == 0 ? -infinity() : x;
    const bool tiny = x < 0x1p-126f;
    const uint32_t bits = bits_of_float(tiny ? x * 0x1p23f : x);
    const int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    const float k = (float)(e - (tiny ? 23 : 0)), f = float_of_bits(bits - ((uint32_t)e << 23)) - 1.0f;
    float p = 6.74926788e-2f;
    p = fused(p, f, -1.16700977e-1f);
    p = fused(p, f, 1.18835486e-1f);
    p = fused(p, f, -1.24062337e-1f);
    p = fused(p, f, 1.42203584e-1f);
    p = fused(p, f, -1.66679889e-1f);
    p = fused(p, f, 2.00020716e-1f);
    p = fused(p, f, -2.50000089e-1f);
    p = fused(p, f, 3.33333135e-1f);
    const float f2 = f * f, low = fused(f2, -0.5f, fused(f2 * f, p, k * -2.12194440e-4f));
    return fused(k, 0x1.63p-1f, f + low);
}

/* 1/(1 + e^-x) and 1/(1 + e^x), small results too: the one is not 1 less the other. */
struct logistic {
    float of, of_minus;
};
DEVICE logistic logistic_by(float power, bool negative) { /* e^-|x|; is x negative? */
    const float r = reciprocal(1.0f + power), small = power * r;
    return { negative ? small : r, negative ? r : small };
}

/* Within 11. */
DEVICE logistic logistic_of(float x) { return logistic_by(exp_of(-magnitude(x)), x < 0); }
DEVICE float sigmoid(float x) { return logistic_of(x).of; }

/* Those of gelu's argument v = 2 sqrt(2/pi) (x + 0.044715 x^3), within 8 + 4 |v|: v log2(e) is rounded four times, and
 * no better known if v were computed first. */
DEVICE logistic gelu_logistic(float x) {
    const float t = x * fused(x * x, 0.102943240f, 2.30220819f);
    return logistic_by(exp2_approx(-magnitude(t)), t < 0);
}

/* tanh x within 8: a minimax polynomial below 0.625 (backends/cpu/core/vec_math.h). */
DEVICE float tanh_of(float x) {
    const float a = magnitude(x), a2 = a * a;
    float p = -5.69229620e-3f;
    p = fused(p, a2, 2.06281673e-2f);
    p = fused(p, a2, -5.37365153e-2f);
    p = fused(p, a2, 1.33314058e-1f);
    p = fused(p, a2, -3.33332807e-1f);
    const float twice = a > 10 ? 20 : a + a,
                y = a < 0.625f ? fused(a2 * a, p, a) : 1.0f - 2.0f / (exp_of(twice) + 1.0f);
    return x < 0 ? -y : y;
}

/* |x|, as far as powers of e^(-x^2/2) are not 0: Phi(-14.6) rounds to that. */
DEVICE float bounded_magnitude(float x) { return -larger(-magnitude(x), -14.6f); }

/* Of the normal distribution: its function at -|x|, and its density times sqrt(2 pi). Phi(-a) = exp(-a^2/2) P(a)/Q(a),
 * all coefficients positive; the quotient is within 0.7 (1 + a^2) up to 13.2, beyond which the power is 0. The
 * exponent's rounding costs 1.5 a^2, which moves results less than rounding x would. NaN gives numbers. */
struct normal_tail {
    float cdf, power;
};
DEVICE normal_tail normal_tail_of(float a) {
    const float e = exp2_approx(a * (a * -0.721347520f));
    float p = 0.0139801381f;
    p = fused(p, a, 0.106339224f);
    p = fused(p, a, 0.338643521f);
    p = fused(p, a, 0.49999997f);
    float q = 0.0350565426f;
    q = fused(q, a, 0.266118973f);
    q = fused(q, a, 0.889719844f);
    q = fused(q, a, 1.47516918f);
    return { e * (p * reciprocal(fused(q, a, 1.0f))), e };
}

/* The function and the density at x. */
struct normal {
    float cdf, pdf;
};
DEVICE normal normal_of(float x) {
    const normal_tail tail = normal_tail_of(bounded_magnitude(x));
    return { x < 0 ? tail.cdf : 1.0f - tail.cdf, tail.power * 0.398942280f };
}

/* x Phi(x) = max(x, 0) - |x| Phi(-|x|), as good as Phi is. NaN and -Inf give NaN by the maximum, a sum. */
template <class T> DEVICE float normal_gate(float x) {
    const float a = bounded_magnitude(x);
    return fused(-a, normal_tail_of(a).cdf, x + larger(-x, 0.0f));
}

/* To be rounded to bf16 it may be off by 2^-16 of itself besides: rounding moves it by 2^-8 of the power of two below
 * it at most, and may by 2^-8 of itself; where that is nearly the same, just above a power of two, what rounds the
 * furthest, the middle of two of bf16, is 2^-8 away from it. The polynomial of t = 1/(1 + 0.36 a) is within 0.63 (2^-16
 * + 6 (1 + a^2) 2^-24), and no a makes it infinite, so that only a large x has to be bounded: -Inf gives NaN. */
template <> DEVICE float normal_gate<bf16>(float x) {
    const float a = magnitude(-larger(-x, -14.6f)), t = reciprocal(fused(a, 0.36f, 1.0f));
    float p = -0.0985524803f;
    p = fused(p, t, 0.254204303f);
    p = fused(p, t, 0.0356418528f);
    p = fused(p, t, 0.168259412f);
    p = fused(p, t, 0.14026618f);
    p = fused(p, t, 0.000175827125f);
    return fused(-a, exp2_approx(a * (a * -0.721347520f)) * p, not_negative(x));
}

/* Does that serve as a factor of y? Not where bf16 is subnormal: a rounding is more than 2^-8 of y there. (x Phi(x)
 * itself is x/2 then, a number of bf16 or the middle of two.) */
template <class T> DEVICE bool normal_gate_serves(float) { return true; }
template <> DEVICE bool normal_gate_serves<bf16>(float y) { return (bits_of_float(y) << 1) - 1 >= 0x00ffffff; }

#endif
