/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions in float64 for kernels, of what spec/doubles.h names and, in the words of who includes this,
 * power_below(x), the largest power of two that is not above |x|, 0 where that is subnormal, and with_sign(x, of), |x|
 * with the sign of the other.
 *
 * All are right at zeros, infinities, NaN, subnormal arguments and on overflow. Errors in units of 2^-53 of the result,
 * but for subnormal ones. */
#ifndef TRINE_SPEC_CHAIN_FUNCTIONS_H
#define TRINE_SPEC_CHAIN_FUNCTIONS_H

#include "spec/doubles.h"
#include "terms.h"

#define WIDE_LARGEST 0x1.fffffffffffffp1023

POLYNOMIAL(wide_exp_terms, CHAIN_EXP)
POLYNOMIAL(wide_log_terms, CHAIN_LOG)
POLYNOMIAL(wide_tanh_terms, CHAIN_TANH)
POLYNOMIAL(wide_erf_terms, CHAIN_ERF)
POLYNOMIAL(wide_tail_terms, CHAIN_TAIL)

FUNCTION number wide_size(number x) { return with_sign(x, constant(1)); }
FUNCTION number wide_one(mask m) { return pick(m, constant(1), constant(0)); }
FUNCTION number wide_smaller(number a, number b) { return pick((a < b) | (a != a), a, b); }
FUNCTION number wide_larger(number a, number b) { return pick((a > b) | (a != a), a, b); }

/* e^x = 2^k times the result, k + 1.5 2^52 = *shifted. */
FUNCTION number wide_exp_reduced(number x, number *shifted) {
    *shifted = fused(x, constant(1.4426950408889634), constant(ROUNDING));
    const number k = *shifted - ROUNDING;
    return wide_exp_terms(fused(k, constant(-LN2_LOW), fused(k, constant(-LN2_HIGH), x)));
}

/* Within 2. The power of two is multiplied in by halves, so that neither is beyond what is normal; or at once, |x| <=
 * 708. */
FUNCTION number wide_exp(number x) {
    number shifted;
    const number p = wide_exp_reduced(pick(x < -746.0, constant(-746), pick(x > 710.0, constant(710), x)), &shifted);
    const number half = fused(shifted - ROUNDING, constant(0.5), constant(ROUNDING));
    return p * two_to_power(constant(1), half) * two_to_power(constant(1), shifted - (half - ROUNDING));
}
FUNCTION number wide_exp_near(number x) {
    number shifted;
    const number p = wide_exp_reduced(x, &shifted);
    return p * two_to_power(constant(1), shifted);
}

/* Within 3: x = 2^k m, and ln m is 2 artanh((m-1)/(m+1)). */
FUNCTION number wide_log(number x) {
    const mask tiny = x < 0x1p-1022;
    const number normal = pick(tiny, x * 0x1p54, x);
    const number k = exponent_of(normal) - pick(tiny, constant(54), constant(0)), m = with_exponent(normal);
    const number z = (m - 1.0) / (m + 1.0), s = z * z;
    const number low = fused(z * s, wide_log_terms(s), k * LN2_LOW);
    number y = fused(k, constant(LN2_HIGH), z + z + low);
    y = pick(x > WIDE_LARGEST, x, y);
    y = pick(x == 0.0, constant(-1) / constant(0), y);
    return pick((x < 0.0) | (x != x), constant(0) / constant(0), y);
}

/* Within 5: tanh 20 rounds to 1. */
FUNCTION number wide_tanh(number x) {
    const number a = wide_size(x), s = a * a, small = fused(a * s, wide_tanh_terms(s), a);
    const number e = wide_exp_near(pick(a > 20.0, constant(40), a + a)), large = constant(1) - constant(2) / (e + 1.0);
    return with_sign(pick(a < 0.55, small, large), x);
}

/* Phi(-a), 0 <= a <= 40, within 9 of it, if `power` is e^(-a^2/2). */
FUNCTION number wide_tail(number a, number power) {
    const number r = constant(1) / (a + 5.0);
    return power * (wide_tail_terms((a - 5.0) * r) * r);
}

/* Within 5: erf 6 rounds to 1. */
FUNCTION number wide_erf(number x) {
    const number a = wide_size(x), small = fused(a, wide_erf_terms(a * a), a), b = pick(a > 6.0, constant(6), a);
    const number large = constant(1) - wide_tail(b * 1.4142135623730951, wide_exp_near(b * b * -1.0)) * 2.0;
    return with_sign(pick(a < 0.95, small, large), x);
}

/* 1/(1 + e^-x), within 5. */
FUNCTION number wide_sigmoid(number x) {
    const number e = wide_exp(wide_size(x) * -1.0);
    return pick(x < 0.0, e, constant(1)) / (e + 1.0);
}

/* x Phi(x), within 11, and x^2 besides where x < 0. */
FUNCTION number wide_gelu(number x) {
    const number size = wide_size(x), a = pick(size > 40.0, constant(40), size),
                 tail = wide_tail(a, wide_exp(a * a * -0.5));
    return x * pick(x < 0.0, tail, constant(1) - tail);
}

/* x sigmoid(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3), which is within 5. */
FUNCTION number wide_gelu_tanh(number x) {
    return x * wide_sigmoid(x * fused(x * x, constant(0.07135481627260025), constant(1.5957691216057308)));
}

/* Beyond 2^52 all are integers. */
FUNCTION number wide_floor(number x) {
    const number a = wide_size(x), near = a + 0x1p52 - 0x1p52;
    const number down = near - wide_one(near > a), up = near + wide_one(near < a);
    return pick(a < 0x1p52, with_sign(pick(x < 0.0, up, down), x), x);
}

/* x once rounded, to nearest even, to a type of `bits` bits whose numbers are normal from `least` on: what is added has
 * its last bit where the result has it. */
FUNCTION number wide_rounded(number x, int bits, double least, double largest) {
    const number a = wide_size(x), below = power_below(a), power = pick(below < least, constant(least), below);
    const number much = power * (1.5 * (double)((int64_t)1 << (53 - bits)));
    const number y = pick(a < 0x1p200, a + much - much, a);
    return with_sign(pick(y > largest, constant(1) / constant(0), y), x);
}
FUNCTION number wide_f32(number x) { return wide_rounded(x, 24, 0x1p-126, 0x1.fffffep127); }
FUNCTION number wide_bf16(number x) { return wide_rounded(x, 8, 0x1p-126, 0x1.fep127); }
FUNCTION number wide_f16(number x) { return wide_rounded(x, 11, 0x1p-14, 65504); }

#endif
