/* SPDX-License-Identifier: Apache-2.0 */
/* What scatter_axpy's host side passes to its device side. */
#ifndef TRINE_SIMT_SCATTER_AXPY_H
#define TRINE_SIMT_SCATTER_AXPY_H

#include "backends/simt/core/params.h"

enum {
    SCATTER_EACH = 8, /* entries of a thread */
    SCATTER_TILE = SCATTER_EACH * SIMT_THREADS,
    SCATTER_BLOCKS = 2048 /* at most: each looks at how far those before it came */
};

typedef struct scatter_params {
    simt_rows w;
    const void *index, *d;
    void *saved;      /* NULL: not asked for */
    int64_t *reached; /* in the workspace: the largest place of each block */
    int64_t p, n, places, block;
    simt_divisor row; /* by n */
    float alpha;
    bool put, long_ids;
    bool alike; /* d has w's type, else f32 */
} scatter_params;

#endif
