/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a matrix product on the device: from sums to act(alpha scales s + beta c + bias) in d. */
#ifndef TRINE_CUDA_MATMUL_FINISH_H
#define TRINE_CUDA_MATMUL_FINISH_H

#include <trine/ops.h>

#include "backends/simt/math.h"
#include "matmul.h"

/* The types of elements that are no floats of up to 32 bits. */
struct f64 {
    using bits = double;
    static DEVICE double get(double x) { return x; }
    static DEVICE double put(double x) { return x; }
};
struct i32 {
    using bits = int32_t;
    static DEVICE int32_t get(int32_t x) { return x; }
    static DEVICE int32_t put(int32_t x) { return x; }
};

/* Q blocks of 4 consecutive elements of d, rows `step` apart. */
struct matmul_block {
    int64_t batch, row, step, column;
    int64_t m, n; /* of d */
};

/* Calls `each(sum, q, i)` for those that are in d. */
template <int Q, class Sum, class Each> DEVICE void matmul_each(Sum (&x)[Q][4], const matmul_block &b, Each each) {
#pragma unroll
    for (int q = 0; q < Q; q++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (b.row + q * b.step < b.m && b.column + i < b.n) each(x[q][i], q, i);
}

DEVICE float matmul_times(float factor, float x) { return factor * x; }
DEVICE int32_t matmul_times(float factor, int32_t x) { return (int32_t)((uint32_t)(int32_t)factor * (uint32_t)x); } /* modulo 2^32; the factor is an integer */
DEVICE float matmul_plus(float factor, float c, float x) { return fused(factor, c, x); }
DEVICE double matmul_plus(float factor, double c, double x) { return x + (double)factor * c; }
DEVICE int32_t matmul_plus(float factor, int32_t c, int32_t x) { return (int32_t)((uint32_t)x + (uint32_t)(int32_t)factor * (uint32_t)c); }

/* What multiplies a row's sums, or a column's; 1 beyond d. */
DEVICE float matmul_scale_at(const matmul_scales &s, int64_t batch, int64_t at, int64_t end) {
    return s.data && at < end ? s.data[batch * s.batch + at * s.step] : 1;
}

/* alpha and the scales, in one order in all ends: alpha by that of the row, by that of the column. Sums of i8 have no scales. */
template <int Q, class Sum> DEVICE void matmul_scale(Sum (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    if constexpr (Sum(0.5) != 0) {
        Sum column[4];
#pragma unroll
        for (int i = 0; i < 4; i++) column[i] = matmul_scale_at(t.columns, b.batch, b.column + i, b.n);
#pragma unroll
        for (int q = 0; q < Q; q++) {
            const Sum row = Sum(t.alpha) * matmul_scale_at(t.rows, b.batch, b.row + q * b.step, b.m);
#pragma unroll
            for (int i = 0; i < 4; i++) x[q][i] = row * column[i] * x[q][i];
        }
    } else {
#pragma unroll
        for (int q = 0; q < Q; q++)
#pragma unroll
            for (int i = 0; i < 4; i++) x[q][i] = matmul_times(t.alpha, x[q][i]);
    }
}

template <class E, int Q, class Sum> DEVICE void matmul_add_c(Sum (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    const typename E::bits *const c = (const typename E::bits *)t.c + b.batch * t.c_batch + b.row * t.c_row + b.column * t.c_column;
    matmul_each(x, b, [&](Sum &s, int q, int i) { s = matmul_plus(t.beta, E::get(c[q * b.step * t.c_row + i * t.c_column]), s); });
}
template <class E, int Q, class Sum> DEVICE void matmul_add_bias(Sum (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    const typename E::bits *const bias = (const typename E::bits *)t.bias + b.column;
    matmul_each(x, b, [&](Sum &s, int, int i) { s = matmul_plus(1, E::get(bias[i]), s); });
}

DEVICE float matmul_gelu_tanh(float x) { return x * sigmoid(x * fused(x * x, 0.0713548163f, 1.59576912f)); }
DEVICE float matmul_gelu_erf(float x) { return x * normal_of(x).cdf; }
DEVICE float matmul_silu(float x) { return x * sigmoid(x); }
DEVICE double matmul_gelu_tanh(double x) { return x / (1 + exp(-1.5957691216057307117598 * (x + 0.044715 * x * x * x))); }
DEVICE double matmul_gelu_erf(double x) { return x * 0.5 * erfc(x * -0.70710678118654752440084); }
DEVICE double matmul_silu(double x) { return x / (1 + exp(-x)); }
template <int Q, class Sum> DEVICE void matmul_activate(Sum (&x)[Q][4], int32_t activation, const matmul_block &b) {
    if (activation == TRINE_ACTIVATION_RELU) matmul_each(x, b, [](Sum &s, int, int) { s = s < 0 ? 0 : s; });
    if constexpr (Sum(0.5) != 0) { /* sums of i8 know no others */
        if (activation == TRINE_ACTIVATION_GELU_TANH) matmul_each(x, b, [](Sum &s, int, int) { s = matmul_gelu_tanh(s); });
        if (activation == TRINE_ACTIVATION_GELU_ERF) matmul_each(x, b, [](Sum &s, int, int) { s = matmul_gelu_erf(s); });
        if (activation == TRINE_ACTIVATION_SILU) matmul_each(x, b, [](Sum &s, int, int) { s = matmul_silu(s); });
    }
}

template <class E, int Q, class Sum> DEVICE void matmul_store(Sum (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    using Bits = typename E::bits;
    Bits *const d = (Bits *)t.d + b.batch * t.d_batch + b.row * t.d_row + b.column;
    if (t.wide && b.column + 4 <= b.n) {
#pragma unroll
        for (int q = 0; q < Q; q++) {
            Bits bits[4];
#pragma unroll
            for (int i = 0; i < 4; i++) bits[i] = E::put(x[q][i]);
            if (b.row + q * b.step < b.m) store_whole(bits, d + q * b.step * t.d_row);
        }
    } else {
        matmul_each(x, b, [&](Sum &s, int q, int i) { d[q * b.step * t.d_row + i] = E::put(s); });
    }
}

/* Four sums from shared memory. */
template <class Sum> DEVICE void matmul_take(Sum (&x)[4], const Sum *from) {
    const packed<Sum, 4> four = *(const packed<Sum, 4> *)from;
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = four.v[i];
}

/* Sums to d: one decision on types and steps for the whole block. */
template <class E, int Q, class Sum> DEVICE void matmul_finish_as(Sum (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    matmul_scale(x, t, b);
    if (t.c) matmul_add_c<E>(x, t, b);
    if (t.bias) matmul_add_bias<E>(x, t, b);
    if (t.activation) matmul_activate(x, t.activation, b);
    matmul_store<E>(x, t, b);
}
template <int Q> DEVICE void matmul_finish(double (&x)[Q][4], const matmul_target &t, const matmul_block &b) { matmul_finish_as<f64>(x, t, b); }
template <int Q> DEVICE void matmul_finish(int32_t (&x)[Q][4], const matmul_target &t, const matmul_block &b) { matmul_finish_as<i32>(x, t, b); }
template <int Q> DEVICE void matmul_finish(float (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    matmul_scale(x, t, b);
    if (t.c && t.type == MATMUL_F32) matmul_add_c<f32>(x, t, b);
    if (t.c && t.type == MATMUL_F16) matmul_add_c<f16>(x, t, b);
    if (t.c && t.type == MATMUL_BF16) matmul_add_c<bf16>(x, t, b);
    if (t.bias && t.bias_type == MATMUL_F32) matmul_add_bias<f32>(x, t, b);
    if (t.bias && t.bias_type == MATMUL_F16) matmul_add_bias<f16>(x, t, b);
    if (t.bias && t.bias_type == MATMUL_BF16) matmul_add_bias<bf16>(x, t, b);
    if (t.activation) matmul_activate(x, t.activation, b);
    if (t.type == MATMUL_F32) matmul_store<f32>(x, t, b);
    if (t.type == MATMUL_F16) matmul_store<f16>(x, t, b);
    if (t.type == MATMUL_BF16) matmul_store<bf16>(x, t, b);
}

#endif
