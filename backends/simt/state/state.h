/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of recurrences of matrices passes to their device side. gated_delta's names stand for ssd's too
 * (spec/state/state.h). */
#ifndef TRINE_SIMT_STATE_H
#define TRINE_SIMT_STATE_H

#include "backends/simt/core/params.h"

enum {
    STATE_LANES = 16,  /* threads that share a column of a state, each having every 16th row */
    STATE_COLUMNS = 4, /* of a thread */
    STATE_THREADS = 128,
    STATE_WIDTH = STATE_THREADS / STATE_LANES * STATE_COLUMNS, /* columns of a block */
    STATE_STEPS = 16,                                          /* that are in shared memory at a time */
    STATE_BACK_THREADS = 256,
    STATE_BACK_WIDTH = STATE_BACK_THREADS / STATE_LANES * STATE_COLUMNS,
    STATE_BACK_STEPS = 8,
    STATE_LEAST_CHUNK = 16,
    STATE_KEY_THREADS = 128, /* that sum up a key head's gradients of a step */
    STATE_SUMS = 3           /* that a step has of a head: of the gate; of the rate, or of x and dt; of x and dy */
};

enum { STATE_F32, STATE_BF16, STATE_F16 };

/* What steps have of a head or a group. */
typedef struct state_rows {
    void *data; /* NULL: absent */
    int64_t batch, step, head;
    int32_t type;
} state_rows;

/* States of sequences and heads. */
typedef struct state_matrices {
    float *data; /* NULL: absent */
    int64_t sequence, head, row, column;
} state_matrices;

typedef struct state_shape {
    const int32_t *cu;                 /* NULL: the members of the batch are the sequences */
    int64_t t, h, groups, d, e, count; /* count: of sequences */
    int64_t blocks;                    /* of columns, at least 1 */
    state_rows q, k, v, g, beta, dt;   /* dt: of ssd, in place of g */
    const float *a, *dt_bias, *past;   /* of ssd, past being its d */
    state_matrices s0;
    float scale;
    bool softplus;
} state_shape;

typedef struct state_params {
    state_shape shape;
    state_rows y;
    state_matrices last;
} state_params;

typedef struct state_backward_params {
    state_shape shape;
    state_rows dout, dq, dk, dv, dg, dbeta, ddt;
    state_matrices dlast, ds0;
    float *da, *dpast, *ddt_bias;
    int64_t rows, chunk, chunks; /* rows: b t; chunks: that a head and block of columns keeps states of */
    int64_t slots;               /* for parts and sums of a head: one of each block of columns, or one of all */
    /* The workspace: states before chunks and within one; of each row, head and block gradients of q and of k, and
     * sums; of ssd, of each head and row, terms of da, dd and ddt_bias. */
    float *kept, *states, *parts, *sums, *terms;
} state_backward_params;

#endif
