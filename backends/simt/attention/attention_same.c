/* SPDX-License-Identifier: Apache-2.0 */
/* attention with the same bits on every device: the launch, on all of them. */
#include <math.h>

#include "attention_same.h"
#include "attention_same_host.h"
#include "backends/simt/core/host.h"
#include "spec/places/attention.h"
#include "spec/same.h"

const char *attention_same_refuse(const trine_call *call) {
    const trine_attention_args *args = call->args;
    if (simt_present(call, ATTENTION_CU_SEQLENS_Q) || simt_present(call, ATTENTION_SEQUSED_Q) ||
        simt_present(call, ATTENTION_SEQUSED_K))
        return "what is the same everywhere has no packed or shorter sequences";
    if (simt_present(call, ATTENTION_BIAS) || simt_present(call, ATTENTION_ALIBI_SLOPES) ||
        simt_present(call, ATTENTION_SINKS))
        return "what is the same everywhere has no bias, slopes or sinks";
    return args->softcap > 0 || args->dropout > 0 ? "what is the same everywhere has no softcap and no dropout" : NULL;
}

static attention_same_tensor tensor_of(const trine_call *call, int tensor, int token, int head) {
    const trine_tensor *t = trine_call_given(call, tensor);
    if (t == NULL) return (attention_same_tensor){ 0 };
    return (attention_same_tensor){ t->data, t->stride[0], t->stride[token], t->stride[head] };
}

static int64_t window(int64_t a, int64_t b) {
    if (a == 0) a = INT64_MAX;
    return b > 0 && b < a ? b : a;
}

trine_status attention_same_launch(const trine_call *call) {
    const trine_attention_args *args = call->args;
    const int64_t *dim = call->dim;
    const attention_same_params p = {
        .q = tensor_of(call, ATTENTION_Q, 1, 2),
        .k = tensor_of(call, ATTENTION_K, 1, 2),
        .v = tensor_of(call, ATTENTION_V, 1, 2),
        .o = tensor_of(call, ATTENTION_O, 1, 2),
        .lse = tensor_of(call, ATTENTION_LSE, 2, 1),
        .sq = dim[ATTENTION_DIM_SQ],
        .sk = dim[ATTENTION_DIM_SK],
        .heads = dim[ATTENTION_DIM_H],
        .group = dim[ATTENTION_DIM_H] / dim[ATTENTION_DIM_HK],
        .d = dim[ATTENTION_DIM_D],
        .before = window(args->window, args->window_left),
        .after = window(args->window, args->window_right),
        .scale = args->scale == 0 ? (float)(1 / sqrt((double)dim[ATTENTION_DIM_D])) : args->scale,
        .causal = args->causal,
    };
    const simt_function function = { .step = "same", .type = { call->tensor[ATTENTION_Q].dtype } };
    return simt_launch(call, &function, dim[ATTENTION_DIM_B] * p.sq * p.heads, SAME_LANES, &p, sizeof p);
}

void attention_same_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ATTENTION_DIM_D, SAME_LANES);
    trine_kernel_edge(edges, ATTENTION_DIM_D, SAME_DOT_LANES);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, SAME_LANES);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, SAME_CHAIN);
}
