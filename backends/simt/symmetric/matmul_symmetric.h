/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul_symmetric's host side passes to its device side. */
#ifndef TRINE_SIMT_MATMUL_SYMMETRIC_H
#define TRINE_SIMT_MATMUL_SYMMETRIC_H

#include "backends/simt/core/params.h"

/* Of a tile, by type: elements on a side, and of k in a step. */
enum {
    SYMMETRIC_SIDE = 128,
    SYMMETRIC_SIDE_F64 = 64,
    SYMMETRIC_MIRROR = 64,            /* elements on a side of a tile that is put across the diagonal */
    SYMMETRIC_STEP = SIMT_THREADS * 8 /* elements of either operand */
};

typedef struct symmetric_params {
    const void *a;
    simt_rows c, d;             /* c.data: NULL if absent */
    int64_t batch, lane, along; /* strides of a, in elements */
    int64_t m, k, tiles;        /* tiles: of a batch, on the diagonal and below */
    float alpha, beta;
    bool across;  /* neighbours in a's memory are neighbours in m */
    bool aligned; /* its lines, to 16 bytes */
    bool whole;   /* d's rows, likewise */
} symmetric_params;

#endif
