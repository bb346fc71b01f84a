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

/* A thread has some rows of a pair's matrix, and with the others of its team a stripe; a pair has one team or several.
 * Scores of so many letters are held in shared memory. Blocks at most: each has pair after pair. */
enum {
    ALIGN_TEAM = 32,
    ALIGN_TEAMS = 8, /* of a block, */
    ALIGN_FEW = 2,   /* or where each has a pair, so that these are spread over more blocks */
    ALIGN_MOST = 16, /* rows of a thread */
    ALIGN_LETTERS = 32,
    ALIGN_BLOCKS = 4096
};

typedef struct smith_waterman_params {
    const uint8_t *query, *target;
    const int64_t *queries, *targets; /* NULL if absent */
    const int32_t *scores;
    int32_t *best, *lines; /* lines: h and f of the last row of a stripe, of each pair that a block has at a time */
    int64_t *ends;         /* NULL if absent */
    int64_t query_row, target_row, queries_step, targets_step, scores_row, best_step, ends_row, ends_step;
    int64_t b, m, n, s;
    int32_t open, extend; /* what is added: the costs, negative */
    int alignment, teams; /* teams: of a pair */
} smith_waterman_params;

#endif
