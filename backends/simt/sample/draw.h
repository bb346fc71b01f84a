/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of draws share with their device sides. */
#ifndef TRINE_SIMT_DRAW_H
#define TRINE_SIMT_DRAW_H

#include "backends/simt/core/params.h"

enum {
    DRAW_THREADS = 512, /* of a block, which has a row */
    DRAW_GROUP = 32,    /* that look at a part of it together */
    DRAW_PARTS = DRAW_THREADS / DRAW_GROUP
};

typedef struct draw_key {
    uint64_t seed, offset;
    const int64_t *told; /* philox: where key and stream are; NULL: in the two above */
} draw_key;

#endif
