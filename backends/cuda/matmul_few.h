/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul's host side passes to the kernels by tensor cores for few lanes. */
#ifndef TRINE_CUDA_MATMUL_FEW_H
#define TRINE_CUDA_MATMUL_FEW_H

#include "matmul.h"

/* A product of 16-bit elements in which one operand has few lanes. */
typedef struct matmul_few_params {
    matmul_operand many, few;
    matmul_target to;
    int64_t m, n, k;
    int64_t lanes, count, right; /* lanes of either, and blocks that share those of `many` */
    int32_t groups;              /* of 16 lanes, that a block has */
    bool swapped;                /* `many` is b */
} matmul_few_params;

enum {
    MATMUL_FEW = 8, /* lanes that are few */
    MATMUL_FEW_WARPS = 16,
    MATMUL_FEW_THREADS = MATMUL_FEW_WARPS * 32,
    MATMUL_FEW_CHUNK = 64,   /* elements of k that a warp takes at a time */
    MATMUL_FEW_GROUPS = 8,   /* groups of 16 lanes that a block may have */
    MATMUL_FEW_AHEAD = 2048, /* bytes of each lane that are asked for before the launch ahead has ended */
    MATMUL_FEW_PITCH = 20,   /* sums from one of the few lanes to the next: 16, and 4 that let a warp reach all banks */
    MATMUL_FEW_BYTES = MATMUL_FEW_GROUPS * MATMUL_FEW_WARPS * MATMUL_FEW * MATMUL_FEW_PITCH * 4, /* of a block's shared memory */
};

#endif
