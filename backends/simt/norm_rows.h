/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm on devices: the one is the other without the mean. Residuals and weights have the type T of x, or f32: that is tested at run time,
 * which costs nothing beside memory, where an entry for each combination cost minutes of compiling. */
#ifndef TRINE_SIMT_NORM_ROWS_H
#define TRINE_SIMT_NORM_ROWS_H

#include "norm.h"
#include "philox.h"
#include "row.h"

/* x of the thread's items in a piece through dropout. Not unrolled: the generator is long. */
template <class Group>
DEVICE void norm_drop(float (&x)[Group::VECTORS][VECTOR], const simt_dropout &d, int64_t row, typename Group::index at, typename Group::index n) {
    uint64_t bits = 0;
#pragma unroll 1
    for (int v = 0; v < Group::VECTORS; v++) {
        const typename Group::lane l = Group::place(v, at, n);
        if (within(l, 0)) bits |= (uint64_t)(kept<VECTOR>(d, (uint64_t)(row * n + l.at)) & 0xff) << v * VECTOR;
    }
#pragma unroll
    for (int v = 0; v < Group::VECTORS; v++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[v][k] = bits >> (v * VECTOR + k) & 1 ? x[v][k] * d.scale : 0.0f;
}

/* Adds the thread's items of a row, if there is one. Two vectors at a time, or one of 1024 threads, lest registers do not suffice. */
template <class T, class Group>
DEVICE void norm_add_as(float (&x)[Group::VECTORS][VECTOR], const simt_rows &rows, int64_t row, typename Group::index at, typename Group::index n) {
    constexpr int STEP = Group::VECTORS < 2 || Group::SIZE > 512 ? 1 : 2;
#pragma unroll
    for (int first = 0; first < Group::VECTORS; first += STEP) {
        held<T, VECTOR> other[STEP];
#pragma unroll
        for (int v = 0; v < STEP; v++) other[v] = fetch<T>(row_at<T>(rows, row), Group::place(first + v, at, n));
#pragma unroll
        for (int v = 0; v < STEP; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) x[first + v][k] += other[v].get(k);
    }
}
template <class T, class Group>
DEVICE void norm_add(float (&x)[Group::VECTORS][VECTOR], const simt_rows &rows, bool is_f32, int64_t row, typename Group::index at, typename Group::index n) {
    if (!rows.data) return;
    if (is_f32)
        norm_add_as<f32, Group>(x, rows, row, at, n);
    else
        norm_add_as<T, Group>(x, rows, row, at, n);
}

/* A vector of the weight or of the bias. */
template <class T, class Lane> DEVICE void norm_factor(float (&x)[VECTOR], const simt_rows &rows, bool is_f32, const Lane &l) {
    if (is_f32) {
        const held<f32, VECTOR> bits = fetch<f32>(rows.data, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] = bits.get(k);
    } else {
        const held<T, VECTOR> bits = fetch<T>(rows.data, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) x[k] = bits.get(k);
    }
}

template <class T, class Lane> DEVICE void norm_put(const float (&x)[VECTOR], const simt_rows &rows, bool is_f32, int64_t row, const Lane &l) {
    if (is_f32)
        put<f32>(x, row_at<f32>(rows, row), l);
    else
        put<T>(x, row_at<T>(rows, row), l);
}

/* h = dropout(x) + residual of the thread's items in a piece; 0 beyond the row. */
template <class T, class Group>
DEVICE void norm_read(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at, typename Group::index n) {
    Group::template load<T>(h, row_at<T>(p.x, row), at, n);
    if (p.dropout.p > 0) norm_drop<Group>(h, p.dropout, row, at, n);
    norm_add<T, Group>(h, p.residual, p.f32_residual, row, at, n);
}

struct norm_statistics {
    float mean, rstd;
};

/* Adds h, or its squares. */
template <bool CENTERED, class Group>
DEVICE float norm_sum(float sum, const float (&h)[Group::VECTORS][VECTOR], typename Group::index at, typename Group::index n) {
    Group::each(at, n, [&](int v, const typename Group::lane &) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum = CENTERED ? sum + h[v][k] : fused(h[v][k], h[v][k], sum);
    });
    return sum;
}

