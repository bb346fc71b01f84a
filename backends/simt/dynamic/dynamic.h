/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of the products of largest sums and of alignments pass to their device sides. */
#ifndef TRINE_SIMT_DYNAMIC_H
#define TRINE_SIMT_DYNAMIC_H

#include "backends/simt/core/params.h"

/* A block has a square of d, along k in steps of so many. */
enum { MAX_PLUS_SIDE = 64, MAX_PLUS_STEP = 16 };

typedef struct max_plus_params {
    const void *a, *b;
    simt_rows c, d, indices;         /* .data: NULL if absent */
    int64_t a_batch, a_row, a_along; /* strides, in elements */
    int64_t b_batch, b_along, b_column;
    int64_t m, n, k, down, across; /* squares of a matrix */
    bool minimum;
} max_plus_params;

/* Lines of an alignment in a block's workspace, and blocks at most: each has pair after pair. */
enum { SMITH_WATERMAN_LINES = 6, SMITH_WATERMAN_BLOCKS = 1024 };

typedef struct smith_waterman_params {
    const uint8_t *query, *target;
    const int64_t *queries, *targets; /* NULL if absent */
    const int32_t *scores;
    int32_t *best, *lines;
    int64_t *ends; /* NULL if absent */
    int64_t query_row, target_row, queries_step, targets_step, scores_row, best_step, ends_row, ends_step;
    int64_t b, m, n, s, line; /* line: its elements */
    int32_t open, extend;     /* what is added: the costs, negative */
    int alignment;
} smith_waterman_params;

#endif
