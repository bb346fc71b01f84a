/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a matrix product on the device: from sums to act(alpha scales s + beta c + bias) in d. */
#ifndef TRINE_CUDA_MATMUL_FINISH_H
#define TRINE_CUDA_MATMUL_FINISH_H

#include <trine/matmul.h>

#include "backends/simt/core/math.h"
#include "matmul.h"

/* Q blocks of 4 consecutive elements of d, rows `step` apart. */
struct matmul_block {
    int64_t batch, row, step, column;
    int64_t m, n; /* of d */
};

DEVICE float matmul_times(float factor, float x) { return factor * x; }
/* modulo 2^32; the factor is an integer */
DEVICE int32_t matmul_times(float factor, int32_t x) { return (int32_t)((uint32_t)(int32_t)factor * (uint32_t)x); }
DEVICE float matmul_plus(float factor, float c, float x) { return fused(factor, c, x); }
DEVICE double matmul_plus(float factor, double c, double x) { return x + (double)factor * c; }
DEVICE int32_t matmul_plus(float factor, int32_t c, int32_t x) {
    return (int32_t)((uint32_t)x + (uint32_t)(int32_t)factor * (uint32_t)c);
}

/* What multiplies a row's sums, or a column's; 1 beyond d. */
DEVICE float matmul_scale_at(const simt_scales &s, int64_t batch, int64_t at, int64_t end) {
    return s.data && at < end ? s.data[batch * s.batch + at * s.step] : 1;
}

/* alpha and the scales, in one order in all ends: alpha by that of the row, by that of the column.
 * Sums of i8 have no scales. */
template <int Q, class Sum> DEVICE void matmul_scale(Sum (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    Sum column[4];
#pragma unroll
    for (int i = 0; i < 4; i++) column[i] = Sum(1);
    if (t.columns.data)
#pragma unroll
        for (int i = 0; i < 4; i++) column[i] = Sum(matmul_scale_at(t.columns, b.batch, b.column + i, b.n));
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const float row = matmul_scale_at(t.rows, b.batch, b.row + q * b.step, b.m);
#pragma unroll
        for (int i = 0; i < 4; i++)
            if constexpr (Sum(0.5) != 0)
                x[q][i] = Sum(t.alpha) * Sum(row) * column[i] * x[q][i];
            else
                x[q][i] = matmul_times(t.alpha, x[q][i]);
    }
}

/* Elements as sums: those of i8 and f64 are of the sums' own type, others have one of matmul_type.
 * One, and four that are one aligned access. */
template <class Sum> DEVICE Sum matmul_load(matmul_type type, const void *from, int64_t i) {
    if constexpr (Sum(0.5) == 0 || sizeof(Sum) == 8) return ((const Sum *)from)[i];
    if (type == MATMUL_F32) return Sum(((const float *)from)[i]);
    const uint16_t bits = ((const uint16_t *)from)[i];
    return Sum(type == MATMUL_BF16 ? bf16::get(bits) : f16::get(bits));
}
template <class Sum> DEVICE void matmul_load_four(Sum (&x)[4], matmul_type type, const void *from, int64_t at) {
    if (Sum(0.5) == 0 || sizeof(Sum) == 8 || type == MATMUL_F32) {
        const packed<Sum, 4> four = *(const packed<Sum, 4> *)((const Sum *)from + at);
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = four.v[i];
    } else {
        const packed<uint16_t, 4> four = *(const packed<uint16_t, 4> *)((const uint16_t *)from + at);
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = Sum(type == MATMUL_BF16 ? bf16::get(four.v[i]) : f16::get(four.v[i]));
    }
}
template <class Sum> DEVICE void matmul_store(Sum x, matmul_type type, void *to, int64_t i) {
    if (Sum(0.5) == 0 || sizeof(Sum) == 8 || type == MATMUL_F32)
        ((Sum *)to)[i] = x;
    else
        ((uint16_t *)to)[i] = type == MATMUL_BF16 ? bf16::put((float)x) : f16::put((float)x);
}
template <class Sum> DEVICE void matmul_store_four(const Sum (&x)[4], matmul_type type, void *to, int64_t at) {
    if (Sum(0.5) == 0 || sizeof(Sum) == 8 || type == MATMUL_F32) {
        store_whole(x, (Sum *)to + at);
    } else {
        uint32_t word[2];
#pragma unroll
        for (int i = 0; i < 2; i++)
            word[i] = type == MATMUL_BF16 ? bf16::pair((float)x[2 * i], (float)x[2 * i + 1])
                                          : f16::pair((float)x[2 * i], (float)x[2 * i + 1]);
        store_words((uint16_t *)to + at, word[0], word[1]);
    }
}

