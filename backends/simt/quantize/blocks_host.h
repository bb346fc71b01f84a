/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of matrices as codes with a scale for each block. */
#ifndef TRINE_SIMT_QUANTIZE_BLOCKS_HOST_H
#define TRINE_SIMT_QUANTIZE_BLOCKS_HOST_H

#include "blocks.h"
#include "rows_host.h"
#include "spec/scaled/blocks.h"

/* Where x, or y, codes and scales are, and the sizes. */
typedef struct blocks_places {
    int x, codes, scales;
    int64_t r, k, rows, columns;
    bool powers, upward;
} blocks_places;

static inline blocks_params blocks_params_of(const trine_call *call, const blocks_places *at) {
    const row_places rows = { at->codes, at->scales, at->x, at->r, at->k, 1, at->powers, at->upward };
    blocks_params p = { .out = row_codes_of(call, &rows),
                        .x = simt_rows_of(call, at->x),
                        .columns = at->columns,
                        .high = scaled_block(at->r, at->rows),
                        .wide = scaled_block(at->k, at->columns),
                        .count = at->rows * at->columns,
                        .largest = call->workspace };
    p.across = simt_blocks(p.wide, BLOCKS_PIECE_COLUMNS);
    p.pieces = simt_blocks(p.high, BLOCKS_PIECE_ROWS) * p.across;
    p.out.vectors =
        p.wide % CODES_UNIT == 0 && at->k % CODES_UNIT == 0 && row_aligned(call, at->x) && row_aligned(call, at->codes);
    p.units = at->columns * simt_blocks(p.wide, CODES_UNIT);
    return p;
}

#endif
