/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of attention's scores, [b] [h] sq sk, on the CPU. */
#ifndef TRINE_CPU_SCORES_H
#define TRINE_CPU_SCORES_H

#include "backends/cpu/core/row.h"

typedef struct scores_place {
    int64_t b, h, i;
} scores_place;

static inline scores_place scores_place_of(int64_t row, int64_t h, int64_t sq) {
    const int64_t matrix = row / sq;
    return (scores_place){ matrix / h, matrix % h, row % sq };
}

/* The row after this one, in the same matrix: itself if it is the last. */
static inline scores_place scores_next(scores_place at, int64_t sq) {
    at.i += at.i + 1 < sq;
    return at;
}

static inline void *scores_row(const trine_tensor *t, scores_place at) {
    return (char *)t->data +
           (at.b * t->stride[0] + at.h * t->stride[1] + at.i * t->stride[2]) * (int64_t)trine_dtype_size(t->dtype);
}

#endif
