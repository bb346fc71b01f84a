/* SPDX-License-Identifier: Apache-2.0 */
/* What ngram_counts's host side passes to its device side. */
#ifndef TRINE_SIMT_NGRAM_COUNTS_H
#define TRINE_SIMT_NGRAM_COUNTS_H

#include "backends/simt/core/params.h"

enum { NGRAM_THREADS = 128, NGRAM_MOST = 4 /* orders */ };

typedef struct ngram_params {
    simt_rows candidates, references, matches, totals; /* a batch of references has a sentence's */
    simt_rows lengths, reference_lengths;              /* data NULL: absent */
    int32_t *sizes, *closest;
    int64_t l, r, m;
    int32_t k;
    bool wide; /* lengths are i64 */
} ngram_params;

#endif
