/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul by multiply-adds of f32. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_SIMT_INL_H
#define TRINE_SIMT_GROUPED_MATMUL_SIMT_INL_H

#include "grouped_matmul_tiles.inl.h"

enum {
    GROUPED_SIDE = 16, /* threads down and right */
    GROUPED_DOWN = GROUPED_ROWS / GROUPED_SIDE,
    GROUPED_RIGHT = GROUPED_COLUMNS / GROUPED_SIDE,
    GROUPED_PIECES = GROUPED_DEPTH / VECTOR,   /* vectors of a row of the operands along k, */
    GROUPED_ACROSS = GROUPED_COLUMNS / VECTOR, /* or along n */
    GROUPED_FETCHES = GROUPED_COLUMNS * GROUPED_DEPTH / (SIMT_THREADS * VECTOR)
};
static_assert(GROUPED_SIDE * GROUPED_SIDE == SIMT_THREADS, "a thread has its part of the sums");
static_assert(GROUPED_ROWS * GROUPED_DEPTH == SIMT_THREADS * VECTOR, "a thread loads a vector of x");

/* The column, or the place in k, of a thread's vector `i` of w, which runs along the other. */
DEVICE int grouped_across(int i) { return (thread_index() + i * SIMT_THREADS) / GROUPED_ACROSS; }
DEVICE int grouped_along(int i) { return (thread_index() + i * SIMT_THREADS) / GROUPED_PIECES; }

/* What a thread fetches of w for the depth from `at` on. */
template <class T>
DEVICE void grouped_fetch_w(float (&v)[GROUPED_FETCHES][VECTOR], const grouped_params &p, int32_t g, int64_t column,
                            int64_t at) {
    const typename T::bits *const w = (const typename T::bits *)p.w + g * p.w_group;
#pragma unroll
    for (int i = 0; i < GROUPED_FETCHES; i++) {
        if (p.across) {
            const int64_t k = at + grouped_across(i), j = column + thread_index() % GROUPED_ACROSS * VECTOR;
            load<T>(v[i], w + (k < p.k ? k : 0) * p.w_along, { k < p.k ? j : p.n, p.n, p.w_aligned });
        } else {
            const int64_t j = column + grouped_along(i), k = at + thread_index() % GROUPED_PIECES * VECTOR;
            load<T>(v[i], w + (j < p.n ? j : 0) * p.w_lane, { j < p.n ? k : p.k, p.k, p.w_aligned });
        }
    }
}

DEVICE void grouped_keep_w(const float (&v)[GROUPED_FETCHES][VECTOR], float (*to)[GROUPED_COLUMNS + 1], bool across) {
#pragma unroll
    for (int i = 0; i < GROUPED_FETCHES; i++)
#pragma unroll
        for (int q = 0; q < VECTOR; q++)
            if (across)
                to[grouped_across(i)][thread_index() % GROUPED_ACROSS * VECTOR + q] = v[i][q];
            else
                to[thread_index() % GROUPED_PIECES * VECTOR + q][grouped_along(i)] = v[i][q];
}

template <class T, class O> DEVICE void grouped(const grouped_params &p) {
    SHARED float a[GROUPED_DEPTH][GROUPED_ROWS + 1], b[GROUPED_DEPTH][GROUPED_COLUMNS + 1];
    const grouped_tile tile = p.tile[block_index() % p.tiles];
    const int64_t column = block_index() / p.tiles * GROUPED_COLUMNS;
    const int thread = thread_index(), down = thread / GROUPED_SIDE, right = thread % GROUPED_SIDE;
    const int own = thread / GROUPED_PIECES, ahead = thread % GROUPED_PIECES * VECTOR;
    if (tile.first >= tile.last) return;
    const int64_t source = tile.group >= 0 && tile.first + own < tile.last ? grouped_source(p, tile.first + own) : -1;
    const typename T::bits *const x = (const typename T::bits *)p.x.data + (source < 0 ? 0 : source) * p.x.row;
    float sum[GROUPED_DOWN][GROUPED_RIGHT] = {}, next_a[VECTOR], next_b[GROUPED_FETCHES][VECTOR];
    const int64_t depth = tile.group < 0 ? 0 : p.k;
    if (depth > 0) {
        load<T>(next_a, x, { source < 0 ? p.k : ahead, p.k, p.x_aligned });
        grouped_fetch_w<T>(next_b, p, tile.group, column, 0);
    }
    for (int64_t at = 0; at < depth; at += GROUPED_DEPTH) {
        sync_block();
#pragma unroll
        for (int i = 0; i < VECTOR; i++) a[ahead + i][own] = next_a[i];
        grouped_keep_w(next_b, b, p.across);
        sync_block();
        if (at + GROUPED_DEPTH < depth) {
            load<T>(next_a, x, { source < 0 ? p.k : at + GROUPED_DEPTH + ahead, p.k, p.x_aligned });
            grouped_fetch_w<T>(next_b, p, tile.group, column, at + GROUPED_DEPTH);
        }
#pragma unroll 4
        for (int q = 0; q < GROUPED_DEPTH; q++) {
            float u[GROUPED_DOWN], v[GROUPED_RIGHT];
#pragma unroll
            for (int i = 0; i < GROUPED_DOWN; i++) u[i] = a[q][down + i * GROUPED_SIDE];
#pragma unroll
            for (int j = 0; j < GROUPED_RIGHT; j++) v[j] = b[q][right + j * GROUPED_SIDE];
#pragma unroll
            for (int i = 0; i < GROUPED_DOWN; i++)
#pragma unroll
                for (int j = 0; j < GROUPED_RIGHT; j++) sum[i][j] = fused(u[i], v[j], sum[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < GROUPED_DOWN; i++) {
        const grouped_row row(p, tile, tile.first + down + i * GROUPED_SIDE);
#pragma unroll
        for (int j = 0; j < GROUPED_RIGHT; j++) {
            const int64_t to = column + right + j * GROUPED_SIDE;
            if (row.there && to < p.n)
                store_one<O>(p.y.data, row.at + to, row.template end<O>(p, tile.group, to, sum[i][j]));
        }
    }
}

#endif
