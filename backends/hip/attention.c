/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CDNA devices: the host side. */
#include "attention_host.h"

enum { Q, K, V, CU_Q, CU_K, OUTPUT, LSE }; /* as in the specification */

static trine_status launch(const trine_call *call) {
    const trine_attention_args *args = call->args;
    attention_params p = attention_params_of(call, CU_Q, CU_K, args->scale, args->softcap, args->causal, args->window);
    p.q = attention_rows_of(call, Q);
    p.k = attention_rows_of(call, K);
    p.v = attention_rows_of(call, V);
    p.o = attention_rows_of(call, OUTPUT);
    p.lse = attention_column_of(call, LSE);
    const simt_function function = attention_function(call, NULL);
    const int threads = ATTENTION_THREADS((int)trine_dtype_size(call->type[0]), function.variant);
    return simt_launch(call, &function, p.b * p.h * simt_blocks(p.sq, threads / 4), threads, &p, sizeof p);
}

SIMT_KERNELS(attention) = { { .name = SIMT_NAME, .refuse = attention_refuse, .launch = launch }, { 0 } };
