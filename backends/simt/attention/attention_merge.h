/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of attention_merge passes to its device side. */
#ifndef TRINE_SIMT_ATTENTION_MERGE_H
#define TRINE_SIMT_ATTENTION_MERGE_H

#include "backends/simt/core/params.h"

/* A tensor of three leading dimensions: strides in elements. */
typedef struct merge_tensor {
    void *data; /* NULL: absent */
    int64_t batch, token, head;
} merge_tensor;

/* A thread's unit is 8 elements of a row, or 1. */
typedef struct attention_merge_params {
    merge_tensor out_a, lse_a, out_b, lse_b, out, lse;
    simt_divisor row_units, heads, tokens;
    int64_t units; /* of all */
} attention_merge_params;

#endif
