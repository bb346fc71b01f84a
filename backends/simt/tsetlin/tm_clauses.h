/* SPDX-License-Identifier: Apache-2.0 */
/* What tm_clauses' host side passes to its device side. */
#ifndef TRINE_SIMT_TM_CLAUSES_H
#define TRINE_SIMT_TM_CLAUSES_H

#include "backends/simt/core/params.h"

enum { TM_EXAMPLES = 8 /* of a block */ };

typedef struct clauses_params {
    simt_rows literals, votes, weights; /* weights.data: NULL if absent */
    const uint8_t *include;
    uint8_t *clauses; /* NULL if absent */
    int64_t include_stride[2], clauses_stride[2];
    int64_t e, c, j, w;
    int32_t threshold;
    bool empty, words; /* words: rows are aligned to 4 bytes */
} clauses_params;

#endif
