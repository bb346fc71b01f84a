/* SPDX-License-Identifier: Apache-2.0 */
/* What embedding_backward's host side passes to its device side. */
#ifndef TRINE_SIMT_EMBEDDING_BACKWARD_H
#define TRINE_SIMT_EMBEDDING_BACKWARD_H

#include "params.h"

enum {
    SORT_THREADS = 512,
    SORT_BITS = 4,    /* of a digit */
    SUM_COLUMNS = 256 /* of a table row that one warp sums */
};

typedef struct embedding_backward_params {
    simt_rows dy, dtable;
    const void *ids;
    int64_t t, v, n;
    int64_t *token[2]; /* in the workspace: tokens in the order of their rows, and room to sort them */
    int64_t *start;    /* of each table row in token[0], and the end */
    int32_t passes;    /* of the sort, an even number */
    bool long_ids, accumulate, wide;
} embedding_backward_params;

#endif
