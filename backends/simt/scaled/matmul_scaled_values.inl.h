/* SPDX-License-Identifier: Apache-2.0 */
/* What the device kernels of matmul_scaled share: elements and scales as floats, and the end of an output. */
#ifndef TRINE_SIMT_MATMUL_SCALED_VALUES_INL_H
#define TRINE_SIMT_MATMUL_SCALED_VALUES_INL_H

#include <trine/matmul.h>
#include <trine/scaled.h>

#include "matmul_scaled.h"
#include "backends/simt/core/float8.h"
#include "backends/simt/core/math.h"
#include "backends/simt/quantize/codes.inl.h"

/* The bytes of N elements; where an element is half a byte the lower half of the words is used. */
template <int N> struct scaled_raw {
    uint32_t word[N / 4];
};

DEVICE bool scaled_halves(const scaled_side &s) { return s.kind >= SCALED_IS_E2M1; }

/* Elements [at, at + N) of a row, those from `end` on being zero bits: a's are 0 then, and b's finite. */
template <int N> DEVICE scaled_raw<N> scaled_fetch(const scaled_side &s, const uint8_t *row, int32_t at, int32_t end) {
    scaled_raw<N> raw = {};
    const int count = end - at < 0 ? 0 : end - at < N ? end - at : N;
    if (s.aligned && count == N && at % N == 0) {
        if (scaled_halves(s)) {
            const packed<uint32_t, N / 8> half = *(const packed<uint32_t, N / 8> *)(row + at / 2);
#pragma unroll
            for (int i = 0; i < N / 8; i++) raw.word[i] = half.v[i];
        } else {
            const packed<uint32_t, N / 4> all = *(const packed<uint32_t, N / 4> *)(row + at);
#pragma unroll
            for (int i = 0; i < N / 4; i++) raw.word[i] = all.v[i];
        }
        return raw;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (i >= count) continue;
        if (!scaled_halves(s))
            raw.word[i / 4] |= (uint32_t)row[at + i] << i % 4 * 8;
        else
            raw.word[i / 8] |= ((uint32_t)row[(at + i) / 2] >> (at + i) % 2 * 4 & 15) << i % 8 * 4;
    }
    return raw;
}

/* They as floats. */
template <int N> DEVICE void scaled_values(float (&v)[N], const scaled_side &s, const scaled_raw<N> &raw) {
    if (s.kind == SCALED_IS_E4M3) {
#pragma unroll
        for (int i = 0; i < N; i += 2) e4m3::get_pair(v[i], v[i + 1], (uint16_t)(raw.word[i / 4] >> i % 4 * 8));
    } else if (s.kind == SCALED_IS_E5M2) {
#pragma unroll
        for (int i = 0; i < N; i += 2) e5m2::get_pair(v[i], v[i + 1], (uint16_t)(raw.word[i / 4] >> i % 4 * 8));
    } else if (s.kind == SCALED_IS_E2M1) {
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = code_e2m1(raw.word[i / 8] >> i % 8 * 4 & 15);
    } else {
        const float none = (float)((1 << 23) + s.none);
        const bool halves = s.kind == SCALED_IS_HALF;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const uint32_t code =
                halves ? (raw.word[i / 8] ^ s.flip) >> i % 8 * 4 & 15 : (raw.word[i / 4] ^ s.flip) >> i % 4 * 8 & 255;
            v[i] = float_of_bits(0x4b000000u | code) - none;
        }
    }
}

DEVICE float scaled_load(scaled_type type, const void *data, int64_t i) {
    switch (type) {
    case SCALED_AS_F32: return load_one<f32>(data, i);
    case SCALED_AS_BF16: return load_one<bf16>(data, i);
    case SCALED_AS_F16: return load_one<f16>(data, i);
    case SCALED_AS_E8M0: return e8m0::get(((const uint8_t *)data)[i]);
    default: return e4m3::get(((const uint8_t *)data)[i]);
    }
}

/* Where the scales of a row begin; the scale of its element `at`. */
DEVICE int64_t scaled_line(const scaled_side &s, int64_t row) { return s.scale ? row / s.row_block * s.scale_row : 0; }
DEVICE float scaled_scale(const scaled_side &s, int64_t line, int32_t at) {
    return s.scale ? scaled_load(s.scale_type, s.scale, line + (int64_t)quotient((uint32_t)at, s.block)) : 1.0f;
}

DEVICE float scaled_activated(float x, int32_t activation) {
    switch (activation) {
    case TRINE_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case TRINE_ACTIVATION_GELU_TANH: return x * gelu_logistic(x).of;
    case TRINE_ACTIVATION_GELU_ERF: return x * normal_of(x).cdf;
    case TRINE_ACTIVATION_SILU: return x * sigmoid(x);
    default: return x;
    }
}

DEVICE void scaled_put(scaled_type type, void *to, int64_t at, float x) {
    if (type == SCALED_AS_F32)
        store_one<f32>(to, at, x);
    else if (type == SCALED_AS_BF16)
        store_one<bf16>(to, at, x);
    else
        store_one<f16>(to, at, x);
}

DEVICE void scaled_store(const scaled_params &p, int64_t i, int64_t j, float sum) {
    sum *= p.alpha;
    if (p.bias) sum += scaled_load(p.bias_type, p.bias, j);
    scaled_put(p.out_type, p.d, i * p.d_row + j, scaled_activated(sum, p.activation));
}

#endif
