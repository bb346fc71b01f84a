/* SPDX-License-Identifier: Apache-2.0 */
/* What a chain's steps compute, of vectors of floats and of doubles: the same names, but for their ends. */
#ifndef TRINE_CPU_CHAIN_VALUES_H
#define TRINE_CPU_CHAIN_VALUES_H

#include "backends/cpu/core/doubles.h"
#include "backends/cpu/core/row.h"
#include "backends/cpu/core/vec_math.h"
#include "backends/cpu/elementwise/gelu.h"
#include "spec/chain/functions.h"

INLINE vf set_f32(float x) { return vset(x); }
INLINE vf abs_f32(vf x) { return vabs(x); }
INLINE vf sqrt_f32(vf x) { return vsqrt(x); }
INLINE vf exp_f32(vf x) { return vexp(x); }
INLINE vf log_f32(vf x) { return vlog(x); }
INLINE vf tanh_f32(vf x) { return vtanh(x); }
INLINE vf erf_f32(vf x) { return verf(x); }
INLINE vf sigmoid_f32(vf x) { return vsigmoid(x); }
INLINE vf gelu_f32(vf x) { return vgelu(TRINE_GELU_ERF, x); }
INLINE vf relu_f32(vf x) { return vmax(vzero(), x); }
INLINE vf multiply_add_f32(vf a, vf b, vf c) { return vfma(a, b, c); }
INLINE vf choose_f32(vi mask, vf a, vf b) { return vsel(mask, a, b); }
INLINE vf one_f32(vi mask) { return (vf)(mask & (vi)vset(1.0f)); }
INLINE vf to_f32_f32(vf x) { return x; }
INLINE vf to_bf16_f32(vf x) { return vf_from_bf16(vf_to_bf16(x)); }
INLINE vf to_f16_f32(vf x) { return vf_from_f16(vf_to_f16(x)); }

/* In place of NaN, which vmax() and vmin() would not keep from their first operand. */
INLINE vf larger_f32(vf a, vf b) { return vsel(a != a, a, vmax(a, b)); }
INLINE vf smaller_f32(vf a, vf b) { return vsel(a != a, a, vmin(a, b)); }

/* Beyond 2^23 all are integers. */
INLINE vf floor_f32(vf x) {
    const vi small = vabs(x) < 0x1p23f;
    const vf t = __builtin_convertvector(__builtin_convertvector(vsel(small, x, vzero()), vi), vf);
    return vsel(small, vcopysign(vabs(t - one_f32(t > x)), x), x);
}

/* x / (1 + e^-v): a factor below 2^-126 may be 0, which spares scaling twice, but -Inf gives NaN. */
INLINE vf chain_gate(vf x, vf v) {
    const vf a = vabs(v);
    vi n;
    const vf p = vexp_reduced(vmax(vset(-87.34f), -a), &n);
    const vf e = vsel(a > 87.34f, vzero(), p * vbits((n + 127) << 23));
    return x * (vsel(v < vzero(), e, vset(1.0f)) / (1.0f + e));
}
INLINE vf silu_f32(vf x) { return chain_gate(x, x); }
INLINE vf gelu_tanh_f32(vf x) { return chain_gate(x, vgelu_argument(x)); }

/* Of reductions: the first m elements, and `rest` in place of the others; the sum and the largest, by halves. */
INLINE vf masked_f32(vf x, int m, float rest) { return row_mask(x, m, rest); }
INLINE float all_sum_f32(vf x) { return vhsum(x); }
INLINE float all_largest_f32(vf x) { return vhmax(x); }
INLINE bool has_nan_f32(vf x) { return vhasnan(x); }

INLINE number set_f64(double x) { return constant(x); }
INLINE number abs_f64(number x) { return wide_size(x); }
INLINE number sqrt_f64(number x) { return root(x); }
INLINE number exp_f64(number x) { return wide_exp(x); }
INLINE number log_f64(number x) { return wide_log(x); }
INLINE number tanh_f64(number x) { return wide_tanh(x); }
INLINE number erf_f64(number x) { return wide_erf(x); }
INLINE number sigmoid_f64(number x) { return wide_sigmoid(x); }
INLINE number silu_f64(number x) { return x * wide_sigmoid(x); }
INLINE number gelu_f64(number x) { return wide_gelu(x); }
INLINE number gelu_tanh_f64(number x) { return wide_gelu_tanh(x); }
INLINE number relu_f64(number x) { return pick(x < 0.0, constant(0), x); }
INLINE number floor_f64(number x) { return wide_floor(x); }
INLINE number multiply_add_f64(number a, number b, number c) { return fused(a, b, c); }
INLINE number choose_f64(mask m, number a, number b) { return pick(m, a, b); }
INLINE number one_f64(mask m) { return wide_one(m); }
INLINE number to_f32_f64(number x) { return wide_f32(x); }
INLINE number to_bf16_f64(number x) { return wide_bf16(x); }
INLINE number to_f16_f64(number x) { return wide_f16(x); }
INLINE number larger_f64(number a, number b) { return wide_larger(a, b); }
INLINE number smaller_f64(number a, number b) { return wide_smaller(a, b); }

INLINE number masked_f64(number x, int m, double rest) {
    for (int i = m; i < DOUBLES; i++) x[i] = rest;
    return x;
}
INLINE double all_sum_f64(number x) {
    for (int half = DOUBLES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) x[i] += x[i + half];
    return x[0];
}
INLINE double all_largest_f64(number x) {
    double most = x[0];
    for (int i = 1; i < DOUBLES; i++) most = x[i] > most ? x[i] : most;
    return most;
}
INLINE bool has_nan_f64(number x) { return vany((vi)(x != x)); }

#endif
