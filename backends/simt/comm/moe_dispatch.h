/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_dispatch's host side passes to its device side. */
#ifndef TRINE_SIMT_MOE_DISPATCH_H
#define TRINE_SIMT_MOE_DISPATCH_H

#include "backends/simt/core/params.h"
#include "rows.h"

enum { DISPATCH_ITEMS = 4, DISPATCH_CHUNK = DISPATCH_ITEMS * SIMT_THREADS /* slots that a block ranks */ };

typedef struct dispatch_params {
    simt_rows experts, places;
    int32_t *counts, *offsets, *needed; /* needed: NULL if absent */
    int32_t *table;                  /* for each chunk and expert how many slots there are, then how many come before */
    int32_t *own, *all;              /* how many slots name each of all experts: of this rank, and of every rank */
    int32_t *taken, *first, *before; /* of each of all experts, for this rank's slots: how many are taken, the place of
                                      * the first, and in its list */
    int32_t *pairs;                  /* rows from each rank to each */
    moved_rows *moves;
    simt_divisor k;
    int64_t capacity;
    int32_t slots, e, experts_of_all, p, chunks, rank, ranks;
    bool long_experts;
} dispatch_params;

#endif
