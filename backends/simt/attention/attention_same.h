/* SPDX-License-Identifier: Apache-2.0 */
/* What attention's host side passes to its device side for the same bits on every device. */
#ifndef TRINE_SIMT_ATTENTION_SAME_H
#define TRINE_SIMT_ATTENTION_SAME_H

#include <stdbool.h>
#include <stdint.h>

/* Strides of a batch, of tokens and of heads, in elements. */
typedef struct attention_same_tensor {
    void *data; /* NULL: absent */
    int64_t batch, token, head;
} attention_same_tensor;

typedef struct attention_same_params {
    attention_same_tensor q, k, v, o, lse;
    int64_t sq, sk, heads, group, d, before, after; /* windows; INT64_MAX: none */
    float scale;
    bool causal;
} attention_same_params;

#endif
