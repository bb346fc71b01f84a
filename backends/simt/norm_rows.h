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
    if (sizeof(typename T::bits) == 4 || is_f32)
        norm_add_as<f32, Group>(x, rows, row, at, n);
    else
        norm_add_as<T, Group>(x, rows, row, at, n);
}

template <class T, class Lane> DEVICE void norm_put(const float (&x)[VECTOR], const simt_rows &rows, bool is_f32, int64_t row, const Lane &l) {
    if (sizeof(typename T::bits) == 4 || is_f32)
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

/* Of a row: y = ((h - origin) rstd + lift) (weight + offset) + bias, where origin + shift is the mean and lift = -shift rstd. */
struct norm_statistics {
    float mean, rstd, origin, lift;
};

/* Body(v) for each vector of the piece that the group has something of, two at a time: a branch round each would keep them apart. */
template <class Group, class Body> DEVICE void norm_each(typename Group::index at, typename Group::index n, const Body &body) {
    constexpr int STEP = Group::VECTORS < 2 ? 1 : 2;
#pragma unroll
    for (int first = 0; first < Group::VECTORS; first += STEP)
        if (at + first * Group::SIZE * VECTOR < n)
#pragma unroll
            for (int i = 0; i < STEP; i++) body(first + i);
}

/* Adds h, or its squares; beyond the row h is 0. */
template <bool CENTERED, class Group>
DEVICE void norm_sum(float &sum, const float (&h)[Group::VECTORS][VECTOR], typename Group::index at, typename Group::index n) {
    norm_each<Group>(at, n, [&](int v) { sum += CENTERED ? vector_sum(h[v]) : vector_squares(h[v]); });
}

/* h becomes h - origin, 0 beyond the row; adds that and its squares. */
template <class Group> DEVICE void norm_center(two &sums, float (&h)[Group::VECTORS][VECTOR], typename Group::index at, typename Group::index n, float origin) {
    norm_each<Group>(at, n, [&](int v) {
        const typename Group::lane l = Group::place(v, at, n);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[v][k] -= inside(l, k) ? origin : 0.0f;
        sums = sums + two{ vector_sum(h[v]), vector_squares(h[v]) };
    });
}

/* The sums of h - origin correct both the mean and the variance for the rounding of the first mean (spec/layer_norm.c). */
DEVICE norm_statistics norm_centered(two sums, float origin, float inverse, float eps) {
    const float shift = sums.a * inverse, variance = fused(sums.b, inverse, -(shift * shift));
    const float rstd = 1 / square_root((variance < 0 ? 0 : variance) + eps);
    const bool finite = magnitude(origin) < infinity();
    return { finite ? origin + shift : origin, rstd, origin, -shift * rstd };
}

/* y of a piece of h - origin, with weight and bias of type W. They are asked for, of some vectors at a time, before any is looked at. */
template <bool CENTERED, class T, class W, class Group>
DEVICE void norm_write_as(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at, typename Group::index n,
                          const norm_statistics &s) {
    constexpr int STEP = Group::SIZE < 512 && sizeof(typename W::bits) == 2 && Group::VECTORS % 2 == 0 ? 2 : 1;
#pragma unroll
    for (int first = 0; first < Group::VECTORS; first += STEP) {
        if (at + first * Group::SIZE * VECTOR >= n) return;
        held<W, VECTOR> weight[STEP], bias[STEP];
        if (p.weight.data)
#pragma unroll
            for (int i = 0; i < STEP; i++) weight[i] = fetch_any<W>(p.weight.data, Group::place(first + i, at, n));
        if (CENTERED && p.bias.data)
#pragma unroll
            for (int i = 0; i < STEP; i++) bias[i] = fetch_any<W>(p.bias.data, Group::place(first + i, at, n));
#pragma unroll
        for (int i = 0; i < STEP; i++) {
            float(&y)[VECTOR] = h[first + i];
#pragma unroll
            for (int k = 0; k < VECTOR; k++) y[k] = CENTERED ? fused(y[k], s.rstd, s.lift) : y[k] * s.rstd;
            if (p.round)
#pragma unroll
                for (int k = 0; k < VECTOR; k++) y[k] = rounded<T>(y[k]);
            if (p.weight.data)
#pragma unroll
                for (int k = 0; k < VECTOR; k++) y[k] *= weight[i].get(k) + p.weight_offset;
            if (CENTERED && p.bias.data)
#pragma unroll
                for (int k = 0; k < VECTOR; k++) y[k] += bias[i].get(k);
            put<T>(y, row_at<T>(p.y, row), Group::place(first + i, at, n));
        }
    }
}
template <bool CENTERED, class T, class Group>
DEVICE void norm_write(float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at, typename Group::index n,
                       const norm_statistics &s) {
    if (sizeof(typename T::bits) == 4 || p.f32_weight)
        norm_write_as<CENTERED, T, f32, Group>(h, p, row, at, n, s);
    else
        norm_write_as<CENTERED, T, T, Group>(h, p, row, at, n, s);
}

template <class T, class Group>
DEVICE void norm_write_residual(const float (&h)[Group::VECTORS][VECTOR], const norm_params &p, int64_t row, typename Group::index at,
                                typename Group::index n) {
    if (p.residual_out.data) Group::each(at, n, [&](int v, const typename Group::lane &l) { norm_put<T>(h[v], p.residual_out, p.f32_residual, row, l); });
}

template <bool CENTERED, class T, class Group> DEVICE void norm_row(const norm_params &p) {
    using index = typename Group::index;
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const index n = (index)p.n, end = Group::ONE_PIECE ? 1 : n;
    const bool again = !Group::ONE_PIECE && n > Group::PIECE; /* is a piece not held from step to step? */
    const float inverse = 1.0f / (float)n;                    /* now, while the row is on its way */
    float h[Group::VECTORS][VECTOR], sum = 0;
    for (index at = 0; at < end; at += Group::PIECE) {
        norm_read<T, Group>(h, p, row, at, n);
        if (!again) norm_write_residual<T, Group>(h, p, row, at, n);
        norm_sum<CENTERED, Group>(sum, h, at, n);
    }
    const float mean = group_sum<Group::SIZE>(sum) * inverse;
    norm_statistics s = {};
    if (CENTERED) {
        two sums = { 0, 0 };
        for (index at = 0; at < end; at += Group::PIECE) {
            if (again) norm_read<T, Group>(h, p, row, at, n);
            norm_center<Group>(sums, h, at, n, mean);
        }
        s = norm_centered(group_sum<Group::SIZE>(sums), mean, inverse, p.eps);
    } else {
        s.rstd = 1 / square_root(mean + p.eps);
    }
    if (Group::rank() == 0) {
        if (p.mean.data) store_one<f32>(p.mean.data, row, s.mean);
        if (p.rstd.data) store_one<f32>(p.rstd.data, row, s.rstd);
    }
    for (index at = 0; at < end; at += Group::PIECE) {
        if (again) {
            norm_read<T, Group>(h, p, row, at, n);
            norm_write_residual<T, Group>(h, p, row, at, n); /* which may be the residual */
            two unused = { 0, 0 };
            if (CENTERED) norm_center<Group>(unused, h, at, n, mean);
        }
        norm_write<CENTERED, T, Group>(h, p, row, at, n, s);
    }
}

/* Left alone, the compiler spends registers on residuals and dropout until too few blocks hide the latency of memory: 768 threads, or 1024 with 16-bit elements in
 * blocks of 512, took rms_norm on bf16 from 3.3 to 3.8 TB/s at 8192, and from 2.4 to 3.5 at 16384 (H200). 1024 threads everywhere spill. */
template <class T> constexpr int norm_held(int threads) {
    const bool narrow = sizeof(typename T::bits) == 2;
    return threads == 512 ? 1 + narrow : threads > 512 ? 1 : (threads <= 128 && !narrow ? 640 : 768) / threads;
}
template <class T> constexpr int rms_norm_held(int threads) { return norm_held<T>(threads); }
template <class T> constexpr int layer_norm_held(int threads) { return norm_held<T>(threads); }

template <class T, class Group> DEVICE void rms_norm_row(const norm_params &p) { norm_row<false, T, Group>(p); }
template <class T, class Group> DEVICE void layer_norm_row(const norm_params &p) { norm_row<true, T, Group>(p); }

#endif
