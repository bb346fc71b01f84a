/* SPDX-License-Identifier: Apache-2.0 */
/* The host side that the wide ways of recurrent cells share: how heads are divided. */
#ifndef TRINE_CUDA_RECURRENT_CELLS_WIDE_HOST_H
#define TRINE_CUDA_RECURRENT_CELLS_WIDE_HOST_H

#include "backends/simt/core/host.h"
#include "cells_wide_params.h"

/* What is to be divided. */
typedef struct cell_ask {
    int64_t count, h, d; /* sequences; heads; units of a head */
    trine_dtype type;
    /* Of a division whose blocks, units and column tiles are known: the block's tiles; and with its slices the bytes of
     * a block besides its matrix. */
    void (*tiles)(int64_t d, cell_wide *w);
    int64_t (*bytes)(const cell_wide *w);
    int clocks; /* of an element for each thread, besides products */
    /* A block's products go to other blocks, each warp's by itself: clusters have no slices, which would be more to
     * send. */
    bool sends;
} cell_ask;

/* The division that should take the fewest clocks; NULL, or why there is none. */
const char *cell_wide_of(const trine_call *call, const cell_ask *ask, cell_wide *w_out);

/* Bytes of all heads' matrices in the workspace, and the blocks of SIMT_THREADS threads that write them. */
int64_t cell_wide_bytes(const cell_ask *ask, const cell_wide *w);
int64_t cell_wide_packers(const cell_ask *ask, const cell_wide *w);

/* A launch of the function for the steps, which also clears what is behind the last of packed sequences. */
trine_status cell_wide_launch(const trine_call *call, const cell_ask *ask, const cell_wide *w, bool packed,
                              const void *params, size_t size);

/* Seconds of so many steps, as divisions are chosen by. */
double cell_wide_seconds(const trine_call *call, const cell_ask *ask, int64_t steps);

/* Where a division becomes another, along units and members of the batch. */
void cell_wide_edges(trine_kernel_edges *edges, int units, int members);

#endif
