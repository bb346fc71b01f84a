/* SPDX-License-Identifier: Apache-2.0 */
/* What sample's host side passes to its device side. */
#ifndef TRINE_SIMT_SAMPLE_H
#define TRINE_SIMT_SAMPLE_H

#include "draw.h"

typedef struct sample_params {
    simt_rows logits, counts;
    const float *temperatures, *top_ps, *min_ps; /* of each row; NULL: those below */
    const int32_t *top_ks;
    void *tokens;
    float *probabilities; /* NULL if absent */
    draw_key key;
    int64_t v;
    float temperature, top_p, min_p, penalty, inverse, presence, frequency;
    int32_t top_k;
    bool wide, long_tokens; /* wide: logits and counts are aligned */
} sample_params;

#endif
