/* SPDX-License-Identifier: Apache-2.0 */
/* What adafactor's host side passes to its device side. */
#ifndef TRINE_SIMT_ADAFACTOR_H
#define TRINE_SIMT_ADAFACTOR_H

#include "by_chance.h"

/* A block of threads has a tile: each of its lines every eighth row, of which a thread has 8 columns. */
enum {
    ADAFACTOR_LANE = 8,
    ADAFACTOR_LINE = 32,
    ADAFACTOR_LINES = (int)SIMT_THREADS / ADAFACTOR_LINE,
    ADAFACTOR_COLUMNS = ADAFACTOR_LINE * ADAFACTOR_LANE,
    ADAFACTOR_ROWS = 64,
    /* of a block that adds the tiles' sums: rows, or columns, of which as many threads as PARTS have one */
    ADAFACTOR_SUMS = 64,
    ADAFACTOR_PARTS = (int)SIMT_THREADS / ADAFACTOR_SUMS
};

/* What all elements depend on. */
typedef struct adafactor_scalars {
    float decay, factor;
} adafactor_scalars;

typedef struct adafactor_params {
    simt_rows param, grad, copy;
    float *row_var, *col_var; /* row_var: NULL: absent */
    const float *lr;          /* NULL: lr_here */
    const int64_t *step;      /* NULL: step_here */
    const float *grad_scale;  /* NULL: 1 */
    const float *found_inf;   /* NULL: 0 */
    double lr_here, weight_decay, beta2_decay, eps1, eps2, clip;
    int64_t step_here, r, c, down, across, tiles; /* down and across: of the tiles */
    int64_t means_count;                          /* blocks that have rows */
    /* in the workspace: sums of squares, of rows by tiles across, columns by tiles down, and tiles, and parts of the
     * rows' mean variance; and 1/sqrt of each one's part of the variance */
    double *rows, *columns, *params, *updates, *means;
    adafactor_scalars *scalars;
    float *row, *col;
    float limit;
    by_chance chances;
    bool aligned, copy_bf16; /* the copy's type, not f16 */
} adafactor_params;

#endif
