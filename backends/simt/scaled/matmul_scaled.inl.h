/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on devices, without matrix units: a block has a tile of 64 rows and 128 columns, a thread 4 x 8 sums.
 *
 * NOTES. Floor: b once for each tile of rows, a once for each tile of columns. Products are made in f32, in which those
 * of whole numbers are exact up to 128. */
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

/* Adds the sums of the part that has element `at`, and clears them. */
DEVICE void scaled_promote(float (&total)[SCALED_DOWN][SCALED_RIGHT], float (&sum)[SCALED_DOWN][SCALED_RIGHT],
                           const scaled_params &p, int64_t row, int64_t column, int32_t at) {
    float b[SCALED_RIGHT];
#pragma unroll
    for (int j = 0; j < SCALED_RIGHT; j++)
        b[j] = scaled_scale(p.b, scaled_line(p.b, scaled_row_within(p.b, column + j * SCALED_THREAD_SIDE)), at);
#pragma unroll
    for (int i = 0; i < SCALED_DOWN; i++) {
        const float a = scaled_scale(p.a, scaled_line(p.a, scaled_row_within(p.a, row + i * SCALED_THREAD_SIDE)), at);
#pragma unroll
        for (int j = 0; j < SCALED_RIGHT; j++) {
            total[i][j] = fused(sum[i][j], a * b[j], total[i][j]);
            sum[i][j] = 0;
        }
    }
}

ENTRY(matmul_scaled, SIMT_THREADS, scaled_params) {
    SHARED float a[SCALED_DEPTH][SCALED_ROWS + 1], b[SCALED_DEPTH][SCALED_COLUMNS + 1];
    const int64_t row = block_index() % p.down * SCALED_ROWS, column = block_index() / p.down * SCALED_COLUMNS;
    const int down = thread_index() / SCALED_THREAD_SIDE, right = thread_index() % SCALED_THREAD_SIDE;
    float total[SCALED_DOWN][SCALED_RIGHT] = {}, sum[SCALED_DOWN][SCALED_RIGHT] = {};
    scaled_step step(p, 0);
    scaled_fetched fetched;
    fetched.fetch(p, row, column, step);
    while (step.at < p.k) {
        sync_block();
        scaled_keep(fetched, p, a, b);
        sync_block();
        const scaled_step now = step;
        step.advance(p);
        if (step.at < p.k) fetched.fetch(p, row, column, step);
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
        if (now.last()) scaled_promote(total, sum, p, row + down, column + right, now.at);
    }
#pragma unroll
    for (int i = 0; i < SCALED_DOWN; i++)
#pragma unroll
        for (int j = 0; j < SCALED_RIGHT; j++) {
            const int64_t to = row + down + i * SCALED_THREAD_SIDE, at = column + right + j * SCALED_THREAD_SIDE;
            if (to < p.a.rows && at < p.b.rows) scaled_store(p, to, at, total[i][j]);
        }
}
