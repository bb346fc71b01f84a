/* SPDX-License-Identifier: Apache-2.0 */
/* What window_score's host side passes to its device side. */
#ifndef TRINE_SIMT_WINDOW_SCORE_H
#define TRINE_SIMT_WINDOW_SCORE_H

#include "backends/simt/core/params.h"

enum {
    WINDOW_ROWS = 8,    /* queries whose products a thread has at a time */
    WINDOW_COLUMNS = 64 /* of queries in shared memory */
};

typedef struct window_score_params {
    const void *q, *k;
    int64_t q_batch, q_row, q_head, k_batch, k_row, k_head;
    simt_rows scores;
    /* in the workspace: of each query and block of keys, the largest product and the sum of exponentials; of each query
     * what exponents are told from, and what exponentials are multiplied by; sums before they are pooled */
    float *part, *state, *raw;
    int64_t w, s, d, n, hk, o;
    int64_t heads, outs, lanes, chunks; /* heads of an output row, output rows of a head of keys, queries of one */
    int64_t items;                      /* scores of all, or queries of all */
    float scale, share;                 /* share: of a pooled value, or 0: it is the largest */
    int32_t radius;
    bool wide;
} window_score_params;

#endif
