/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of recurrences of matrices by tensor cores and their device side agree on. */
#ifndef TRINE_CUDA_STATE_MMA_PARAMS_H
#define TRINE_CUDA_STATE_MMA_PARAMS_H

#include "backends/simt/state/state.h"

enum {
    STATE_MMA_SHARES = 2, /* of a block's columns, each of four warps */
    STATE_MMA_READY_THREADS = 128,
    STATE_MMA_THREADS = STATE_MMA_SHARES * STATE_MMA_READY_THREADS,
    STATE_MMA_STEPS = 64,                               /* of a chunk */
    STATE_MMA_WIDTH = STATE_WIDTH,                      /* columns of a block */
    STATE_MMA_OWN = STATE_MMA_WIDTH / STATE_MMA_SHARES, /* of a warp */
    STATE_MMA_PARTS = 3,                                /* bf16 that make an f32 */
    STATE_MMA_PITCH = 72,                               /* floats from row to row of a chunk's matrices */
    STATE_MMA_LEAST = 32                                /* steps of a sequence, below which they follow each other */
};
/* Rows of 16-bit elements in shared memory: those of eight rows after each other meet in no bank. */
#define STATE_MMA_ROW(elements) ((elements) * 2 + 16)
/* The parts of an input: f16 is the sum of two bf16. */
#define STATE_MMA_INPUTS(f16) ((f16) ? 2 : 1)
/* Shared memory of a block for states of up to d rows: k and q, v, the state, what is added, decays, numbers. */
#define STATE_MMA_BYTES(d, inputs) \
    ((inputs) * STATE_MMA_STEPS * (2 * STATE_MMA_ROW(d) + STATE_MMA_ROW(STATE_MMA_WIDTH)) + \
     STATE_MMA_PARTS * ((d) + STATE_MMA_STEPS) * STATE_MMA_ROW(STATE_MMA_WIDTH) + \
     4 * STATE_MMA_STEPS * STATE_MMA_STEPS + 5 * 4 * STATE_MMA_STEPS + 8 * (STATE_MMA_WIDTH + 1))
/* And of one that prepares a chunk of the delta rule: k, decays, two matrices, numbers. */
#define STATE_MMA_READY_BYTES(d, inputs) \
    ((inputs) * STATE_MMA_STEPS * STATE_MMA_ROW(d) + 4 * STATE_MMA_STEPS * STATE_MMA_STEPS + \
     2 * 4 * STATE_MMA_STEPS * STATE_MMA_PITCH + 5 * 4 * STATE_MMA_STEPS + 8)

typedef struct state_mma_params {
    state_params all;
    int64_t chunks; /* of a sequence, or of all packed ones */
    bool wide;      /* rows are aligned to 16 bytes */
    /* The workspace, of each chunk and head: with the delta rule, the inverse that makes of all steps' differences
     * what is added, and whether it is of no use. */
    float *inverse;
    int32_t *wild;
} state_mma_params;

#endif