/* The sums of h - origin correct both the mean and the variance for the rounding of the first mean (spec/layer_norm.c). */
template <class T, class Group>
DEVICE norm_statistics norm_center(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index n, float origin) {
    two sums = { 0, 0 };
    for (typename Group::index at = 0; at < n; at += Group::PIECE) {
        if (n > Group::PIECE) norm_read<T, Group>(h, p, row, at, n);
        Group::each(at, n, [&](int v, const typename Group::lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                const float d = h[v][k] - (inside(l, k) ? origin : 0.0f);
                sums.a += d;
                sums.b = fused(d, d, sums.b);
            }
        });
    }
    sums = group_sum<Group::SIZE>(sums);
    const float shift = sums.a / (float)n, variance = sums.b / (float)n - shift * shift;
    const bool finite = magnitude(origin) < infinity();
    return { finite ? origin + shift : origin, 1 / square_root((variance < 0 ? 0 : variance) + p.eps) };
}

/* y = (h - mean) rstd (weight + offset) + bias */
template <class T, class Group>
DEVICE void norm_write(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at, typename Group::index n,
                       const norm_statistics &s) {
    Group::each(at, n, [&](int v, const typename Group::lane &l) {
        float other[VECTOR];
        if (p.residual_out.data) norm_put<T>(h[v], p.residual_out, p.f32_residual, row, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[v][k] = (h[v][k] - s.mean) * s.rstd;
        if (p.round) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[v][k] = rounded<T>(h[v][k]);
        }
        if (p.weight.data) {
            norm_factor<T>(other, p.weight, p.f32_weight, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[v][k] *= other[k] + p.weight_offset;
        }
        if (p.bias.data) {
            norm_factor<T>(other, p.bias, p.f32_weight, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[v][k] += other[k];
        }
        put<T>(h[v], row_at<T>(p.y, row), l);
    });
}

template <bool CENTERED, class T, class Group> DEVICE void norm_row(const norm_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const index n = (index)p.n;
    float h[Group::VECTORS][VECTOR], sum = 0;
    for (index at = 0; at < n; at += Group::PIECE) {
        norm_read<T, Group>(h, p, row, at, n);
        sum = norm_sum<CENTERED, Group>(sum, h, at, n);
    }
    const float mean = group_sum<Group::SIZE>(sum) / (float)n;
    norm_statistics s = { 0, 0 };
    if (CENTERED)
        s = norm_center<T, Group>(h, p, row, n, mean);
    else
        s.rstd = 1 / square_root(mean + p.eps);
    if (Group::rank() == 0) {
        if (p.mean.data) store_one<f32>(p.mean.data, row, s.mean);
        if (p.rstd.data) store_one<f32>(p.rstd.data, row, s.rstd);
    }
    for (index at = 0; at < n; at += Group::PIECE) {
        if (n > Group::PIECE) norm_read<T, Group>(h, p, row, at, n);
        norm_write<T, Group>(h, p, row, at, n, s);
    }
}

/* Left alone, the compiler spends registers on residuals and dropout until too few blocks hide the latency of memory: 768 threads, or 1024 with 16-bit elements in
 * blocks of 512, took rms_norm on bf16 from 3.3 to 3.8 TB/s at 8192, and from 2.4 to 3.5 at 16384 (H200). */
template <class T> constexpr int norm_held(int threads) { return threads <= 256 ? 768 / threads : threads == 512 && sizeof(typename T::bits) == 2 ? 2 : 1; }
template <class T> constexpr int rms_norm_held(int threads) { return norm_held<T>(threads); }
template <class T> constexpr int layer_norm_held(int threads) { return norm_held<T>(threads); }

template <class T, class Group> DEVICE void rms_norm_row(const norm_params &p) { norm_row<false, T, Group>(p); }
template <class T, class Group> DEVICE void layer_norm_row(const norm_params &p) { norm_row<true, T, Group>(p); }

#endif
