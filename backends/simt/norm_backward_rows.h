/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward on devices: the one is the other without the mean. */
#ifndef TRINE_SIMT_NORM_BACKWARD_ROWS_H
#define TRINE_SIMT_NORM_BACKWARD_ROWS_H

#include "columns.inl.h"
#include "norm_rows.h"

/* Elements of dy and h as they are in memory, so that they take no more registers than they must. */
template <class T, class R, int V> struct norm_held {
    typename T::bits dy[V][VECTOR];
    typename R::bits h[V][VECTOR];
};

template <bool CENTERED> DEVICE norm_statistics norm_saved(const norm_backward_params &p, int64_t row) {
    return { CENTERED ? load_one<f32>(p.mean.data, row) : 0.0f, load_one<f32>(p.rstd.data, row) };
}

template <class T, class R, class Group>
DEVICE void norm_backward_read(norm_held<T, R, Group::VECTORS> &x, const norm_backward_params &p, int64_t row, int64_t at) {
    Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
        load_bits(x.dy[v], row_at<T>(p.dy, row), l);
        load_bits(x.h[v], row_at<R>(p.h, row), l);
    });
}

/* g = (weight + offset) dy and xhat of a vector; both 0 beyond the row. */
template <class T, class R, class W>
DEVICE void norm_backward_terms(float (&g)[VECTOR], float (&hat)[VECTOR], const typename T::bits (&dy)[VECTOR], const typename R::bits (&h)[VECTOR],
                                const norm_backward_params &p, const lane &l, const norm_statistics &s) {
#pragma unroll
    for (int k = 0; k < VECTOR; k++) {
        g[k] = T::get(dy[k]);
        hat[k] = within(l, k) ? (R::get(h[k]) - s.mean) * s.rstd : 0.0f;
    }
    if (!p.weight.data) return;
    float weight[VECTOR];
    load<W>(weight, p.weight.data, l);
#pragma unroll
    for (int k = 0; k < VECTOR; k++) g[k] *= weight[k] + p.weight_offset;
}

/* Adds the sums of g and of g xhat. */
template <class T, class R, class W, class Group>
DEVICE void norm_backward_sums(const norm_held<T, R, Group::VECTORS> &x, const norm_backward_params &p, int64_t at, const norm_statistics &s, float &sum,
                               float &product) {
    Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
        float g[VECTOR], hat[VECTOR];
        norm_backward_terms<T, R, W>(g, hat, x.dy[v], x.h[v], p, l, s);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            sum += g[k];
            product = fused(g[k], hat[k], product);
        }
    });
}

/* dh = rstd (g - c1 - xhat c2) + dresidual; dx = dropout of dh */
template <class T, class R, class W, class Group>
DEVICE void norm_backward_write(const norm_held<T, R, Group::VECTORS> &x, const norm_backward_params &p, int64_t row, int64_t at, const norm_statistics &s,
                                float c1, float c2) {
    Group::each(at, p.n, p.wide, [&](int v, const lane &l) {
        float g[VECTOR], hat[VECTOR];
        norm_backward_terms<T, R, W>(g, hat, x.dy[v], x.h[v], p, l, s);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) g[k] = (g[k] - c1 - hat[k] * c2) * s.rstd;
        if (p.dresidual.data) {
            float residual[VECTOR];
            load<R>(residual, row_at<R>(p.dresidual, row), l);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) g[k] += residual[k];
        }
        if (p.dh.data) store<R>(g, row_at<R>(p.dh, row), l);
        if (p.dropout.p > 0) {
            bool kept[VECTOR];
            keep(kept, p.dropout, (uint64_t)(row * p.n + l.at));
#pragma unroll
            for (int k = 0; k < VECTOR; k++) g[k] = kept[k] ? g[k] * p.dropout.scale : 0.0f;
        }
        store<T>(g, row_at<T>(p.dx, row), l);
    });
}

/* A row of several pieces. */
template <bool CENTERED, class T, class R, class W, class Group> DEVICE void norm_backward_long(const norm_backward_params &p) {
    const int64_t row = Group::row();
    const norm_statistics s = norm_saved<CENTERED>(p, row);
    norm_held<T, R, Group::VECTORS> x;
    float sum = 0, product = 0;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        norm_backward_read<T, R, Group>(x, p, row, at);
        norm_backward_sums<T, R, W, Group>(x, p, at, s, sum, product);
    }
    const float c1 = CENTERED ? group_sum<Group::SIZE>(sum) / (float)p.n : 0, c2 = group_sum<Group::SIZE>(product) / (float)p.n;
    for (int64_t at = 0; at < p.n; at += Group::PIECE) {
        norm_backward_read<T, R, Group>(x, p, row, at);
        norm_backward_write<T, R, W, Group>(x, p, row, at, s, c1, c2);
    }
}

