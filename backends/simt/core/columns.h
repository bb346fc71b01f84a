/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of a matrix: blocks of rows first, into a partial sum of each in the workspace, then over the
 * blocks. Who sums what depends on the sizes alone. */
#ifndef TRINE_SIMT_COLUMNS_H
#define TRINE_SIMT_COLUMNS_H

#include "params.h"

enum {
    COLUMNS_WIDTH = 256, /* columns of a thread block: a vector for each of 32 threads */
    COLUMNS_LINES = 8,   /* rows that it reads at a time */
    /* rows of a block of rows, and at most, so that no sum is deeper than spec/norm/norm.h allows */
    COLUMNS_LEAST = 32,
    COLUMNS_MOST = 1024,
    COLUMNS_FINISH = 32, /* columns of a thread block of the sum over blocks; of few columns: */
    COLUMNS_NARROW = 4,
    COLUMNS_BLOCKS = 256 /* blocks of rows, unless that makes them too long */
};

typedef struct columns_params {
    simt_rows out;   /* one row */
    float *partial;  /* blocks times n */
    int64_t rows, n; /* of the matrix */
    /* rows that count as one, so that narrow ones fill a block: rows and n are then of the folded matrix;
     * up to 1: none */
    int64_t fold;
    int64_t block_rows, blocks;
    bool wide;
} columns_params;

static inline int64_t columns_block_rows(int64_t rows) {
    const int64_t even = (rows + COLUMNS_BLOCKS - 1) / COLUMNS_BLOCKS, least = COLUMNS_LEAST, most = COLUMNS_MOST;
    return even < least ? least : even > most ? most : even;
}

#endif
