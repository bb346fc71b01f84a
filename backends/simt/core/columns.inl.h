/* SPDX-License-Identifier: Apache-2.0 */
/* Device side of the sums over rows. */
#ifndef TRINE_SIMT_COLUMNS_INL_H
#define TRINE_SIMT_COLUMNS_INL_H

#include "columns.h"
#include "simt.h"

/* What a thread sums: of rows first + line, first + line + 8, ... those of a lane. */
struct columns_place {
    int64_t block, tile, first, end;
    int line;
    lane l;
};
DEVICE columns_place columns_place_of(const columns_params &p) {
    const int64_t tiles = (p.n + COLUMNS_WIDTH - 1) / COLUMNS_WIDTH, block = block_index() / tiles,
                  tile = block_index() - block * tiles;
    const int64_t first = block * p.block_rows, end = first + p.block_rows < p.rows ? first + p.block_rows : p.rows;
    return { block,
             tile,
             first,
             end,
             thread_index() / 32,
             { tile * COLUMNS_WIDTH + thread_index() % 32 * VECTOR, p.n, p.wide } };
}

/* Adds the block's 8 lines in order, then rows that were folded. */
template <int SUMS>
DEVICE void columns_store(const columns_params &p, float *const (&partial)[SUMS], const float (&sum)[SUMS][VECTOR],
                          const columns_place &place) {
    SHARED float part[SUMS][COLUMNS_LINES][COLUMNS_WIDTH];
    const int thread = thread_index(), column = thread % 32 * VECTOR;
#pragma unroll
    for (int s = 0; s < SUMS; s++)
#pragma unroll
        for (int k = 0; k < VECTOR; k++) part[s][place.line][column + k] = sum[s][k];
    sync_block();
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        float total = 0;
#pragma unroll
        for (int i = 0; i < COLUMNS_LINES; i++) total += part[s][i][thread];
        if (p.fold > 1) {
            const int n = (int)(p.n / p.fold);
            part[s][0][thread] = total;
            sync_block();
            for (int i = thread + n; thread < n && i < p.n; i += n) total += part[s][0][i];
            if (thread < n && partial[s]) partial[s][place.block * n + thread] = total;
        } else {
            const int64_t at = place.tile * COLUMNS_WIDTH + thread;
            if (at < p.n && partial[s]) partial[s][place.block * p.n + at] = total;
        }
    }
}

/* Sums of SUMS quantities over a block of rows: Terms adds those of one row to sum[], of 8 columns each. AT_ONCE: rows
 * of a turn of the loop; 1 where terms are stored too, as f16 by instructions that clang does not repeat for gfx942. */
template <int SUMS, int AT_ONCE = 4, class Terms>
DEVICE void columns_block(const columns_params &p, float *const (&partial)[SUMS], const Terms &terms) {
    const columns_place place = columns_place_of(p);
    float sum[SUMS][VECTOR] = {};
    if (whole(place.l)) {
#pragma unroll AT_ONCE
        for (int64_t row = place.first + place.line; row < place.end; row += COLUMNS_LINES)
            terms.template add<true>(sum, row, place.l);
    } else {
        for (int64_t row = place.first + place.line; row < place.end; row += COLUMNS_LINES)
            terms.template add<false>(sum, row, place.l);
    }
    columns_store(p, partial, sum, place);
}

/* The sums of the blocks: the threads of each of `WIDTH` columns take a part of the blocks, which are then added in
 * order. */
template <class S, int WIDTH = COLUMNS_FINISH>
DEVICE void columns_finish(const columns_params &p, int64_t block = block_index()) {
    constexpr int LINES = SIMT_THREADS / WIDTH, PARTS = SIMT_THREADS / (WARP > WIDTH ? WARP : WIDTH);
    SHARED float part[PARTS][WIDTH];
    const int line = thread_index() / WIDTH, column = thread_index() % WIDTH;
    const int64_t at = block * WIDTH + column;
    float sum = 0;
    if (at < p.n)
#pragma unroll 8
        for (int64_t b = line; b < p.blocks; b += LINES) sum += p.partial[b * p.n + at];
#pragma unroll
    for (int mask = WARP / 2; mask >= WIDTH; mask /= 2) sum += shuffle_xor(sum, mask);
    part[thread_index() / (SIMT_THREADS / PARTS)][column] = sum;
    sync_block();
    if (line > 0 || at >= p.n) return;
    for (int i = 1; i < PARTS; i++) sum += part[i][column];
    store_one<S>(p.out.data, at, sum);
}

#endif
