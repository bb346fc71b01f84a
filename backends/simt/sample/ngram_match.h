/* SPDX-License-Identifier: Apache-2.0 */
/* What ngram_match's host side passes to its device side. */
#ifndef TRINE_SIMT_NGRAM_MATCH_H
#define TRINE_SIMT_NGRAM_MATCH_H

#include "backends/simt/core/params.h"

enum { NGRAM_THREADS = 512 };

typedef struct ngram_match_params {
    simt_rows tokens, draft;
    const void *lengths; /* NULL: s of each */
    int32_t *counts;
    int64_t s, m;
    int32_t most, least; /* of an n-gram */
    bool wide, long_lengths, first;
} ngram_match_params;

/* An n-gram and where its occurrence ends. */
typedef struct ngram_match_best {
    int64_t length, end;
} ngram_match_best;

#endif
