/* SPDX-License-Identifier: Apache-2.0 */
/* What matvec_sparse's host side passes to its device side. */
#ifndef TRINE_SIMT_MATVEC_SPARSE_H
#define TRINE_SIMT_MATVEC_SPARSE_H

#include "backends/simt/core/params.h"

enum {
    SPARSE_TEAM = 32, /* threads that have a row of w */
    SPARSE_TEAMS = SIMT_THREADS / SPARSE_TEAM,
    SPARSE_TILE = 256,           /* columns of a block */
    SPARSE_ROWS = 4,             /* of h at once; or one */
    SPARSE_PIECE = SIMT_THREADS, /* rows of w that are looked at at a time */
    SPARSE_BLOCKS = 1024         /* that a launch should have, if w has rows enough */
};

typedef struct sparse_params {
    simt_rows h, w, y;
    float *partial;                       /* [splits][r][k]; NULL: sums are whole */
    int64_t r, n, k, tiles, splits, part; /* part: rows of w in a split */
    bool whole;                           /* rows of w are aligned */
} sparse_params;

#endif
