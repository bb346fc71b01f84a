/* SPDX-License-Identifier: Apache-2.0 */
/* What argmax's host side passes to its device side. */
#ifndef TRINE_SIMT_ARGMAX_H
#define TRINE_SIMT_ARGMAX_H

#include "backends/simt/core/params.h"

enum {
    ARGMAX_GROUP = 32,      /* threads of a short row */
    ARGMAX_SHORT = 1024,    /* elements of one, at most */
    ARGMAX_PART = 8192,     /* elements that a block has of a long row, if there are few of them, at least */
    ARGMAX_BLOCKS = 1024,   /* that are enough for any device */
    ARGMAX_PARTS = 1 << 16, /* of a row, at most */
};

typedef struct argmax_best {
    uint32_t order, none; /* what an element is compared by; fills the structure */
    int64_t at;
} argmax_best;

typedef struct argmax_params {
    simt_rows x;
    void *indices, *values; /* values: NULL if absent */
    argmax_best *best;      /* of each part of each row, in the workspace */
    int64_t r, n, parts, part;
    bool smallest, wide, long_indices;
} argmax_params;

#endif
