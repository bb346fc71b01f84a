/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_align's host side passes to its device side. */
#ifndef TRINE_SIMT_MOE_ALIGN_H
#define TRINE_SIMT_MOE_ALIGN_H

#include "backends/simt/core/params.h"

enum { ALIGN_ITEMS = 4, ALIGN_CHUNK = ALIGN_ITEMS * SIMT_THREADS /* slots that a block ranks */ };

typedef struct align_params {
    simt_rows experts, rows, places;
    int32_t *counts, *offsets, *block_experts; /* block_experts: NULL if absent */
    int32_t *table; /* for each chunk and expert how many slots there are, then how many come before */
    simt_divisor k, b;
    int64_t capacity;
    int32_t slots, e, room, chunks, blocks; /* room: of rows, in places; blocks: of the launch */
    bool long_experts;
} align_params;

#endif
