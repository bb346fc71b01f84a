/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of recurrent cells and their gradients pass to their device sides. */
#ifndef TRINE_SIMT_RECURRENT_CELLS_H
#define TRINE_SIMT_RECURRENT_CELLS_H

#include "backends/simt/core/params.h"

enum {
    CELL_STATES = 4,
    CELL_HELD = 256, /* elements of a head whose states and gates are in shared memory; of others in the workspace */
    CELL_TILE = 16   /* rows and columns of dr that a block sums, and steps that it reads at a time */
};

/* A tensor by its strides: of a batch, a step, a gate and a head; NULL: absent. */
typedef struct cell_tensor {
    void *data;
    int64_t batch, step, gate, head;
} cell_tensor;

typedef struct cell_params {
    const int32_t *cu;         /* NULL: the members of the batch are the sequences */
    int64_t b, t, h, d, count; /* count: of sequences */
    cell_tensor wx, r, bias, y, gates, state[CELL_STATES], start[CELL_STATES], last[CELL_STATES];
    float *matrices; /* r with a product's terms in columns: of each head d rows of matrices times d */
    float *scratch;  /* of each head of a sequence, where it is not held */
    int64_t scratch_size;
} cell_params;

typedef struct cell_backward_params {
    const int32_t *cu;
    int64_t b, t, h, d, count;
    cell_tensor dy, r, y, gates, state[CELL_STATES], start[CELL_STATES], dlast[CELL_STATES];
    cell_tensor dwx, dr, dbias, dstart[CELL_STATES];
    float *dg, *before; /* of each step and head: gates' gradients, and h before it */
    float *scratch;
    int64_t scratch_size;
    int64_t tiles; /* along d */
} cell_backward_params;

#endif
