/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of cross_entropy's kernels for rows in shared memory pass to their device sides. */
#ifndef TRINE_CUDA_CROSS_ENTROPY_H
#define TRINE_CUDA_CROSS_ENTROPY_H

#include "backends/simt/cross_entropy.h"

enum { CROSS_ENTROPY_THREADS = 512 };

typedef struct cross_entropy_parts_params {
    cross_entropy_params rows;
    int part; /* elements of a row that a block has, a multiple of 8 if there are several */
} cross_entropy_parts_params;

#endif
