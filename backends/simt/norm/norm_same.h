/* SPDX-License-Identifier: Apache-2.0 */
/* The norms on devices with the same bits as on every other (spec/same.h): a row by a block of 64 threads, times the
 * power of two that takes the larger of its largest element and sqrt(eps) to between 1 and 2. */
#ifndef TRINE_SIMT_NORM_SAME_H
#define TRINE_SIMT_NORM_SAME_H

#include "backends/simt/core/same.h"
#include "norm.h"

DEVICE float norm_same_power(float largest) {
    const int32_t e = (int32_t)(bits_of_float(largest) >> 23) - 127;
    return float_of_bits((uint32_t)(127 - (e < -126 ? -126 : e > 126 ? 126 : e)) << 23);
}

DEVICE bool norm_same_finite(float x) { return magnitude(x) < infinity(); }

template <class T, bool CENTERED> DEVICE void norm_same(const norm_params &p) {
    const int64_t i = block_index();
    const typename T::bits *x = row_at<T>(p.x, i);
    const void *residual = p.residual.data == nullptr ? nullptr
                           : p.f32_residual           ? (const void *)row_at<f32>(p.residual, i)
                                                      : (const void *)row_at<T>(p.residual, i);
    void *sum_out = p.residual_out.data == nullptr ? nullptr
                    : p.f32_residual               ? (void *)row_at<f32>(p.residual_out, i)
                                                   : (void *)row_at<T>(p.residual_out, i);
    const auto h_of = [&](int64_t j) {
        const float h = load_one<T>(x, j);
        return residual ? h + same_load<T>(residual, p.f32_residual, j) : h;
    };
    const auto each = [&](const auto &body) {
        for (int64_t j = thread_index(); j < p.n; j += SAME_LANES) body(j);
    };
    const float n = (float)p.n;
    float most = square_root(p.eps), origin = 0, mean = 0, sum = 0, squares = 0;
    each([&](int64_t j) {
        const float h = magnitude(h_of(j));
        most = h > most ? h : most;
    });
    const float down = norm_same_power(same_largest(most));
    if constexpr (CENTERED) {
        each([&](int64_t j) { sum += product(h_of(j), down); });
        origin = same_total(sum) / n;
        sum = 0;
    }
    each([&](int64_t j) {
        const float d = product(h_of(j), down) - origin;
        sum += d;
        squares += product(d, d);
    });
    float v = same_total(squares) / n, eps = product(product(p.eps, down), down);
    if constexpr (CENTERED) {
        const float shift = same_total(sum) / n;
        v = v - product(shift, shift);
        if (v < 0) v = 0;
        if (down < 1 && eps < 0x1p-126f) eps = 0x1p-126f; /* of a spread of 0 */
        mean = norm_same_finite(origin) ? origin + shift : origin;
    }
    const float rstd = 1.0f / square_root(v + eps);
    each([&](int64_t j) {
        const float h = h_of(j);
        float t = product(product(h, down) - mean, rstd);
        if (p.round) t = rounded<T>(t);
        if (p.weight.data) t = product(t, same_load<T>(p.weight.data, p.f32_weight, j) + p.weight_offset);
        if (CENTERED && p.bias.data) t += same_load<T>(p.bias.data, p.f32_weight, j);
        if (sum_out) same_store<T>(sum_out, p.f32_residual, j, h);
        store_one<T>(row_at<T>(p.y, i), j, t);
    });
    if (thread_index() > 0) return;
    const float up = mean / down;
    if (p.rstd.data) ((float *)p.rstd.data)[i] = product(rstd, down);
    if (CENTERED && p.mean.data)
        ((float *)p.mean.data)[i] =
            norm_same_finite(mean) && !norm_same_finite(up) ? (mean < 0 ? -f32::largest() : f32::largest()) : up;
}

#define NORM_SAME_OF(op, CENTERED, T) \
    ENTRY(op##_same_##T, SAME_LANES, norm_params) { norm_same<T, CENTERED>(p); }
#define NORM_SAME(op, CENTERED) \
    NORM_SAME_OF(op, CENTERED, f32) NORM_SAME_OF(op, CENTERED, bf16) NORM_SAME_OF(op, CENTERED, f16)

#endif
