/* SPDX-License-Identifier: Apache-2.0 */
/* What argsort's host side passes to its device side. */
#ifndef TRINE_SIMT_ARGSORT_H
#define TRINE_SIMT_ARGSORT_H

#include "backends/simt/core/params.h"

enum {
    ARGSORT_DIGIT = 8, /* bits */
    ARGSORT_DIGITS = 1 << ARGSORT_DIGIT,
    ARGSORT_ITEMS = 8, /* of a thread */
    ARGSORT_TILE = ARGSORT_ITEMS * SIMT_THREADS,
    ARGSORT_BLOCKS = 128 /* of a row, at most: each adds up the counts of all */
};

typedef struct argsort_params {
    simt_rows x, values, indices;
    /* in the workspace, of all rows: orders and places, sorted so far and room for more, and the elements that each
     * block has of each digit */
    void *order[2];
    uint32_t *at[2], *count;
    int64_t n, blocks, length; /* blocks of a row, and the elements of one */
    uint64_t infinity;         /* bits of a float's; 0: integers */
    int32_t pass;              /* what it sorts goes to order[pass % 2] */
    bool last, descending, long_indices;
} argsort_params;

#endif
