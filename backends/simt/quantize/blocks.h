/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices as codes of a byte with a scale for each block: what the host sides pass. */
#ifndef TRINE_SIMT_QUANTIZE_BLOCKS_H
#define TRINE_SIMT_QUANTIZE_BLOCKS_H

#include "rows.h"

/* What a block of threads has at a time, of blocks that are larger than this. */
enum { BLOCKS_PIECE_ROWS = 32, BLOCKS_PIECE_COLUMNS = 2048 };

typedef struct blocks_params {
    row_codes out;                 /* types, and where codes and scales are; `r`, `k` of the matrix */
    simt_rows x;                   /* or y */
    int64_t columns, high, wide;   /* scales of a row; rows and columns of a block */
    int64_t count, pieces, across; /* blocks; pieces of one, and of those how many side by side */
    int64_t units;                 /* of a row: those of a block do not go beyond it */
    uint32_t *largest;             /* of each piece, as bits */
} blocks_params;

#endif
