/* SPDX-License-Identifier: Apache-2.0 */
/* The options of attention and its gradient: from a call to what devices get. */
#ifndef TRINE_SIMT_ATTENTION_OPTIONS_HOST_H
#define TRINE_SIMT_ATTENTION_OPTIONS_HOST_H

#include "attention_options.h"
#include "backends/simt/core/host.h"

/* The parameters of both ops, and where they have the tensors that both have. */
typedef struct attention_asked {
    float scale, softcap, dropout;
    bool causal;
    int64_t before, after; /* windows to the left and to the right; 0: unlimited */
    uint64_t seed, offset;
    int cu_q, cu_k, used_q, used_k, bias, slopes, sinks, philox;
} attention_asked;
#define ATTENTION_ASKED(args, OP) \
    { (args)->scale, \
      (args)->softcap, \
      (args)->dropout, \
      (args)->causal, \
      attention_narrower((args)->window, (args)->window_left), \
      attention_narrower((args)->window, (args)->window_right), \
      (args)->seed, \
      (args)->offset, \
      OP##_CU_SEQLENS_Q, \
      OP##_CU_SEQLENS_K, \
      OP##_SEQUSED_Q, \
      OP##_SEQUSED_K, \
      OP##_BIAS, \
      OP##_ALIBI_SLOPES, \
      OP##_SINKS, \
      OP##_PHILOX }
static inline int64_t attention_narrower(int64_t a, int64_t b) { return a == 0 || (b > 0 && b < a) ? b : a; }

/* The data of a tensor; NULL if it is absent. */
static inline const void *attention_given(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

static inline attention_options attention_options_of(const trine_call *call, const attention_asked *asked) {
    const trine_tensor *bias = &call->tensor[asked->bias], *slopes = &call->tensor[asked->slopes];
    attention_options o = { .bias = attention_given(call, asked->bias),
                            .slopes = attention_given(call, asked->slopes),
                            .sinks = attention_given(call, asked->sinks),
                            .keeps = 1 };
    if (simt_present(call, asked->bias))
        o.batch = bias->stride[0], o.head = bias->stride[1], o.query = bias->stride[2], o.key = bias->stride[3],
        o.wide = bias->dtype == TRINE_F32;
    if (simt_present(call, asked->slopes)) o.slope_batch = slopes->stride[0], o.slope_head = slopes->stride[1];
    o.wide_sinks = simt_present(call, asked->sinks) && call->tensor[asked->sinks].dtype == TRINE_F32;
    o.adds = simt_present(call, asked->bias) || simt_present(call, asked->slopes), o.drops = asked->dropout > 0;
    if (!o.drops) return o;
    o.dropout = simt_dropout_of(asked->dropout, asked->seed, asked->offset);
    o.philox = attention_given(call, asked->philox), o.keeps = o.dropout.scale;
    return o;
}

#endif
