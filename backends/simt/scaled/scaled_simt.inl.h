/* SPDX-License-Identifier: Apache-2.0 */
/* Products with scales of blocks by multiply-adds of f32: a block has a tile of 64 rows and 128 columns, a thread 4 x 8
 * sums. */
#ifndef TRINE_SIMT_SCALED_SIMT_INL_H
#define TRINE_SIMT_SCALED_SIMT_INL_H

#include "matmul_scaled_tiles.inl.h"

enum {
    SCALED_THREAD_SIDE = 16, /* threads down and right */
    SCALED_DOWN = SCALED_ROWS / SCALED_THREAD_SIDE,
    SCALED_RIGHT = SCALED_COLUMNS / SCALED_THREAD_SIDE
};

DEVICE void scaled_keep(const scaled_fetched &from, const scaled_params &p, float (*a_to)[SCALED_ROWS + 1],
                        float (*b_to)[SCALED_COLUMNS + 1]) {
    const int line = thread_index() / SCALED_PIECES, place = thread_index() % SCALED_PIECES * SCALED_PIECE;
    float v[SCALED_PIECE];
    scaled_values(v, p.a, from.a);
#pragma unroll
    for (int i = 0; i < SCALED_PIECE; i++) a_to[place + i][line] = v[i];
#pragma unroll
    for (int f = 0; f < SCALED_FETCHES; f++) {
        scaled_values(v, p.b, from.b[f]);
#pragma unroll
        for (int i = 0; i < SCALED_PIECE; i++) b_to[place + i][line + f * SCALED_LINES] = v[i];
    }
}

using scaled_sums_of_thread = float[SCALED_DOWN][SCALED_RIGHT];

/* Adds the sums of the part that has element `at`, and clears them. */
template <class Rows>
DEVICE void scaled_promote(scaled_sums_of_thread &total, scaled_sums_of_thread &sum, const scaled_params &p,
                           const Rows &rows, int row, int64_t column, int32_t at) {
    float b[SCALED_RIGHT];
#pragma unroll
    for (int j = 0; j < SCALED_RIGHT; j++)
        b[j] = scaled_scale(p.b, scaled_line(p.b, scaled_row_within(p.b, column + j * SCALED_THREAD_SIDE)), at);
#pragma unroll
    for (int i = 0; i < SCALED_DOWN; i++) {
        const float a = scaled_scale(p.a, scaled_line(p.a, rows(row + i * SCALED_THREAD_SIDE)), at);
#pragma unroll
        for (int j = 0; j < SCALED_RIGHT; j++) {
            total[i][j] = fused(sum[i][j], a * b[j], total[i][j]);
            sum[i][j] = 0;
        }
    }
}

/* The block's products of the rows of a that `rows` tells, and of those of b from `column` on: each thread's go to
 * end(row, column, sum), in the tile. */
template <class Rows, class End>
DEVICE void scaled_product(const scaled_params &p, const Rows &rows, int64_t column, const End &end) {
    SHARED float a[SCALED_DEPTH][SCALED_ROWS + 1], b[SCALED_DEPTH][SCALED_COLUMNS + 1];
    const int down = thread_index() / SCALED_THREAD_SIDE, right = thread_index() % SCALED_THREAD_SIDE;
    scaled_sums_of_thread total = {}, sum = {};
    scaled_step step(p, 0);
    scaled_fetched fetched;
    fetched.fetch(p, rows, column, step);
    while (step.at < p.k) {
        sync_block();
        scaled_keep(fetched, p, a, b);
        sync_block();
        const scaled_step now = step;
        step.advance(p);
        if (step.at < p.k) fetched.fetch(p, rows, column, step);
#pragma unroll 4
        for (int q = 0; q < SCALED_DEPTH; q++) {
            float u[SCALED_DOWN], v[SCALED_RIGHT];
#pragma unroll
            for (int i = 0; i < SCALED_DOWN; i++) u[i] = a[q][down + i * SCALED_THREAD_SIDE];
#pragma unroll
            for (int j = 0; j < SCALED_RIGHT; j++) v[j] = b[q][right + j * SCALED_THREAD_SIDE];
#pragma unroll
            for (int i = 0; i < SCALED_DOWN; i++)
#pragma unroll
                for (int j = 0; j < SCALED_RIGHT; j++) sum[i][j] = fused(u[i], v[j], sum[i][j]);
        }
        if (now.last()) scaled_promote(total, sum, p, rows, down, column + right, now.at);
    }
#pragma unroll
    for (int i = 0; i < SCALED_DOWN; i++)
#pragma unroll
        for (int j = 0; j < SCALED_RIGHT; j++)
            end(down + i * SCALED_THREAD_SIDE, right + j * SCALED_THREAD_SIDE, total[i][j]);
}

#endif
