/* SPDX-License-Identifier: Apache-2.0 */
/* What bleu's host side passes to its device side. */
#ifndef TRINE_SIMT_BLEU_H
#define TRINE_SIMT_BLEU_H

#include "backends/simt/core/params.h"

enum { BLEU_MOST = 16 /* orders */ };

typedef struct bleu_params {
    simt_rows matches, totals;
    const int32_t *sizes, *closest;
    float *scores, *corpus;
    int64_t s;
    int32_t k, smoothing, missing;
    float amount; /* its value, not 0 */
} bleu_params;

#endif
