/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of the sums over rows. */
#ifndef TRINE_SIMT_COLUMNS_INL_H
#define TRINE_SIMT_COLUMNS_INL_H

#include "columns.h"
#include "simt.h"

/* Sums of SUMS quantities over a block of rows: Terms adds those of one row to sum[], of 8 columns each. The block's 8 lines are added in order at the end. */
template <int SUMS, class Terms> DEVICE void columns_block(const columns_params &p, float *const (&partial)[SUMS], const Terms &terms) {
    SHARED float part[SUMS][COLUMNS_LINES][COLUMNS_WIDTH];
    const int64_t tiles = (p.n + COLUMNS_WIDTH - 1) / COLUMNS_WIDTH, block = block_index() / tiles, tile = block_index() - block * tiles;
    const int line = thread_index() / 32, column = thread_index() % 32 * VECTOR;
    const lane l = { tile * COLUMNS_WIDTH + column, p.n, p.wide };
    const int64_t first = block * p.block_rows, end = first + p.block_rows < p.rows ? first + p.block_rows : p.rows;
    float sum[SUMS][VECTOR] = {};
#pragma unroll 2
    for (int64_t row = first + line; row < end; row += COLUMNS_LINES) terms.add(sum, row, l);
#pragma unroll
    for (int s = 0; s < SUMS; s++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) part[s][line][column + k] = sum[s][k];
    sync_block();
    const int64_t at = tile * COLUMNS_WIDTH + thread_index();
    if (at >= p.n) return;
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        float total = 0;
#pragma unroll
        for (int i = 0; i < COLUMNS_LINES; i++) total += part[s][i][thread_index()];
        if (partial[s]) partial[s][block * p.n + at] = total;
    }
}

/* The sums of the blocks: 8 threads for each of 32 columns, each a part of the blocks, which are then added in order. */
template <class S> DEVICE void columns_finish(const columns_params &p) {
    SHARED float part[COLUMNS_LINES][COLUMNS_FINISH];
    const int line = thread_index() / COLUMNS_FINISH, column = thread_index() % COLUMNS_FINISH;
    const int64_t at = block_index() * COLUMNS_FINISH + column;
    float sum = 0;
    if (at < p.n)
        for (int64_t b = line; b < p.blocks; b += COLUMNS_LINES) sum += p.partial[b * p.n + at];
    part[line][column] = sum;
    sync_block();
    if (line > 0 || at >= p.n) return;
    for (int i = 1; i < COLUMNS_LINES; i++) sum += part[i][column];
    store_one<S>(p.out.data, at, sum);
}

#endif
