/* SPDX-License-Identifier: Apache-2.0 */
/* Products of groups of rows by multiply-adds of f32. */
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

/* The columns of a group's matrix from `column` on, as a block fetches them for the depth from `at` on: what a thread
 * has of that, and puts where all find it. */
template <class T> struct grouped_dense {
    const grouped_params &p;
    const typename T::bits *w;
    int64_t column;
    float v[GROUPED_FETCHES][VECTOR];

    DEVICE explicit grouped_dense(const grouped_params &params) : p(params) {}
    DEVICE void begin(int32_t group, int64_t first) {
        w = (const typename T::bits *)p.w + group * p.w_group, column = first;
    }
    DEVICE void fetch(int64_t at) {
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
    DEVICE void keep(float (*to)[GROUPED_COLUMNS + 1]) const {
#pragma unroll
        for (int i = 0; i < GROUPED_FETCHES; i++)
#pragma unroll
            for (int q = 0; q < VECTOR; q++)
                if (p.across)
                    to[grouped_across(i)][thread_index() % GROUPED_ACROSS * VECTOR + q] = v[i][q];
                else
                    to[thread_index() % GROUPED_PIECES * VECTOR + q][grouped_along(i)] = v[i][q];
    }
};

template <class T, class O, class Weights> DEVICE void grouped_product(const grouped_params &p, Weights w) {
    SHARED float a[GROUPED_DEPTH][GROUPED_ROWS + 1], b[GROUPED_DEPTH][GROUPED_COLUMNS + 1];
    const grouped_tile tile = p.tile[block_index() % p.tiles];
    const int64_t column = block_index() / p.tiles * GROUPED_COLUMNS;
    const int thread = thread_index(), down = thread / GROUPED_SIDE, right = thread % GROUPED_SIDE;
    const int own = thread / GROUPED_PIECES, ahead = thread % GROUPED_PIECES * VECTOR;
    if (tile.first >= tile.last) return;
    const int64_t source = tile.group >= 0 && tile.first + own < tile.last ? grouped_source(p, tile.first + own) : -1;
    const typename T::bits *const x = (const typename T::bits *)p.x.data + (source < 0 ? 0 : source) * p.x.row;
    float sum[GROUPED_DOWN][GROUPED_RIGHT] = {}, next_a[VECTOR];
    const int64_t depth = tile.group < 0 ? 0 : p.k;
    if (depth > 0) {
        load<T>(next_a, x, { source < 0 ? p.k : ahead, p.k, p.x_aligned });
        w.begin(tile.group, column);
        w.fetch(0);
    }
    for (int64_t at = 0; at < depth; at += GROUPED_DEPTH) {
        sync_block();
#pragma unroll
        for (int i = 0; i < VECTOR; i++) a[ahead + i][own] = next_a[i];
        w.keep(b);
        sync_block();
        if (at + GROUPED_DEPTH < depth) {
            load<T>(next_a, x, { source < 0 ? p.k : at + GROUPED_DEPTH + ahead, p.k, p.x_aligned });
            w.fetch(at + GROUPED_DEPTH);
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

template <class T, class O> DEVICE void grouped(const grouped_params &p) {
    grouped_product<T, O>(p, grouped_dense<T>(p));
}

#endif
