/* SPDX-License-Identifier: Apache-2.0 */
/* attention on CDNA devices: the host side. */
#include "backends/simt/attention/attention_same_host.h"
#include "attention_host.h"

/* Blocks that give the compute units of a chip enough to do: of 304, 256 or 104. */
enum { ENOUGH = 256 };

static int threads_of(const trine_call *call) {
    return ATTENTION_THREADS((int)trine_dtype_size(call->type[ATTENTION_TYPE_T]),
                             attention_function(call, NULL, false).variant);
}

/* With so many queries in a wave. */
static int64_t blocks_of(const trine_call *call, int queries) {
    return call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_H] *
           simt_blocks(call->dim[ATTENTION_DIM_SQ], threads_of(call) / 64 * queries);
}

/* More queries in a wave share what it reads of keys and values; fewer are for what would leave compute units without
 * any. */
static bool has_options(const trine_call *call) {
    const trine_attention_args *args = call->args;
    return simt_present(call, ATTENTION_SINKS) ||
           attention_has_options(call, (attention_asked)ATTENTION_ASKED(args, ATTENTION));
}
static const char *refuse_32(const trine_call *call) {
    if (has_options(call)) return "there is a bias, or slopes, sinks, or dropout";
    return ATTENTION_WIDE((int)trine_dtype_size(call->type[ATTENTION_TYPE_T]), call->dim[ATTENTION_DIM_D])
               ? NULL
               : "waves of 32 queries are for 16 bits and heads of up to 128";
}
static const char *refuse_16(const trine_call *call) {
    const char *const why = attention_refuse(call);
    if (why != NULL || refuse_32(call) != NULL) return why;
    return blocks_of(call, 32) >= ENOUGH ? "there are enough blocks with waves of 32 queries" : NULL;
}

/* Its self is the queries of a wave. */
static trine_status launch(const trine_call *call) {
    const int queries = *(const int *)call->self;
    const trine_attention_args *args = call->args;
    attention_params p = attention_params_of(call, (attention_asked)ATTENTION_ASKED(args, ATTENTION));
    p.q = attention_rows_of(call, ATTENTION_Q);
    p.k = attention_rows_of(call, ATTENTION_K);
    p.v = attention_rows_of(call, ATTENTION_V);
    p.o = attention_rows_of(call, ATTENTION_O);
    p.lse = attention_column_of(call, ATTENTION_LSE);
    const int64_t blocks = blocks_of(call, queries);
    p.order = attention_order_of(call, blocks);
    const bool options = has_options(call);
    const char *const step = queries == 32 ? "wide" : options ? "options" : NULL;
    const simt_function function = attention_function(call, step, options);
    return simt_launch(call, &function, blocks, threads_of(call), &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    attention_edges_of(call, edges, threads_of(call) / 64 * *(const int *)call->self);
}

SIMT_KERNELS(attention) = {
    { .name = SIMT_NAME "_16", .refuse = refuse_16, .launch = launch, .edges = edges, .self = &(const int){ 16 } },
    { .name = SIMT_NAME "_32", .refuse = refuse_32, .launch = launch, .edges = edges, .self = &(const int){ 32 } },
    ATTENTION_SAME_KERNEL,
    { 0 },
};
