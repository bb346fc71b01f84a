/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of conv1d_causal and its gradient passes to their device side. */
#ifndef TRINE_SIMT_CONV1D_H
#define TRINE_SIMT_CONV1D_H

#include "scan.h"

enum {
    CONV_MOST = 8,   /* taps */
    CONV_FEW = 4,    /* of these, which a kernel of its own does */
    CONV_ROWS = 16,  /* of all batches, that a thread has */
    CONV_LEAST = 64, /* of the gradient, whose sums are in so many parts at most: */
    CONV_PARTS = 256
};

typedef struct conv_params {
    scan_shape shape; /* tiles: blocks of a part's rows */
    simt_rows x, x0, weight, y, last;
    const void *bias;
    int64_t rows;       /* of all batches */
    int64_t wide_tiles; /* blocks of a part's rows where threads have 4 bytes of each */
    int32_t k;
    bool silu;
} conv_params;

typedef struct conv_backward_params {
    scan_shape shape;
    simt_rows x, x0, weight, dy, dx, dweight, dx0;
    const void *bias;
    void *dbias;
    float *sums; /* of each part k + 1 rows of n */
    int64_t rows, part_rows, parts;
    int32_t k;
    bool silu;
} conv_backward_params;

#endif
