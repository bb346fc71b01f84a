/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_weights by multiply-adds of f32: a thread has 4 x 8 sums, each in the order of the group's rows. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_WEIGHTS_SIMT_INL_H
#define TRINE_SIMT_GROUPED_MATMUL_WEIGHTS_SIMT_INL_H

#include "grouped_matmul_weights_tiles.inl.h"

enum {
    WEIGHTS_SIDE = 16, /* threads down and right */
    WEIGHTS_DOWN = WEIGHTS_ROWS / WEIGHTS_SIDE,
    WEIGHTS_RIGHT = WEIGHTS_COLUMNS / WEIGHTS_SIDE,
    WEIGHTS_A = WEIGHTS_ROWS / VECTOR,    /* vectors of a step's row of dy, */
    WEIGHTS_B = WEIGHTS_COLUMNS / VECTOR, /* and of x */
    WEIGHTS_FETCHES = WEIGHTS_DEPTH * WEIGHTS_B / SIMT_THREADS
};
static_assert(WEIGHTS_SIDE * WEIGHTS_SIDE == SIMT_THREADS, "a thread has its part of the sums");
static_assert(WEIGHTS_DEPTH * WEIGHTS_A == SIMT_THREADS, "a thread loads a vector of dy");

/* What a thread fetches of the rows from `at` on. */
template <class T>
DEVICE void weights_fetch(float (&a)[VECTOR], float (&b)[WEIGHTS_FETCHES][VECTOR], const weights_params &p,
                          const weights_tile &tile, int32_t at) {
    using bits = typename T::bits;
    const int thread = thread_index();
    const int32_t own = at + thread / WEIGHTS_A;
    const int64_t down = tile.row + thread % WEIGHTS_A * VECTOR, right = tile.column + thread % WEIGHTS_B * VECTOR;
    const bool there = tile.source(p, own) >= 0;
    load<T>(a, (const bits *)p.dy.data + (there ? own : 0) * p.dy.row, { there ? down : p.n, p.n, p.dy_aligned });
#pragma unroll
    for (int i = 0; i < WEIGHTS_FETCHES; i++) {
        const int64_t source = tile.source(p, at + (thread + i * SIMT_THREADS) / WEIGHTS_B);
        load<T>(b[i], (const bits *)p.x.data + (source < 0 ? 0 : source) * p.x.row,
                { source < 0 ? p.k : right, p.k, p.x_aligned });
    }
}

template <class T, class O> DEVICE void grouped_weights(const weights_params &p) {
    SHARED float a[WEIGHTS_DEPTH][WEIGHTS_ROWS + 1], b[WEIGHTS_DEPTH][WEIGHTS_COLUMNS + 1];
    const weights_tile tile(p);
    const int thread = thread_index(), down = thread / WEIGHTS_SIDE, right = thread % WEIGHTS_SIDE;
    float sum[WEIGHTS_DOWN][WEIGHTS_RIGHT] = {}, row_sum = 0, next_a[VECTOR], next_b[WEIGHTS_FETCHES][VECTOR];
    if (tile.first < tile.last) weights_fetch<T>(next_a, next_b, p, tile, tile.first);
    for (int32_t at = tile.first; at < tile.last; at += WEIGHTS_DEPTH) {
        sync_block();
#pragma unroll
        for (int i = 0; i < VECTOR; i++) a[thread / WEIGHTS_A][thread % WEIGHTS_A * VECTOR + i] = next_a[i];
#pragma unroll
        for (int f = 0; f < WEIGHTS_FETCHES; f++)
#pragma unroll
            for (int i = 0; i < VECTOR; i++)
                b[(thread + f * SIMT_THREADS) / WEIGHTS_B][thread % WEIGHTS_B * VECTOR + i] = next_b[f][i];
        sync_block();
        if (at + WEIGHTS_DEPTH < tile.last) weights_fetch<T>(next_a, next_b, p, tile, at + WEIGHTS_DEPTH);
        for (int q = 0; tile.sums(p) && thread < WEIGHTS_ROWS && q < WEIGHTS_DEPTH; q++) row_sum += a[q][thread];
#pragma unroll 4
        for (int q = 0; q < WEIGHTS_DEPTH; q++) {
            float u[WEIGHTS_DOWN], v[WEIGHTS_RIGHT];
#pragma unroll
            for (int i = 0; i < WEIGHTS_DOWN; i++) u[i] = a[q][down + i * WEIGHTS_SIDE];
#pragma unroll
            for (int j = 0; j < WEIGHTS_RIGHT; j++) v[j] = b[q][right + j * WEIGHTS_SIDE];
#pragma unroll
            for (int i = 0; i < WEIGHTS_DOWN; i++)
#pragma unroll
                for (int j = 0; j < WEIGHTS_RIGHT; j++) sum[i][j] = fused(u[i], v[j], sum[i][j]);
        }
    }
    if (tile.sums(p)) tile.put_sum<O>(p, row_sum);
#pragma unroll
    for (int i = 0; i < WEIGHTS_DOWN; i++) {
        const int64_t row = tile.row + down + i * WEIGHTS_SIDE, to = tile.group * p.dw.batch + row * p.dw.row;
#pragma unroll
        for (int j = 0; j < WEIGHTS_RIGHT; j++) {
            const int64_t column = tile.column + right + j * WEIGHTS_SIDE;
            if (row < p.n && column < p.k) store_one<O>(p.dw.data, to + column, sum[i][j]);
        }
    }
}

#endif
