/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm on devices: the one is the other without the mean. */
#ifndef TRINE_SIMT_NORM_ROWS_H
#define TRINE_SIMT_NORM_ROWS_H

#include "norm.h"
#include "philox.h"
#include "row.h"

/* h = dropout(x) + residual of the thread's items in a piece. */
template <class T, class R, class Group> DEVICE void norm_read(float (&h)[ROW_VECTORS][VECTOR], const norm_params &p, int64_t row, int64_t at) {
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++) {
        const lane l = Group::vector(at, v, p.n, p.wide);
        load<T>(h[v], row_at<T>(p.x, row), l);
        if (p.dropout.p > 0) {
            bool k[VECTOR];
            keep(k, p.dropout, (uint64_t)(row * p.n + l.at));
#pragma unroll
            for (int i = 0; i < VECTOR; i++) h[v][i] = k[i] ? h[v][i] * p.dropout.scale : 0.0f;
        }
        if (!p.residual.data) continue;
        float residual[VECTOR];
        load<R>(residual, row_at<R>(p.residual, row), l);
#pragma unroll
        for (int i = 0; i < VECTOR; i++) h[v][i] += residual[i];
    }
}

struct norm_statistics {
    float mean, rstd;
};

/* Sums of h, or of its squares. */
template <bool CENTERED> DEVICE float norm_sum(const float (&h)[ROW_VECTORS][VECTOR]) {
    float sum = 0;
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum = CENTERED ? sum + h[v][k] : fused(h[v][k], h[v][k], sum);
    return sum;
}

/* The sums of h - origin correct both the mean and the variance for the rounding of the first mean (spec/layer_norm.c). */
template <class T, class R, class Group> DEVICE norm_statistics norm_center(float (&h)[ROW_VECTORS][VECTOR], const norm_params &p, int64_t row, float origin) {
    float shift = 0, squares = 0;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        if (p.n > Group::PIECE) norm_read<T, R, Group>(h, p, row, at);
#pragma unroll
        for (int v = 0; v < ROW_VECTORS; v++) {
            const lane l = Group::vector(at, v, p.n, p.wide);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                const float d = within(l, k) ? h[v][k] - origin : 0.0f;
                shift += d;
                squares = fused(d, d, squares);
            }
        }
    }
    shift = group_sum<Group::SIZE>(shift) / (float)p.n;
    const float variance = group_sum<Group::SIZE>(squares) / (float)p.n - shift * shift;
    const bool finite = magnitude(origin) < infinity();
    return { finite ? origin + shift : origin, 1 / square_root((variance < 0 ? 0 : variance) + p.eps) };
}

/* y = (h - mean) rstd (weight + offset) + bias */
template <class T, class R, class W, class Group>
DEVICE void norm_write(float (&h)[ROW_VECTORS][VECTOR], const norm_params &p, int64_t row, int64_t at, const norm_statistics &s) {
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++) {
        const lane l = Group::vector(at, v, p.n, p.wide);
        float other[VECTOR];
        if (p.residual_out.data) store<R>(h[v], row_at<R>(p.residual_out, row), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) h[v][k] = (h[v][k] - s.mean) * s.rstd;
        if (p.round) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[v][k] = rounded<T>(h[v][k]);
        }
        if (p.weight.data) {
            load<W>(other, p.weight.data, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[v][k] *= other[k] + p.weight_offset;
        }
        if (p.bias.data) {
            load<W>(other, p.bias.data, l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) h[v][k] += other[k];
        }
        store<T>(h[v], row_at<T>(p.y, row), l);
    }
}

template <bool CENTERED, class T, class R, class W, class Group> DEVICE void norm_row(const norm_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    float h[ROW_VECTORS][VECTOR], sum = 0;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        norm_read<T, R, Group>(h, p, row, at);
        sum += norm_sum<CENTERED>(h);
    }
    const float mean = group_sum<Group::SIZE>(sum) / (float)p.n;
    norm_statistics s = { 0, 0 };
    if (CENTERED)
        s = norm_center<T, R, Group>(h, p, row, mean);
    else
        s.rstd = 1 / square_root(mean + p.eps);
    if (Group::rank() == 0) {
        if (p.mean.data) store_one<f32>(p.mean.data, row, s.mean);
        if (p.rstd.data) store_one<f32>(p.rstd.data, row, s.rstd);
    }
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        if (p.n > Group::PIECE) norm_read<T, R, Group>(h, p, row, at);
        norm_write<T, R, W, Group>(h, p, row, at, s);
    }
}

/* The entries of a norm, for the combinations of types that the specification has; M defines those of one combination. */
#define NORM_ENTRY(op, G, T, R, W) \
    ENTRY(op##_##T##_##R##_##W##_##G, group<G>::THREADS, op##_params) { op##_row<T, R, W, group<G>>(p); }
#define NORM_ENTRIES_1(op, T, R, W) NORM_ENTRY(op, 32, T, R, W) NORM_ENTRY(op, 256, T, R, W) NORM_ENTRY(op, 1024, T, R, W)
#define NORM_ENTRIES_2(op, T, R, W) NORM_ENTRY(op, 32, T, R, W) NORM_ENTRY(op, 256, T, R, W) NORM_ENTRY(op, 512, T, R, W)
#define EACH_NORM(M, op) \
    M(op, f32, f32, f32) \
    M(op, bf16, bf16, bf16) \
    M(op, bf16, bf16, f32) \
    M(op, bf16, f32, bf16) \
    M(op, bf16, f32, f32) \
    M(op, f16, f16, f16) \
    M(op, f16, f16, f32) \
    M(op, f16, f32, f16) \
    M(op, f16, f32, f32)

#endif
