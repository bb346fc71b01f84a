/* SPDX-License-Identifier: Apache-2.0 */
/* What attention_backward's host side passes to its device side. */
#ifndef TRINE_HIP_ATTENTION_BACKWARD_H
#define TRINE_HIP_ATTENTION_BACKWARD_H

#include "attention.h"

/* Rows of a wave for elements of `size` bytes and heads of up to `d`: as many as it has registers for.
 * A block has four waves. */
#define BACKWARD_EDGE(size, d) ((size) == 2 && (d) <= 128 ? 32 : 16)

/* Of this size and more an lse is too coarse for p = exp(z - lse), which is held to 1 (spec/attention/attention.h). */
#define ATTENTION_COARSE 0x1p17f

typedef struct attention_backward_params {
    attention_params forward; /* q, k, v, o and lse are inputs */
    attention_rows dout, dq, dk, dv;
    float *delta;         /* in the workspace: dout . o for each query, [b] h sq */
    void *dbias, *dsinks; /* NULL: absent; of the types of bias and sinks */
    int64_t dbias_batch, dbias_head, dbias_query;
} attention_backward_params;

#endif
