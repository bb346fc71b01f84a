/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of attention and its gradient: from tensors to parameters. */
#ifndef TRINE_HIP_ATTENTION_HOST_H
#define TRINE_HIP_ATTENTION_HOST_H

#include <math.h>

#include "attention.h"
#include "backends/simt/attention/attention_options_host.h"
#include "backends/simt/core/host.h"
#include "backends/hip/driver/state.h"
#include "spec/attention/attention_places.h"

static inline attention_rows attention_rows_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    const int64_t step = t->stride[1] * (int64_t)trine_dtype_size(t->dtype);
    return (attention_rows){ t->data, t->stride[0], t->stride[1], t->stride[2],
                             simt_aligned(call, tensor) && step >= 0 && step <= INT32_MAX / 256 };
}

static inline attention_column attention_column_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (attention_column){ 0 };
    return (attention_column){ t->data, t->stride[0], t->stride[1] };
}

static inline attention_params attention_params_of(const trine_call *call, attention_asked asked) {
    attention_params p = { .cu_q = attention_given(call, asked.cu_q),
                           .cu_k = attention_given(call, asked.cu_k),
                           .used_q = attention_given(call, asked.used_q),
                           .used_k = attention_given(call, asked.used_k),
                           .b = call->dim[ATTENTION_DIM_B],
                           .sq = call->dim[ATTENTION_DIM_SQ],
                           .sk = call->dim[ATTENTION_DIM_SK],
                           .h = call->dim[ATTENTION_DIM_H],
                           .hk = call->dim[ATTENTION_DIM_HK],
                           .d = call->dim[ATTENTION_DIM_D],
                           .nseq = call->dim[ATTENTION_DIM_NSEQ],
                           .cap = asked.softcap,
                           .causal = asked.causal,
                           .options = attention_options_of(call, &asked) };
    p.scale = asked.scale != 0 ? asked.scale : (float)(1 / sqrt((double)p.d));
    p.before = asked.before < p.sq + p.sk ? asked.before : 0;
    p.after = asked.after < p.sq + p.sk ? asked.after : 0;
    p.simple = p.before == 0 && p.after == 0 && !simt_present(call, asked.cu_q) && !simt_present(call, asked.used_q) &&
               !simt_present(call, asked.used_k);
    return p;
}

/* Is anything added to scores, or dropped? Then other functions run, whose waves have 16 rows. */
static inline bool attention_has_options(const trine_call *call, attention_asked asked) {
    return simt_present(call, asked.bias) || simt_present(call, asked.slopes) || asked.dropout > 0;
}

/* Of a launch of so many blocks. */
static inline share_order attention_order_of(const trine_call *call, int64_t blocks) {
    const hip_device *const d = call->device;
    return hip_shares_of(d->chip, d->units, blocks);
}

static inline const char *attention_refuse(const trine_call *call) {
    return call->dim[ATTENTION_DIM_D] > ATTENTION_WIDEST ? "heads of more than 256 elements" : NULL;
}

/* Entries are for heads of so many elements; those with options not for the first. */
static const int attention_widths[] = { 64, 128, ATTENTION_WIDEST };
enum { ATTENTION_WIDTHS = sizeof attention_widths / sizeof attention_widths[0] };
static inline simt_function attention_function(const trine_call *call, const char *step, bool options) {
    int i = options;
    while (i + 1 < ATTENTION_WIDTHS && attention_widths[i] < call->dim[ATTENTION_DIM_D]) i++;
    return (simt_function){ .step = step, .type = { call->type[ATTENTION_TYPE_T] }, .variant = attention_widths[i] };
}

/* Of heads, and of tiles of `rows` queries or keys that meet tiles of one or two depths of the others. */
static inline void attention_edges_of(const trine_call *call, trine_kernel_edges *edges, int64_t rows) {
    const int64_t depth = TILE_BYTES / (int64_t)trine_dtype_size(call->type[ATTENTION_TYPE_T]);
    static const int symbols[] = { ATTENTION_DIM_SQ, ATTENTION_DIM_SK };
    for (int i = 0; i < ATTENTION_WIDTHS; i++) trine_kernel_edge(edges, ATTENTION_DIM_D, attention_widths[i]);
    trine_kernel_edge(edges, ATTENTION_DIM_D, SIMT_VECTOR);
    for (int i = 0; i < 2; i++) {
        trine_kernel_edge(edges, symbols[i], depth);
        trine_kernel_edge(edges, symbols[i], 2 * depth);
        trine_kernel_edge(edges, symbols[i], rows);
    }
}

#endif
