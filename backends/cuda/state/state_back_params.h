/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of gradients of recurrences of matrices by tensor cores and their device side agree on. */
#ifndef TRINE_CUDA_STATE_BACK_PARAMS_H
#define TRINE_CUDA_STATE_BACK_PARAMS_H

#include "state_mma_params.h"

enum {
    STATE_BACK_CHUNK_THREADS = 512,
    STATE_BACK_PITCH = 68, /* floats from row to row of the products of a chunk's steps */
    STATE_BACK_SQUARE = STATE_MMA_STEPS * STATE_MMA_STEPS
};
/* Numbers of a chunk's steps: the product of all gates up to it, of all behind it, the factor of v, the rate. */
enum { STATE_BACK_BEFORE, STATE_BACK_AFTER, STATE_BACK_FACTOR, STATE_BACK_RATE, STATE_BACK_NUMBERS };
/* Blocks of an SM that take states through all chunks. */
#define STATE_BACK_HELD(ruled) ((ruled) ? 2 : 3)
#define STATE_BACK_MORE(x, y) ((x) > (y) ? (x) : (y))
/* Shared memory of a block that prepares a chunk: decays and numbers; with the delta rule k and q, in whose place come
 * two matrices, and dout. */
#define STATE_BACK_READY_BYTES(d, inputs, ruled) \
    (4 * STATE_BACK_SQUARE + 5 * 4 * STATE_MMA_STEPS + 16 + \
     ((ruled) ? STATE_BACK_MORE(2 * 4 * STATE_MMA_STEPS * STATE_MMA_PITCH, \
                                2 * (inputs) * STATE_MMA_STEPS * STATE_MMA_ROW(d)) + \
                    (inputs) * STATE_MMA_STEPS * STATE_MMA_ROW(STATE_MMA_WIDTH) \
              : 0))
/* Of one that takes 32 columns of a state through all chunks: k or q, v, what is added, numbers; with the delta rule
 * both of k and q, the state, another summand. */
#define STATE_BACK_PASS_BYTES(d, inputs, ruled) \
    ((inputs) * STATE_MMA_STEPS * (STATE_MMA_ROW(d) + STATE_MMA_ROW(STATE_MMA_WIDTH)) + \
     STATE_MMA_PARTS * STATE_MMA_STEPS * STATE_MMA_ROW(STATE_MMA_WIDTH) + STATE_BACK_NUMBERS * 4 * STATE_MMA_STEPS + \
     ((ruled) ? (inputs) * STATE_MMA_STEPS * STATE_MMA_ROW(d) + \
                    STATE_MMA_PARTS * ((d) + STATE_MMA_STEPS) * STATE_MMA_ROW(STATE_MMA_WIDTH) \
              : 0))
/* And of one that has a chunk: k and q; the state and its gradient, in whose place come two matrices; rows of columns
 * and a matrix, in whose place comes one; numbers. */
#define STATE_BACK_CHUNK_BYTES(d, inputs, ruled) \
    (2 * (inputs) * STATE_MMA_STEPS * STATE_MMA_ROW(d) + \
     2 * STATE_MMA_PARTS * \
         STATE_BACK_MORE((d) * STATE_MMA_ROW(STATE_MMA_WIDTH), STATE_MMA_STEPS * STATE_MMA_ROW(STATE_MMA_STEPS)) + \
     ((ruled) ? ((inputs) + 2 * STATE_MMA_PARTS) * STATE_MMA_STEPS * STATE_MMA_ROW(STATE_MMA_WIDTH) \
              : 2 * (inputs) * STATE_MMA_STEPS * STATE_MMA_ROW(STATE_MMA_WIDTH) + \
                    STATE_MMA_PARTS * STATE_MMA_STEPS * STATE_MMA_ROW(STATE_MMA_STEPS)) + \
     4 * STATE_MMA_STEPS * (STATE_BACK_NUMBERS + 5 * 4) + 16 * 4)

/* And what comes there ahead, where there is room. */
#define STATE_BACK_STAGED_BYTES(d, ruled) \
    (16 * STATE_BACK_CHUNK_THREADS * (2 * (d) * STATE_MMA_WIDTH / 4 / STATE_BACK_CHUNK_THREADS + ((ruled) ? 2 : 0)))

typedef struct state_back_params {
    state_backward_params all; /* its blocks of columns are 32 wide but in launches step by step */
    int64_t chunks;            /* of a sequence, or of all packed ones */
    int64_t columns;           /* blocks of 32 */
    int64_t longest, alone;    /* step by step: chunks that a sequence keeps states of, heads at a time */
    bool wide, staged;         /* rows are aligned to 16 bytes; a chunk's columns come ahead */
    /* The workspace, of each chunk and head: products of gates, and with the delta rule the two sides of its inverse;
     * numbers of steps; the state before the chunk and the gradient of that after it, block by block; with the delta
     * rule what is left of v, and the gradient of what is added, at first the chunk's own outputs' part; and whether
     * all that is of no use. */
    float *decays, *inverse, *turned, *numbers, *states, *gradients, *left, *of;
    int32_t *unready, *wild;
} state_back_params;

#endif
