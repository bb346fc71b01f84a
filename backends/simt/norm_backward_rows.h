/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward on devices: the one is the other without the mean. */
#ifndef TRINE_SIMT_NORM_BACKWARD_ROWS_H
#define TRINE_SIMT_NORM_BACKWARD_ROWS_H

#include "columns.inl.h"
#include "norm_rows.h"

/* g = (weight + offset) dy and xhat of the thread's items in a piece; both 0 beyond the row. */
template <bool CENTERED, class T, class R, class W, class Group>
DEVICE void norm_backward_read(float (&g)[ROW_VECTORS][VECTOR], float (&hat)[ROW_VECTORS][VECTOR], const norm_backward_params &p, int64_t row, int64_t at,
                               const norm_statistics &s) {
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++) {
        const lane l = Group::vector(at, v, p.n, p.wide);
        load<T>(g[v], row_at<T>(p.dy, row), l);
        load<R>(hat[v], row_at<R>(p.h, row), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) hat[v][k] = within(l, k) ? (hat[v][k] - s.mean) * s.rstd : 0.0f;
        if (!p.weight.data) continue;
        float weight[VECTOR];
        load<W>(weight, p.weight.data, l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) g[v][k] *= weight[k] + p.weight_offset;
    }
}

/* dh = rstd (g - c1 - xhat c2) + dresidual; dx = dropout of dh */
template <class T, class R, class Group>
DEVICE void norm_backward_write(float (&g)[ROW_VECTORS][VECTOR], float (&hat)[ROW_VECTORS][VECTOR], const norm_backward_params &p, int64_t row, int64_t at,
                                float rstd, float c1, float c2) {
#pragma unroll
    for (int v = 0; v < ROW_VECTORS; v++) {
        const lane l = Group::vector(at, v, p.n, p.wide);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) g[v][k] = (g[v][k] - c1 - hat[v][k] * c2) * rstd;
        if (p.dresidual.data) {
            float residual[VECTOR];
            load<R>(residual, row_at<R>(p.dresidual, row), l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) g[v][k] += residual[k];
        }
        if (p.dh.data) store<R>(g[v], row_at<R>(p.dh, row), l);
        if (p.dropout.p > 0) {
            bool kept[VECTOR];
            keep(kept, p.dropout, (uint64_t)(row * p.n + l.at));
#pragma unroll
            for (int k = 0; k < VECTOR; k++) g[v][k] = kept[k] ? g[v][k] * p.dropout.scale : 0.0f;
        }
        store<T>(g[v], row_at<T>(p.dx, row), l);
    }
}

template <bool CENTERED> DEVICE norm_statistics norm_saved(const norm_backward_params &p, int64_t row) {
    return { CENTERED ? load_one<f32>(p.mean.data, row) : 0.0f, load_one<f32>(p.rstd.data, row) };
}

template <bool CENTERED, class T, class R, class W, class Group> DEVICE void norm_backward_row(const norm_backward_params &p) {
    const int64_t row = Group::row();
    if (row >= p.rows) return;
    const norm_statistics s = norm_saved<CENTERED>(p, row);
    float g[ROW_VECTORS][VECTOR], hat[ROW_VECTORS][VECTOR], sum = 0, product = 0;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        norm_backward_read<CENTERED, T, R, W, Group>(g, hat, p, row, at, s);
#pragma unroll
        for (int v = 0; v < ROW_VECTORS; v++)
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                sum += g[v][k];
                product = fused(g[v][k], hat[v][k], product);
            }
    }
    const float c1 = CENTERED ? group_sum<Group::SIZE>(sum) / (float)p.n : 0, c2 = group_sum<Group::SIZE>(product) / (float)p.n;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        if (p.n > Group::PIECE) norm_backward_read<CENTERED, T, R, W, Group>(g, hat, p, row, at, s);
        norm_backward_write<T, R, Group>(g, hat, p, row, at, s.rstd, c1, c2);
    }
}

/* dweight sums dy xhat, dbias dy. */
template <bool CENTERED, class T, class R> struct norm_terms {
    const norm_backward_params &p;
    DEVICE void add(float (&sum)[2][VECTOR], int64_t row, const lane &l) const {
        const norm_statistics s = norm_saved<CENTERED>(p, row);
        float dy[VECTOR], h[VECTOR];
        load<T>(dy, row_at<T>(p.dy, row), l);
        load<R>(h, row_at<R>(p.h, row), l);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            sum[0][k] += dy[k] * ((h[k] - s.mean) * s.rstd);
            sum[1][k] += dy[k];
        }
    }
};

template <bool CENTERED, class T, class R> DEVICE void norm_columns(const norm_columns_params &p) {
    float *const partial[2] = { p.weight_partial, p.bias_partial };
    columns_block<2>(p.columns, partial, norm_terms<CENTERED, T, R>{ p.norm });
}

#define NORM_COLUMNS(op, CENTERED, T, R) \
    ENTRY(op##_columns_##T##_##R, SIMT_THREADS, norm_columns_params) { norm_columns<CENTERED, T, R>(p); }
#define NORM_FINISH(op, W) \
    ENTRY(op##_finish_##W, SIMT_THREADS, columns_params) { columns_finish<W>(p); }
#define NORM_COLUMN_ENTRIES(op, CENTERED) \
    NORM_COLUMNS(op, CENTERED, f32, f32) \
    NORM_COLUMNS(op, CENTERED, bf16, bf16) \
    NORM_COLUMNS(op, CENTERED, bf16, f32) \
    NORM_COLUMNS(op, CENTERED, f16, f16) \
    NORM_COLUMNS(op, CENTERED, f16, f32) \
    NORM_FINISH(op, f32) \
    NORM_FINISH(op, bf16) \
    NORM_FINISH(op, f16)

#endif
