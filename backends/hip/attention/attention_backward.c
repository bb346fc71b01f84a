/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CDNA devices: the host side. */
#include "attention_backward.h"

#include "attention_host.h"

static size_t workspace(const trine_call *call) {
    return (size_t)(call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_H] * call->dim[ATTENTION_DIM_SQ]) *
           sizeof(float);
}

static bool has_options(const trine_call *call) {
    const trine_attention_backward_args *args = call->args;
    return attention_has_options(call, (attention_asked)ATTENTION_ASKED(args, ATTENTION_BACKWARD));
}

/* Of a block. */
static int64_t rows_of(const trine_call *call) {
    if (has_options(call)) return TILE_THREADS / 64 * 16;
    return TILE_THREADS / 64 *
           BACKWARD_EDGE((int)trine_dtype_size(call->type[ATTENTION_BACKWARD_TYPE_T]),
                         attention_function(call, NULL, false).variant);
}

static trine_status launch(const trine_call *call) {
    const trine_attention_backward_args *args = call->args;
    attention_backward_params p = {
        .forward = attention_params_of(call, (attention_asked)ATTENTION_ASKED(args, ATTENTION_BACKWARD)),
        .dout = attention_rows_of(call, ATTENTION_BACKWARD_DOUT),
        .dq = attention_rows_of(call, ATTENTION_BACKWARD_DQ),
        .dk = attention_rows_of(call, ATTENTION_BACKWARD_DK),
        .dv = attention_rows_of(call, ATTENTION_BACKWARD_DV),
        .delta = call->workspace,
    };
    attention_params *f = &p.forward;
    f->q = attention_rows_of(call, ATTENTION_BACKWARD_Q);
    f->k = attention_rows_of(call, ATTENTION_BACKWARD_K);
    f->v = attention_rows_of(call, ATTENTION_BACKWARD_V);
    f->o = attention_rows_of(call, ATTENTION_BACKWARD_O);
    f->lse = attention_column_of(call, ATTENTION_BACKWARD_LSE);
    if (simt_present(call, ATTENTION_BACKWARD_DBIAS)) {
        const trine_tensor *dbias = &call->tensor[ATTENTION_BACKWARD_DBIAS];
        p.dbias = dbias->data, p.dbias_batch = dbias->stride[0], p.dbias_head = dbias->stride[1],
        p.dbias_query = dbias->stride[2];
    }
    if (simt_present(call, ATTENTION_BACKWARD_DSINKS)) p.dsinks = call->tensor[ATTENTION_BACKWARD_DSINKS].data;
    const trine_dtype type = call->type[ATTENTION_BACKWARD_TYPE_T];
    const simt_function delta = { .step = "delta", .type = { type } }, clear = { .step = "clear", .type = { type } },
                        sinks = { .step = "sinks", .type = { type } };
    const bool options = has_options(call);
    const simt_function queries = attention_function(call, options ? "options_queries" : "queries", options),
                        keys = attention_function(call, options ? "options_keys" : "keys", options);
    const int64_t rows = f->b * f->h * f->sq;
    const int64_t own = rows_of(call);
    const int64_t by_queries = f->b * f->h * simt_blocks(f->sq, own), by_keys = f->b * f->hk * simt_blocks(f->sk, own);
    trine_status status = simt_launch(call, &delta, simt_blocks(rows, TILE_THREADS / 64), TILE_THREADS, &p, sizeof p);
    if (status == TRINE_OK && p.dbias != NULL && f->sk > 0)
        status = simt_launch(call, &clear, rows, TILE_THREADS, &p, sizeof p);
    f->order = attention_order_of(call, by_queries);
    if (status == TRINE_OK) status = simt_launch(call, &queries, by_queries, TILE_THREADS, &p, sizeof p);
    f->order = attention_order_of(call, by_keys);
    if (status == TRINE_OK) status = simt_launch(call, &keys, by_keys, TILE_THREADS, &p, sizeof p);
    if (status == TRINE_OK && p.dsinks != NULL) status = simt_launch(call, &sinks, f->h, TILE_THREADS, &p, sizeof p);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) { attention_edges_of(call, edges, rows_of(call)); }

SIMT_KERNELS(attention_backward) = {
    { .name = SIMT_NAME, .refuse = attention_refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