/* Within 12 units of x: what e^-v's rounded argument costs, 4 |v| of itself, is at most 1.5 of the result. */
DEVICE float matmul_gelu_tanh(float x) { return x * gelu_logistic(x).of; }
DEVICE float matmul_gelu_erf(float x) { return x * normal_of(x).cdf; }
DEVICE float matmul_silu(float x) { return x * logistic_by(exp2_approx(-magnitude(x) * LOG2E), x < 0).of; }
/* Inline these would be two thirds of the code of f64, and half of the time of its compilation. */
DEVICE_CALLED double matmul_activated(double x, int32_t activation) {
    if (activation == TRINE_ACTIVATION_RELU) return x < 0 ? 0 : x;
    if (activation == TRINE_ACTIVATION_GELU_ERF) return x * 0.5 * erfc(x * -0.70710678118654752440084);
    const double rise = activation == TRINE_ACTIVATION_SILU ? 1 : 1.5957691216057307117598,
                 v = activation == TRINE_ACTIVATION_SILU ? x : x + 0.044715 * x * x * x;
    return x / (1 + exp(-rise * v));
}
template <int M, int N, class Sum> DEVICE void matmul_activate(Sum (&x)[M][N], int32_t activation) {
    const auto each = [&](auto f) {
#pragma unroll
        for (int i = 0; i < M * N; i++) x[i / N][i % N] = f(x[i / N][i % N]);
    };
    if constexpr (sizeof(Sum) == 8) return each([=](Sum s) { return matmul_activated(s, activation); });
    if (activation == TRINE_ACTIVATION_RELU) each([](Sum s) { return s < 0 ? Sum(0) : s; });
    if constexpr (Sum(0.5) != 0 && sizeof(Sum) == 4) { /* sums of i8 know no others */
        if (activation == TRINE_ACTIVATION_GELU_TANH) each([](Sum s) { return matmul_gelu_tanh(s); });
        if (activation == TRINE_ACTIVATION_GELU_ERF) each([](Sum s) { return matmul_gelu_erf(s); });
        if (activation == TRINE_ACTIVATION_SILU) each([](Sum s) { return matmul_silu(s); });
    }
}

/* Four sums from shared memory. */
template <class Sum> DEVICE void matmul_take(Sum (&x)[4], const Sum *from) {
    const packed<Sum, 4> four = *(const packed<Sum, 4> *)from;
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = four.v[i];
}

/* Sums to d. A question for each element costs more than what is done where the answer is yes: they are asked of all at
 * once. */
template <int Q, class Sum> DEVICE void matmul_finish(Sum (&x)[Q][4], const matmul_target &t, const matmul_block &b) {
    const bool whole = t.wide && b.column + 4 <= b.n;
    const int count = b.n - b.column < 4 ? (int)(b.n - b.column) : 4;
    Sum c[Q][4] = {}, bias[4] = {};
    if (t.c)
#pragma unroll
        for (int q = 0; q < Q; q++) {
            const int64_t row = b.row + q * b.step, at = b.batch * t.c_batch + row * t.c_row + b.column * t.c_column;
            if (row >= b.m) break;
            if (whole)
                matmul_load_four(c[q], t.type, t.c, at);
            else
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (i < count) c[q][i] = matmul_load<Sum>(t.type, t.c, at + i * t.c_column);
        }
    if (t.bias)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < count) bias[i] = matmul_load<Sum>(t.bias_type, t.bias, b.column + i);
    matmul_scale(x, t, b);
    if (t.c)
#pragma unroll
        for (int i = 0; i < Q * 4; i++) x[i / 4][i % 4] = matmul_plus(t.beta, c[i / 4][i % 4], x[i / 4][i % 4]);
    if (t.bias)
#pragma unroll
        for (int i = 0; i < Q * 4; i++) x[i / 4][i % 4] = matmul_plus(1, bias[i % 4], x[i / 4][i % 4]);
    if (t.activation) matmul_activate(x, t.activation);
#pragma unroll
    for (int q = 0; q < Q; q++) {
        const int64_t row = b.row + q * b.step, at = b.batch * t.d_batch + row * t.d_row + b.column;
        if (row >= b.m) break;
        if (whole)
            matmul_store_four(x[q], t.type, t.d, at);
        else
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (i < count) matmul_store(x[q][i], t.type, t.d, at + i);
    }
}

#endif
