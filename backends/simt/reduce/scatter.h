/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are added where an index says: what the host side of embedding_backward and of scatter_add_rows passes to
 * its device side. */
#ifndef TRINE_SIMT_SCATTER_H
#define TRINE_SIMT_SCATTER_H

#include "backends/simt/core/params.h"

enum {
    SORT_BITS = 8, /* of a digit */
    SORT_DIGITS = 1 << SORT_BITS,
    SORT_BLOCKS = 64,  /* at most: each adds up the counts of all */
    SUM_COLUMNS = 256, /* of a table row that one warp sums */
    SUM_CHUNK = 32     /* sorted tokens that it sums: however many name one row, no sum is longer */
};

typedef struct scatter_params {
    simt_rows x, y;
    const void *ids;
    const float *weight; /* of each token; NULL: 1 */
    int64_t t, v, n, chunks;
    /* in the workspace: of each chunk the sums of a row that began before or ends later, and of one that begins in it
     * and ends later */
    float *partial;
    uint32_t *token[2];    /* tokens in the order of their rows, and room to sort them */
    uint32_t *first, *end; /* of each table row's tokens; 0 if it has none */
    uint32_t *count;       /* of the tokens that each block of the sort has for each digit */
    int64_t block_tokens, blocks;
    int64_t padding; /* row to which nothing is added; -1: none */
    int32_t pass;    /* of the sort; its outcome, and at the end that of all, is in token[pass % 2] */
    bool long_ids, accumulate, wide;
} scatter_params;

#endif
