/* SPDX-License-Identifier: Apache-2.0 */
/* moe_collect on devices: the host side. */
#include "backends/simt/comm/moe_collect.h"
#include "moves.h"
#include "spec/places/moe_collect.h"

static int64_t slots_of(const trine_call *call) { return call->dim[MOE_COLLECT_DIM_T] * call->dim[MOE_COLLECT_DIM_K]; }

/* Elements from row to row in the workspace: rows begin at 16 bytes. */
static int64_t pitch_of(const trine_call *call) {
    const int64_t whole = EXCHANGE_PACKET / (int64_t)trine_dtype_size(call->type[MOE_COLLECT_TYPE_T]);
    return simt_blocks(call->dim[MOE_COLLECT_DIM_N], whole) * whole;
}

/* What is in the workspace, from its beginning; the bytes of it all. */
static size_t lay_out(const trine_call *call, collect_params *p) {
    const size_t ranks = (size_t)call->dim[MOE_COLLECT_DIM_RANKS], slots = (size_t)slots_of(call),
                 width = trine_dtype_size(call->type[MOE_COLLECT_TYPE_T]), size = sizeof(int32_t);
    size_t at = 0;
    p->moves = moves_part(call, &at, sizeof(moved_rows) + ranks * slots * sizeof(moved_row));
    p->own = moves_part(call, &at, slots * size);
    p->all = moves_part(call, &at, ranks * slots * size);
    p->pairs = moves_part(call, &at, ranks * ranks * size);
    p->rows =
        (simt_rows){ .data = moves_part(call, &at, slots * (size_t)pitch_of(call) * width), .row = pitch_of(call) };
    return at;
}

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim, most = (INT32_MAX - SIMT_THREADS) / dim[MOE_COLLECT_DIM_RANKS],
                  k = dim[MOE_COLLECT_DIM_K];
    if (k > 0 && dim[MOE_COLLECT_DIM_T] > most / k) return "more than 2^31 - 257 slots";
    return dim[MOE_COLLECT_DIM_P] > most ? "more than 2^31 - 257 places" : NULL;
}

static size_t workspace(const trine_call *call) {
    collect_params p;
    return lay_out(call, &p);
}

static trine_status step(const trine_call *call, const simt_function *function, int64_t blocks,
                         const collect_params *p) {
    return simt_launch(call, function, blocks, SIMT_THREADS, p, sizeof *p);
}

static trine_status run(const trine_call *call) {
    const int64_t *dim = call->dim, n = dim[MOE_COLLECT_DIM_N], row_units = simt_blocks(n, SIMT_VECTOR),
                  slots = slots_of(call);
    collect_params p = { .places = simt_rows_of(call, MOE_COLLECT_PLACES),
                         .weights = simt_rows_of(call, MOE_COLLECT_WEIGHTS),
                         .y = simt_rows_of(call, MOE_COLLECT_Y),
                         .k = simt_divisor_of(dim[MOE_COLLECT_DIM_K] > 0 ? dim[MOE_COLLECT_DIM_K] : 1),
                         .row_units = simt_divisor_of(row_units > 0 ? row_units : 1),
                         .units = row_units * dim[MOE_COLLECT_DIM_T],
                         .n = n,
                         .slots = (int32_t)slots,
                         .p = (int32_t)dim[MOE_COLLECT_DIM_P],
                         .rank = simt_group_rank(call),
                         .ranks = (int32_t)dim[MOE_COLLECT_DIM_RANKS],
                         .aligned = simt_aligned(call, MOE_COLLECT_Y) };
    lay_out(call, &p);
    const trine_tensor *x = &call->tensor[MOE_COLLECT_X];
    const simt_function sum = { .step = "sum",
                                .type = { call->type[MOE_COLLECT_TYPE_T], call->type[MOE_COLLECT_TYPE_O] } };
    trine_status status = step(call, &(simt_function){ .step = "pack" }, simt_blocks(slots, SIMT_THREADS), &p);
    if (status == TRINE_OK) status = moves_gather(call, p.own, p.all, slots);
    if (status == TRINE_OK) status = step(call, &(simt_function){ .step = "list" }, p.ranks, &p);
    if (status == TRINE_OK) status = step(call, &(simt_function){ .step = "most" }, 1, &p);
    if (status == TRINE_OK)
        status = moves_run(call, x, p.rows.data, p.rows.row * (int64_t)trine_dtype_size(x->dtype), n, slots, p.moves);
    return status == TRINE_OK ? step(call, &sum, simt_blocks(p.units, SIMT_THREADS), &p) : status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t k = call->dim[MOE_COLLECT_DIM_K];
    trine_kernel_edge(edges, MOE_COLLECT_DIM_N, SIMT_VECTOR);
    if (k > 0) trine_kernel_edge(edges, MOE_COLLECT_DIM_T, SIMT_THREADS / k);
}

SIMT_KERNELS(moe_collect) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
