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
    int64_t own;                 /* lanes of `many` that a block has, a multiple of 16 */
    int32_t slots;               /* of a warp's ring, 3 or 4 */
    bool swapped;                /* `many` is b */
    bool plain;                  /* alpha is all that sums meet, and fours of columns are whole */
} matmul_few_params;

enum {
    MATMUL_FEW = 16, /* lanes that are few */
    MATMUL_FEW_WARPS = 8,
    MATMUL_FEW_THREADS = MATMUL_FEW_WARPS * 32,
    MATMUL_FEW_CHUNK = 64,   /* elements of k that a warp takes at a time, of so many lanes: */
    MATMUL_FEW_LANES = 32,   /* all that a block takes at a time */
    MATMUL_FEW_AHEAD = 4096, /* bytes that a warp prefetches before the previous launch has ended */
    MATMUL_FEW_PITCH = 36,   /* sums from one of the few lanes to the next: 32, and 4 that let a warp reach all banks */
};

/* Bytes of a slot of a warp's ring, in the kernel for up to `few` lanes, 8 or 16. */
#define MATMUL_FEW_SLOT(few) ((MATMUL_FEW_LANES + (few)) * MATMUL_FEW_CHUNK * 2)

#endif
