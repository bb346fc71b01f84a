/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a matrix product on the device: from sums to act(alpha s + beta c + bias) in d. */
#ifndef TRINE_CUDA_MATMUL_FINISH_H
#define TRINE_CUDA_MATMUL_FINISH_H

#include <trine/ops.h>

#include "backends/simt/math.h"
#include "matmul.h"

DEVICE float matmul_activate(int32_t activation, float x) {
    if (activation == TRINE_ACTIVATION_RELU) return x < 0 ? 0 : x;
    if (activation == TRINE_ACTIVATION_GELU_TANH) return x * sigmoid(x * fused(x * x, 0.0713548163f, 1.59576912f));
    if (activation == TRINE_ACTIVATION_GELU_ERF) return x * normal_of(x).cdf;
    if (activation == TRINE_ACTIVATION_SILU) return x * sigmoid(x);
    return x;
}
DEVICE double matmul_activate(int32_t activation, double x) {
    if (activation == TRINE_ACTIVATION_RELU) return x < 0 ? 0 : x;
    if (activation == TRINE_ACTIVATION_GELU_TANH) return x / (1 + exp(-1.5957691216057307117598 * (x + 0.044715 * x * x * x)));
    if (activation == TRINE_ACTIVATION_GELU_ERF) return x * 0.5 * erfc(x * -0.70710678118654752440084);
    if (activation == TRINE_ACTIVATION_SILU) return x / (1 + exp(-x));
    return x;
}

DEVICE float matmul_read(matmul_type type, const void *data, int64_t i) {
    return type == MATMUL_F32 ? load_one<f32>(data, i) : type == MATMUL_F16 ? load_one<f16>(data, i) : load_one<bf16>(data, i);
}

/* Element (row, column) of d from its sum. */
DEVICE float matmul_finished(const matmul_target &t, int64_t batch, int64_t row, int64_t column, float sum) {
    float x = t.alpha * sum;
    if (t.c) x = fused(t.beta, matmul_read(t.type, t.c, batch * t.c_batch + row * t.c_row + column * t.c_column), x);
    if (t.bias) x += matmul_read(t.bias_type, t.bias, column);
    return matmul_activate(t.activation, x);
}
DEVICE double matmul_finished(const matmul_target &t, int64_t batch, int64_t row, int64_t column, double sum) {
    double x = (double)t.alpha * sum;
    if (t.c) x += (double)t.beta * ((const double *)t.c)[batch * t.c_batch + row * t.c_row + column * t.c_column];
    if (t.bias) x += ((const double *)t.bias)[column];
    return matmul_activate(t.activation, x);
}
/* Modulo 2^32; alpha and beta are integers. */
DEVICE int32_t matmul_finished(const matmul_target &t, int64_t batch, int64_t row, int64_t column, int32_t sum) {
    uint32_t x = (uint32_t)sum * (uint32_t)(int32_t)t.alpha;
    if (t.c) x += (uint32_t)(int32_t)t.beta * ((const uint32_t *)t.c)[batch * t.c_batch + row * t.c_row + column * t.c_column];
    if (t.bias) x += ((const uint32_t *)t.bias)[column];
    return t.activation == TRINE_ACTIVATION_RELU && (int32_t)x < 0 ? 0 : (int32_t)x;
}

DEVICE void matmul_store(const matmul_target &t, int64_t at, double x) { ((double *)t.d)[at] = x; }
DEVICE void matmul_store(const matmul_target &t, int64_t at, int32_t x) { ((int32_t *)t.d)[at] = x; }
DEVICE void matmul_store(const matmul_target &t, int64_t at, float x) {
    if (t.type == MATMUL_F32) store_one<f32>(t.d, at, x);
    if (t.type == MATMUL_F16) store_one<f16>(t.d, at, x);
    if (t.type == MATMUL_BF16) store_one<bf16>(t.d, at, x);
}

/* Four consecutive elements that may be written as one. */
DEVICE void matmul_store_wide(const matmul_target &t, int64_t at, const double (&x)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) matmul_store(t, at + i, x[i]);
}
DEVICE void matmul_store_wide(const matmul_target &t, int64_t at, const int32_t (&x)[4]) {
    store_words((int32_t *)t.d + at, (uint32_t)x[0], (uint32_t)x[1], (uint32_t)x[2], (uint32_t)x[3]);
}
template <class T> DEVICE uint32_t matmul_pair(float low, float high) { return (uint32_t)T::put(low) | (uint32_t)T::put(high) << 16; }
DEVICE void matmul_store_wide(const matmul_target &t, int64_t at, const float (&x)[4]) {
    uint16_t *d = (uint16_t *)t.d + at;
    if (t.type == MATMUL_F32) store_words((float *)t.d + at, bits_of_float(x[0]), bits_of_float(x[1]), bits_of_float(x[2]), bits_of_float(x[3]));
    if (t.type == MATMUL_F16) store_words(d, matmul_pair<f16>(x[0], x[1]), matmul_pair<f16>(x[2], x[3]));
    if (t.type == MATMUL_BF16) store_words(d, matmul_pair<bf16>(x[0], x[1]), matmul_pair<bf16>(x[2], x[3]));
}

/* Elements (row, column) to (row, column + 3) of an m by n matrix, as far as they are in it. */
template <class Sum>
DEVICE void matmul_finish_4(const matmul_target &t, int64_t batch, int64_t row, int64_t column, int64_t m, int64_t n, const Sum (&sum)[4]) {
    if (row >= m) return;
    const int64_t at = batch * t.d_batch + row * t.d_row + column;
    Sum x[4];
    if (t.wide && column + 4 <= n) {
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = matmul_finished(t, batch, row, column + i, sum[i]);
        matmul_store_wide(t, at, x);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (column + i < n) matmul_store(t, at + i, matmul_finished(t, batch, row, column + i, sum[i]));
}

#endif
