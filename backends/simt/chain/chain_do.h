/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of a chain compute on devices. */
#ifndef TRINE_SIMT_CHAIN_DO_H
#define TRINE_SIMT_CHAIN_DO_H

#include "backends/simt/core/doubles.h"
#include "backends/simt/core/math.h"
#include "spec/chain/functions.h"
#include "spec/chain/program.h"

DEVICE float chain_smaller(float a, float b) { return a != a ? a : b < a || b != b ? b : a; }
DEVICE float chain_larger(float a, float b) { return a != a ? a : b > a || b != b ? b : a; }
DEVICE double chain_smaller(double a, double b) { return wide_smaller(a, b); }
DEVICE double chain_larger(double a, double b) { return wide_larger(a, b); }
struct chain_least {
    template <class Real> DEVICE Real operator()(Real a, Real b) const { return chain_smaller(a, b); }
};
struct chain_most {
    template <class Real> DEVICE Real operator()(Real a, Real b) const { return chain_larger(a, b); }
};

/* exp_of() up to where it overflows: the power of two stays below 2^128, and what is beyond is with the rest, which
 * makes Inf of it. */
DEVICE float chain_exp(float x) {
    const float bounded = x < -104.0f ? -104.0f : x, t = bounded * LOG2E, s = t > 0x1.fffffep6f ? 0x1.fffffep6f : t,
                rest = fused(bounded, LOG2E_REST, fused(bounded, LOG2E, -s)), e = exp2_approx(s);
    return fused(e, rest * LN2, e);
}

/* Within 8: powers of x^2 below 0.95; above, 1 - exp(-p(x)) (backends/cpu/core/vec_math.h). */
DEVICE float chain_erf(float x) {
    const float a = magnitude(x), a2 = a * a;
    float s = 8.00277485e-5f;
    s = fused(s, a2, -8.05080403e-4f);
    s = fused(s, a2, 5.19246049e-3f);
    s = fused(s, a2, -2.68557407e-2f);
    s = fused(s, a2, 1.12836257e-1f);
    s = fused(s, a2, -3.76126289e-1f);
    s = fused(s, a2, 1.28379166e-1f);
    const float b = a > 4.0f ? 4.0f : a; /* erf 4 rounds to 1 */
    float q = -1.98213078e-4f;
    q = fused(q, b, 3.06544686e-3f);
    q = fused(q, b, -2.23151091e-2f);
    q = fused(q, b, 1.04113571e-1f);
    q = fused(q, b, 6.36976123e-1f);
    q = fused(q, b, 1.12779725f);
    q = fused(q, b, 1.66444806e-4f);
    const float y = a < 0.95f ? fused(s, a, a) : 1.0f - exp_of(-q);
    return x < 0 ? -y : y;
}

/* Beyond 2^23 all are integers. */
DEVICE float chain_floor(float x) {
    if (!(magnitude(x) < 0x1p23f)) return x;
    const float t = (float)(int32_t)x, y = t > x ? t - 1.0f : t;
    return y == 0 ? x * 0.0f : y;
}

DEVICE float chain_do(uint32_t op, float a, float b, float c, float n) {
    switch (op) {
    case CHAIN_NEG: return -a;
    case CHAIN_ABS: return magnitude(a);
    case CHAIN_SQRT: return square_root(a);
    case CHAIN_RSQRT: return 1.0f / square_root(a);
    case CHAIN_EXP: return chain_exp(a);
    case CHAIN_LOG: return a < 0 ? not_a_number() : log_of(a);
    case CHAIN_TANH: return tanh_of(a);
    case CHAIN_ERF: return chain_erf(a);
    case CHAIN_SIGMOID: return sigmoid(a);
    case CHAIN_SILU: return a * sigmoid(a);
    case CHAIN_GELU: return normal_gate<f32>(a);
    case CHAIN_GELU_TANH: return a * gelu_logistic(a).of;
    case CHAIN_RELU: return a < 0 ? 0.0f : a;
    case CHAIN_FLOOR: return chain_floor(a);
    case CHAIN_TO_F32: return a;
    case CHAIN_TO_BF16: return rounded<bf16>(a);
    case CHAIN_TO_F16: return rounded<f16>(a);
    case CHAIN_ADD: return a + b;
    case CHAIN_SUB: return a - b;
    case CHAIN_MUL: return a * b;
    case CHAIN_DIV: return a / b;
    case CHAIN_MIN: return chain_smaller(a, b);
    case CHAIN_MAX: return chain_larger(a, b);
    case CHAIN_LT: return a < b;
    case CHAIN_LE: return a <= b;
    case CHAIN_EQ: return a == b;
    case CHAIN_NE: return a != b;
    case CHAIN_FMA: return fused(a, b, c);
    case CHAIN_SELECT: return a != 0 ? b : c;
    default: return a / n; /* CHAIN_OVER_N */
    }
}

/* The same in f64. */
DEVICE double chain_do(uint32_t op, double a, double b, double c, double n) {
    switch (op) {
    case CHAIN_NEG: return -a;
    case CHAIN_ABS: return wide_size(a);
    case CHAIN_SQRT: return square_root(a);
    case CHAIN_RSQRT: return 1.0 / square_root(a);
    case CHAIN_EXP: return wide_exp(a);
    case CHAIN_LOG: return wide_log(a);
    case CHAIN_TANH: return wide_tanh(a);
    case CHAIN_ERF: return wide_erf(a);
    case CHAIN_SIGMOID: return wide_sigmoid(a);
    case CHAIN_SILU: return a * wide_sigmoid(a);
    case CHAIN_GELU: return wide_gelu(a);
    case CHAIN_GELU_TANH: return wide_gelu_tanh(a);
    case CHAIN_RELU: return a < 0 ? 0.0 : a;
    case CHAIN_FLOOR: return wide_floor(a);
    case CHAIN_TO_F32: return wide_f32(a);
    case CHAIN_TO_BF16: return wide_bf16(a);
    case CHAIN_TO_F16: return wide_f16(a);
    case CHAIN_ADD: return a + b;
    case CHAIN_SUB: return a - b;
    case CHAIN_MUL: return a * b;
    case CHAIN_DIV: return a / b;
    case CHAIN_MIN: return chain_smaller(a, b);
    case CHAIN_MAX: return chain_larger(a, b);
    case CHAIN_LT: return a < b;
    case CHAIN_LE: return a <= b;
    case CHAIN_EQ: return a == b;
    case CHAIN_NE: return a != b;
    case CHAIN_FMA: return fused(a, b, c);
    case CHAIN_SELECT: return a != 0 ? b : c;
    default: return a / n; /* CHAIN_OVER_N */
    }
}

#endif
