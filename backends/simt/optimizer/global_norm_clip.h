/* SPDX-License-Identifier: Apache-2.0 */
/* What global_norm_clip's host side passes to its device side. */
#ifndef TRINE_SIMT_GLOBAL_NORM_CLIP_H
#define TRINE_SIMT_GLOBAL_NORM_CLIP_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/params.h"

enum {
    CLIP_BLOCK = 16384, /* elements whose squares one block sums */
    CLIP_BYTES = 16     /* that a thread scales */
};

/* The workspace: the coefficient, and sums of squares of each block. */
typedef struct clip_params {
    const void *x, *other;
    void *y, *sum_squares, *norm, *coefficient; /* NULL: absent */
    double *partial;
    float *workspace_coefficient;
    int64_t n, g, blocks;
    float max_norm;
    bool double_squares; /* other and sum_squares are f64, not f32 */
    bool wide;
    simt_ahead ahead; /* of x */
} clip_params;

#endif
