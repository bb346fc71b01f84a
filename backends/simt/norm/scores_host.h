/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of softmax_masked and its gradient share. */
#ifndef TRINE_SIMT_SCORES_HOST_H
#define TRINE_SIMT_SCORES_HOST_H

#include "backends/simt/core/host.h"
#include "scores.h"

/* A tensor of the call; data is NULL if it was not given. */
static inline scores_tensor scores_tensor_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (scores_tensor){ 0 };
    return (scores_tensor){ t->data, t->stride[0], t->stride[1], t->stride[2], t->shape[3] > 1 ? t->stride[3] : 1 };
}

static inline scores_shape scores_shape_of(int64_t b, int64_t h, int64_t sq, int64_t sk, bool causal) {
    return (scores_shape){ .rows = b * h * sq,
                           .n = sk,
                           .heads = simt_divisor_of(h > 0 ? h : 1),
                           .queries = simt_divisor_of(sq > 0 ? sq : 1),
                           .causal = causal };
}

#endif
