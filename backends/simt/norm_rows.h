/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm on devices: the one is the other without the mean. */
#ifndef TRINE_SIMT_NORM_ROWS_H
#define TRINE_SIMT_NORM_ROWS_H

#include "norm.h"
#include "philox.h"
#include "row.h"

/* h = dropout(x) + residual of the thread's items in a piece. */
template <class T, class R, class Group> DEVICE void norm_read(float (&h)[ROW_VECTORS][VECTOR], const norm_params &p, int64_t row, int64_t at) {
    Group::each(at, p.n, p.wide, [&](int v, const lane &l) { load<T>(h[v], row_at<T>(p.x, row), l); });
    if (p.dropout.p > 0)
        Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
            bool k[VECTOR];
            keep(k, p.dropout, (uint64_t)(row * p.n + l.at));
#pragma unroll
            for (int i = 0; i < VECTOR; i++) h[v][i] = k[i] ? h[v][i] * p.dropout.scale : 0.0f;
        });
    if (p.residual.data)
        Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
            float residual[VECTOR];
            load<R>(residual, row_at<R>(p.residual, row), l);
#pragma unroll
            for (int i = 0; i < VECTOR; i++) h[v][i] += residual[i];
        });
}

struct norm_statistics {
    float mean, rstd;
};

/* Sums of h, or of its squares. */
template <bool CENTERED, class Group> DEVICE float norm_sum(const float (&h)[ROW_VECTORS][VECTOR], int64_t at, int64_t n) {
    float sum = 0;
    Group::each(at, n, true, [&](int v, const lane &) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) sum = CENTERED ? sum + h[v][k] : fused(h[v][k], h[v][k], sum);
    });
    return sum;
}

/* The sums of h - origin correct both the mean and the variance for the rounding of the first mean (spec/layer_norm.c). */
template <class T, class R, class Group> DEVICE norm_statistics norm_center(float (&h)[ROW_VECTORS][VECTOR], const norm_params &p, int64_t row, float origin) {
    float shift = 0, squares = 0;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        if (p.n > Group::PIECE) norm_read<T, R, Group>(h, p, row, at);
        Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                const float d = within(l, k) ? h[v][k] - origin : 0.0f;
                shift += d;
                squares = fused(d, d, squares);
            }
        });
    }
    shift = group_sum<Group::SIZE>(shift) / (float)p.n;
    const float variance = group_sum<Group::SIZE>(squares) / (float)p.n - shift * shift;
    const bool finite = magnitude(origin) < infinity();
    return { finite ? origin + shift : origin, 1 / square_root((variance < 0 ? 0 : variance) + p.eps) };
}

/* y = (h - mean) rstd (weight + offset) + bias */
template <class T, class R, class W, class Group>
DEVICE void norm_write(float (&h)[ROW_VECTORS][VECTOR], const norm_params &p, int64_t row, int64_t at, const norm_statistics &s) {
    Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
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
    });
}

template <bool CENTERED, class T, class R, class W, class Group> DEVICE void norm_row(const norm_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    float h[ROW_VECTORS][VECTOR], sum = 0;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        norm_read<T, R, Group>(h, p, row, at);
        sum += norm_sum<CENTERED, Group>(h, at, p.n);
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
#define NORM_ENTRY(op, CENTERED, G, T, R, W) \
    ENTRY(op##_##T##_##R##_##W##_##G, group<G>::THREADS, norm_params) { norm_row<CENTERED, T, R, W, group<G>>(p); }
#define NORM_ENTRIES(op, CENTERED, T, R, W) \
    NORM_ENTRY(op, CENTERED, 32, T, R, W) \
    NORM_ENTRY(op, CENTERED, 256, T, R, W) \
    NORM_ENTRY(op, CENTERED, 1024, T, R, W)
#define EACH_NORM(M, op, CENTERED) \
    M(op, CENTERED, f32, f32, f32) \
    M(op, CENTERED, bf16, bf16, bf16) \
    M(op, CENTERED, bf16, bf16, f32) \
    M(op, CENTERED, bf16, f32, bf16) \
    M(op, CENTERED, bf16, f32, f32) \
    M(op, CENTERED, f16, f16, f16) \
    M(op, CENTERED, f16, f16, f32) \
    M(op, CENTERED, f16, f32, f16) \
    M(op, CENTERED, f16, f32, f32)

#endif
