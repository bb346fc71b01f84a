/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of cross_entropy's kernels for rows in shared memory pass to their device sides. */
#ifndef TRINE_CUDA_CROSS_ENTROPY_H
#define TRINE_CUDA_CROSS_ENTROPY_H

#include "backends/simt/cross_entropy.h"

/* Blocks for rows in shared memory: threads, and how many a processor holds, which says how long a row may be. About 128 bytes of it are a thread's. */
#define CROSS_ENTROPY_SHAPES(SHAPE) SHAPE(64, 24) SHAPE(128, 12) SHAPE(256, 6) SHAPE(512, 3) SHAPE(512, 2)

typedef struct cross_entropy_parts_params {
    cross_entropy_params rows;
    int part; /* elements of a row that a block has, a multiple of 8 if there are several */
} cross_entropy_parts_params;

#endif
