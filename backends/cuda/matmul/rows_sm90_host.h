/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of 128 rows for sm_90a: how wide. */
#ifndef TRINE_CUDA_ROWS_SM90_HOST_H
#define TRINE_CUDA_ROWS_SM90_HOST_H

#include "rows_sm90.h"
#include "backends/simt/core/host.h"

/* Can copies of boxes read it, which begin at multiples of 16 bytes? */
static inline bool rows_sm90_begins_whole(const trine_tensor *t) { return (uintptr_t)t->data % 16 == 0; }

/* 256, 128 or 64 columns, whichever takes the least time for so many pairs of tiles, of which the device holds some at
 * once: in us, as measured on an H200, a step of k and the end of a tile. Rows that come by pieces bound a step. */
static inline int rows_sm90_columns(int64_t held, int64_t pairs, int64_t n, int64_t depth, bool pieces) {
    int best = 0;
    double least = 0;
    for (int columns = 256; columns >= 64; columns /= 2) {
        const double products = 0.20 + 0.0021 * columns, step = pieces && products < 0.8 ? 0.8 : products,
                     tile = (double)depth * step + 0.34 + 0.0047 * columns,
                     time = (double)simt_blocks(pairs * simt_blocks(n, columns), held) * tile;
        if (best == 0 || time < least) best = columns, least = time;
    }
    return best;
}

#endif
