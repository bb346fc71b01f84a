/* SPDX-License-Identifier: Apache-2.0 */
/* What attention and its gradient add to scores, and which weights they drop, as the host passes it to devices. */
#ifndef TRINE_SIMT_ATTENTION_OPTIONS_H
#define TRINE_SIMT_ATTENTION_OPTIONS_H

#include "backends/simt/core/params.h"

typedef struct attention_options {
    const void *bias;                /* NULL: none */
    int64_t batch, head, query, key; /* its strides */
    const float *slopes;             /* NULL: none */
    int64_t slope_batch, slope_head;
    const void *sinks; /* NULL: none */
    simt_dropout dropout;
    const int64_t *philox; /* dropout's key and stream; NULL: those that it has */
    float keeps;           /* dropout's scale, 1 without: what weights that are kept are multiplied by */
    bool wide, wide_sinks; /* bias, and sinks, are of f32, not of the other tensors' type */
    bool adds, drops;
} attention_options;

#endif