/* Adds the groups of the block in order and stores their sum. */
template <class Group> DEVICE void norm_partial(float *partial, const float (&sum)[Group::VECTORS][VECTOR], const norm_backward_params &p) {
    float *to = partial + block_index() * p.n;
    if constexpr (Group::ROWS == 1) {
        Group::each(0, p.n, p.n % VECTOR == 0, [&](int v, const lane &l) { store<f32>(sum[v], to, l); });
    } else {
        SHARED float part[Group::ROWS][Group::PIECE];
        sync_block();
        Group::each(0, p.n, true, [&](int v, const lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) part[thread_index() / Group::SIZE][l.at + k] = sum[v][k];
        });
        sync_block();
        for (int at = thread_index(); at < p.n; at += Group::THREADS) {
            float total = 0;
            for (int i = 0; i < Group::ROWS; i++) total += part[i][at];
            to[at] = total;
        }
    }
}

/* Rows of one piece, in turns. A group that has no row left follows the others through the last turn. */
template <bool CENTERED, class T, class R, class W, class Group> DEVICE void norm_backward_rows(const norm_backward_params &p) {
    float dweight[Group::VECTORS][VECTOR] = {}, dbias[Group::VECTORS][VECTOR] = {};
    for (int64_t turn = 0; turn < p.turns; turn++) {
        const int64_t mine = turn * p.blocks * Group::ROWS + Group::row();
        const bool live = mine < p.rows;
        const int64_t row = live ? mine : 0;
        const norm_statistics s = norm_saved<CENTERED>(p, row);
        norm_held<T, R, Group::VECTORS> x;
        float sum = 0, product = 0;
        norm_backward_read<T, R, Group>(x, p, row, 0);
        norm_backward_sums<T, R, W, Group>(x, p, 0, s, sum, product);
        const float c1 = CENTERED ? group_sum<Group::SIZE>(sum) / (float)p.n : 0, c2 = group_sum<Group::SIZE>(product) / (float)p.n;
        if (!live) continue;
        norm_backward_write<T, R, W, Group>(x, p, row, 0, s, c1, c2);
        Group::each(0, p.n, p.wide, [&](int v, const lane &l) {
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                if (!within(l, k)) continue;
                dweight[v][k] += T::get(x.dy[v][k]) * ((R::get(x.h[v][k]) - s.mean) * s.rstd);
                if (CENTERED) dbias[v][k] += T::get(x.dy[v][k]);
            }
        });
    }
    if (p.weight_partial) norm_partial<Group>(p.weight_partial, dweight, p);
    if (CENTERED && p.bias_partial) norm_partial<Group>(p.bias_partial, dbias, p);
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
    float *const partial[2] = { p.norm.weight_partial, p.norm.bias_partial };
    columns_block<2>(p.columns, partial, norm_terms<CENTERED, T, R>{ p.norm });
}

#define NORM_ROWS(op, CENTERED, G, T, R, W) \
    ENTRY(op##_##T##_##R##_##W##_##G, group<G>::THREADS, norm_backward_params) { \
        norm_backward_rows<CENTERED, T, R, W, group<G, NORM_FUSED_ITEMS / VECTOR>>(p); \
    }
#define NORM_TYPES(op, CENTERED, T, R, W) \
    NORM_ROWS(op, CENTERED, 32, T, R, W) \
    NORM_ROWS(op, CENTERED, 128, T, R, W) \
    NORM_ROWS(op, CENTERED, 256, T, R, W) \
    NORM_ROWS(op, CENTERED, 512, T, R, W) \
    ENTRY(op##_long_##T##_##R##_##W, NORM_FUSED_MOST, norm_backward_params) { norm_backward_long<CENTERED, T, R, W, group<NORM_FUSED_MOST>>(p); }
#define NORM_COLUMNS(op, CENTERED, T, R) \
    ENTRY(op##_columns_##T##_##R, SIMT_THREADS, norm_columns_params) { norm_columns<CENTERED, T, R>(p); }
#define NORM_FINISH(op, W) \
    ENTRY(op##_finish_##W, SIMT_THREADS, columns_params) { columns_finish<W>(p); }
#define NORM_BACKWARD_ENTRIES(op, CENTERED) \
    EACH_NORM(NORM_TYPES, op, CENTERED) \
    NORM_COLUMNS(op, CENTERED, f32, f32) \
    NORM_COLUMNS(op, CENTERED, bf16, bf16) \
    NORM_COLUMNS(op, CENTERED, bf16, f32) \
    NORM_COLUMNS(op, CENTERED, f16, f16) \
    NORM_COLUMNS(op, CENTERED, f16, f32) \
    NORM_FINISH(op, f32) \
    NORM_FINISH(op, bf16) \
    NORM_FINISH(op, f16)

#endif
