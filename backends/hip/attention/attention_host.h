/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of attention and its gradient: from tensors to parameters. */
#ifndef TRINE_HIP_ATTENTION_HOST_H
#define TRINE_HIP_ATTENTION_HOST_H

#include <math.h>

#include "attention.h"
#include "backends/simt/core/host.h"
#include "backends/hip/driver/state.h"

static inline attention_rows attention_rows_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    const int64_t step = t->stride[1] * (int64_t)trine_dtype_size(t->dtype);
    return (attention_rows){ t->data, t->stride[0], t->stride[1], t->stride[2], simt_aligned(call, tensor) && step >= 0 && step <= INT32_MAX / 256 };
}

static inline attention_column attention_column_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (attention_column){ 0 };
    return (attention_column){ t->data, t->stride[0], t->stride[1] };
}

/* The size that the specification's `symbol` is bound to. */
static inline int64_t attention_size(const trine_call *call, const char *symbol) {
    const int place = trine_plan_find_symbol(call->plan, symbol);
    return place < 0 ? 0 : call->dim[place];
}

static inline attention_params attention_params_of(const trine_call *call, int cu_q, int cu_k, float scale, float softcap, bool causal, int64_t window) {
    attention_params p = { .b = attention_size(call, "b"),
                           .sq = attention_size(call, "sq"),
                           .sk = attention_size(call, "sk"),
                           .h = attention_size(call, "h"),
                           .hk = attention_size(call, "hk"),
                           .d = attention_size(call, "d"),
                           .nseq = attention_size(call, "nseq"),
                           .cap = softcap,
                           .causal = causal };
    p.scale = scale != 0 ? scale : (float)(1 / sqrt((double)p.d));
    p.window = window > 0 && window < p.sq + p.sk ? window : 0;
    if (!simt_present(call, cu_q)) return p;
    p.cu_q = call->tensor[cu_q].data;
    p.cu_k = call->tensor[cu_k].data;
    return p;
}

/* Of a launch of so many blocks. */
static inline share_order attention_order_of(const trine_call *call, int64_t blocks) {
    const hip_device *const d = call->device;
    return hip_shares_of(d->chip, d->units, blocks);
}

static inline const char *attention_refuse(const trine_call *call) {
    return attention_size(call, "d") > ATTENTION_WIDEST ? "heads of more than 256 elements" : NULL;
}

/* Entries are for heads of up to 64, 128 and 256 elements. */
static inline simt_function attention_function(const trine_call *call, const char *step) {
    const int64_t d = attention_size(call, "d");
    return (simt_function){ .step = step, .type = { call->type[0] }, .variant = d <= 64 ? 64 : d <= 128 ? 128 : 256 };
}

#endif
