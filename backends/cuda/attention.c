/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CUDA devices: the host side. */
#include "attention_host.h"

#include <math.h>
#include <stdio.h>

#include <trine/ops.h>

enum { Q, K, V, CU_Q, CU_K, O, LSE }; /* as in the specification */

attention_problem attention_problem_of(const trine_call *call, int cu_q, attention_options options) {
    const int64_t *dim = call->dim;
    attention_problem p = { .b = (int32_t)dim[ATTENTION_B],
                            .sq = (int32_t)dim[ATTENTION_SQ],
                            .sk = (int32_t)dim[ATTENTION_SK],
                            .h = (int32_t)dim[ATTENTION_H],
                            .group = (int32_t)(dim[ATTENTION_H] / dim[ATTENTION_HK]),
                            .d = (int32_t)dim[ATTENTION_D],
                            .window = options.window < dim[ATTENTION_SQ] + dim[ATTENTION_SK] ? (int32_t)options.window : 0,
                            .causal = options.causal,
                            .scale = options.scale != 0 ? options.scale : (float)(1 / sqrt((double)dim[ATTENTION_D])),
                            .softcap = options.softcap };
    if (!simt_present(call, cu_q)) return p;
    p.cu_q = call->tensor[cu_q].data, p.cu_k = call->tensor[cu_q + 1].data, p.nseq = (int32_t)dim[ATTENTION_NSEQ];
    return p;
}

attention_tensor attention_tokens_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return (attention_tensor){ t->data, t->stride[0], t->stride[1], t->stride[2] };
}

attention_tensor attention_statistic_of(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return simt_present(call, tensor) ? (attention_tensor){ t->data, t->stride[0], t->stride[2], t->stride[1] } : (attention_tensor){ 0 };
}

const char *attention_refuse(const trine_call *call) {
    for (int i = 0; i < call->plan->symbols; i++)
        if (call->dim[i] > INT32_MAX / 2) return "a dimension exceeds 2^30";
    return NULL;
}

static attention_params params_of(const trine_call *call) {
    const trine_attention_args *args = call->args;
    return (attention_params){ .at = attention_problem_of(call, CU_Q, (attention_options){ args->scale, args->softcap, args->causal, args->window }),
                               .q = attention_tokens_of(call, Q),
                               .k = attention_tokens_of(call, K),
                               .v = attention_tokens_of(call, V),
                               .o = attention_tokens_of(call, O),
                               .lse = attention_statistic_of(call, LSE) };
}

static trine_status launch_simt(const trine_call *call) {
    attention_params p = params_of(call);
    const int width = p.at.d <= 64 ? 64 : 128;
    p.tiles = (int32_t)simt_blocks(p.at.sq, ATTENTION_SIDE), p.columns = (int32_t)simt_blocks(p.at.d, width);
    cuda_launch launch = { .blocks = (int64_t)p.tiles * p.columns * p.at.h * p.at.b, .threads = ATTENTION_THREADS, .params = &p };
    snprintf(launch.name, sizeof launch.name, "attention_simt_%s_%d", trine_dtype_name(call->tensor[Q].dtype), width);
    return cuda_launch_function(call, &launch);
}

SIMT_KERNELS(attention) = { { .name = SIMT_NAME, .refuse = attention_refuse, .launch = launch_simt }, { 0 } };
