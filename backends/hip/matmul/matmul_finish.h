/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a matrix product on CDNA devices: from sums to act(alpha scales sum + beta c + bias) in d, 8 columns of a
 * row at a time. */
#ifndef TRINE_HIP_MATMUL_FINISH_H
#define TRINE_HIP_MATMUL_FINISH_H

#include <trine/matmul.h>

#include "backends/simt/core/math.h"
#include "backends/hip/core/float64.h"
#include "matrix.h"
#include "matmul.h"

struct i32 {
    using bits = uint32_t;
};

/* The 8 elements of c at a column, or the one of a row that it has. */
template <class Bits>
DEVICE void matmul_load_c(Bits (&v)[VECTOR], const matmul_params &p, const void *row, const lane &l) {
    if (!p.c_spread) {
        load_bits(v, row, l);
        return;
    }
#pragma unroll
    for (int k = 0; k < VECTOR; k++) v[k] = *(const Bits *)row;
}

DEVICE float matmul_activate(float x, int32_t activation) {
    return activation == TRINE_ACTIVATION_RELU        ? x < 0 ? 0 : x
           : activation == TRINE_ACTIVATION_GELU_TANH ? x * sigmoid(x * fused(x * x, 0.0713548163f, 1.59576912f))
           : activation == TRINE_ACTIVATION_GELU_ERF  ? x * normal_of(x).cdf
           : activation == TRINE_ACTIVATION_SILU      ? x * sigmoid(x)
                                                      : x;
}
DEVICE double matmul_activate(double x, int32_t activation) {
    return activation == TRINE_ACTIVATION_RELU ? x < 0 ? 0 : x
           : activation == TRINE_ACTIVATION_GELU_TANH
               ? x * sigmoid(x * __builtin_fma(x * x, 0.071354816272600249, 1.5957691216057308))
           : activation == TRINE_ACTIVATION_GELU_ERF ? x * normal_cdf(x)
           : activation == TRINE_ACTIVATION_SILU     ? x * sigmoid(x)
                                                     : x;
}

/* Arithmetic in the type of the sums; elements of O and B in memory. */
template <class O, class B, class Sum> struct matmul_arithmetic {
    static DEVICE float factor(float x) { return x; }
    static DEVICE float add(float factor, float c, float x) { return fused(factor, c, x); }
    static DEVICE float activate(float x, int32_t activation) { return matmul_activate(x, activation); }
    static DEVICE float from_c(typename O::bits c) { return O::get(c); }
    static DEVICE float from_bias(typename B::bits b) { return B::get(b); }
    /* 16 bits by pairs, and words are words also where only some elements are stored: else the compiler would make each
     * element by itself. */
    static DEVICE void put(typename O::bits (&d)[VECTOR], const float (&x)[VECTOR]) {
        if constexpr (sizeof(typename O::bits) == 2) {
            uint32_t word[VECTOR / 2];
#pragma unroll
            for (int i = 0; i < VECTOR / 2; i++) word[i] = afresh(rounded_pair<O>(x[2 * i], x[2 * i + 1]));
            __builtin_memcpy(d, word, sizeof d);
        } else {
            __builtin_memcpy(d, x, sizeof d);
        }
    }
};
/* What needs no rounding. */
template <class O> struct matmul_as_it_is {
    template <class Sum> static DEVICE void put(typename O::bits (&d)[VECTOR], const Sum (&x)[VECTOR]) {
        __builtin_memcpy(d, x, sizeof d);
    }
};
template <class O, class B> struct matmul_arithmetic<O, B, double> : matmul_as_it_is<O> {
    static DEVICE double factor(float x) { return x; }
    static DEVICE double add(double factor, double c, double x) { return __builtin_fma(factor, c, x); }
    static DEVICE double activate(double x, int32_t activation) { return matmul_activate(x, activation); }
    static DEVICE double from_c(double c) { return c; }
    static DEVICE double from_bias(double b) { return b; }
};
/* Modulo 2^32; factors are integers. */
template <class O, class B> struct matmul_arithmetic<O, B, int32_t> : matmul_as_it_is<O> {
    static DEVICE uint32_t factor(float x) { return (uint32_t)(int32_t)x; }
    static DEVICE uint32_t add(uint32_t factor, uint32_t c, uint32_t x) { return factor * c + x; }
    static DEVICE uint32_t activate(uint32_t x, int32_t activation) {
        return activation == TRINE_ACTIVATION_RELU && (int32_t)x < 0 ? 0 : x;
    }
    static DEVICE uint32_t from_c(uint32_t c) { return c; }
    static DEVICE uint32_t from_bias(uint32_t b) { return b; }
};

/* Sums of integers have no scales. */
template <class X>
DEVICE void matmul_scale(X (&x)[VECTOR], const matmul_params &p, int64_t batch, int64_t row, int64_t column) {
    const simt_scales &rows = p.row_scales, &columns = p.column_scales;
    if (rows.data) {
        const float scale = rows.data[batch * rows.batch + row * rows.step];
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] *= scale;
    }
    if (columns.data) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++)
            if (column + k < p.n) x[k] *= columns.data[batch * columns.batch + (column + k) * columns.step];
    }
}
DEVICE void matmul_scale(uint32_t (&)[VECTOR], const matmul_params &, int64_t, int64_t, int64_t) {}

template <class O, class B, class Sum>
DEVICE void matmul_finish(const Sum (&sums)[VECTOR], const matmul_params &p, int64_t batch, int64_t row,
                          int64_t column) {
    using in = matmul_arithmetic<O, B, Sum>;
    decltype(in::factor(0)) x[VECTOR];
    const auto alpha = in::factor(p.alpha), beta = in::factor(p.beta);
#pragma unroll
    for (int k = 0; k < VECTOR; k++) x[k] = alpha * sums[k];
    matmul_scale(x, p, batch, row, column);
    if (p.c.data) {
        typename O::bits c[VECTOR];
        matmul_load_c(c, p, (const typename O::bits *)p.c.data + batch * p.c.batch + row * p.c.row,
                      { column, p.n, p.c_wide });
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] = in::add(beta, in::from_c(c[k]), x[k]);
    }
    if (p.bias) {
        typename B::bits bias[VECTOR];
        load_bits(bias, p.bias, { column, p.n, p.bias_wide });
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] += in::from_bias(bias[k]);
    }
    if (p.activation) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] = in::activate(x[k], p.activation);
    }
    typename O::bits d[VECTOR];
    in::put(d, x);
    store_bits(d, (typename O::bits *)p.d.data + batch * p.d.batch + row * p.d.row, { column, p.n, p.d_wide });
}

#endif
