/* SPDX-License-Identifier: Apache-2.0 */
/* moe_dispatch on devices: the host side. */
#include "backends/simt/comm/moe_dispatch.h"
#include "moves.h"
#include "spec/places/moe_dispatch.h"

static int64_t slots_of(const trine_call *call) {
    return call->dim[MOE_DISPATCH_DIM_T] * call->dim[MOE_DISPATCH_DIM_K];
}

/* What is in the workspace, from its beginning; the bytes of it all. */
static size_t lay_out(const trine_call *call, dispatch_params *p) {
    const size_t ranks = (size_t)call->dim[MOE_DISPATCH_DIM_RANKS], slots = (size_t)slots_of(call),
                 experts = ranks * (size_t)call->dim[MOE_DISPATCH_DIM_E],
                 chunks = (size_t)simt_blocks((int64_t)slots, DISPATCH_CHUNK), size = sizeof(int32_t);
    size_t at = 0;
    p->moves = moves_part(call, &at, sizeof(moved_rows) + slots * sizeof(moved_row));
    p->table = moves_part(call, &at, chunks * experts * size);
    p->own = moves_part(call, &at, experts * size);
    p->all = moves_part(call, &at, ranks * experts * size);
    p->taken = moves_part(call, &at, experts * size);
    p->first = moves_part(call, &at, experts * size);
    p->before = moves_part(call, &at, experts * size);
    p->pairs = moves_part(call, &at, ranks * ranks * size);
    return at;
}

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim, most = (INT32_MAX - DISPATCH_CHUNK) / dim[MOE_DISPATCH_DIM_RANKS],
                  k = dim[MOE_DISPATCH_DIM_K];
    if (k > 0 && dim[MOE_DISPATCH_DIM_T] > most / k) return "more than 2^31 - 1025 slots";
    if (dim[MOE_DISPATCH_DIM_P] > most) return "more than 2^31 - 1025 places";
    return dim[MOE_DISPATCH_DIM_E] > most ? "more than 2^31 - 1025 experts" : NULL;
}

static size_t workspace(const trine_call *call) {
    dispatch_params p;
    return lay_out(call, &p);
}

static trine_status step(const trine_call *call, const char *name, int64_t blocks, const dispatch_params *p) {
    return simt_launch(call, &(simt_function){ .step = name }, blocks, SIMT_THREADS, p, sizeof *p);
}

static trine_status run(const trine_call *call) {
    const trine_moe_dispatch_args *args = call->args;
    const int64_t *dim = call->dim, slots = slots_of(call), chunks = simt_blocks(slots, DISPATCH_CHUNK),
                  experts = dim[MOE_DISPATCH_DIM_RANKS] * dim[MOE_DISPATCH_DIM_E];
    dispatch_params p = {
        .experts = simt_rows_of(call, MOE_DISPATCH_EXPERTS),
        .places = simt_rows_of(call, MOE_DISPATCH_PLACES),
        .counts = call->tensor[MOE_DISPATCH_COUNTS].data,
        .offsets = call->tensor[MOE_DISPATCH_OFFSETS].data,
        .needed = simt_present(call, MOE_DISPATCH_NEEDED) ? call->tensor[MOE_DISPATCH_NEEDED].data : NULL,
        .k = simt_divisor_of(dim[MOE_DISPATCH_DIM_K] > 0 ? dim[MOE_DISPATCH_DIM_K] : 1),
        .capacity = args->capacity > 0 ? args->capacity : INT32_MAX,
        .slots = (int32_t)slots,
        .e = (int32_t)dim[MOE_DISPATCH_DIM_E],
        .experts_of_all = (int32_t)experts,
        .p = (int32_t)dim[MOE_DISPATCH_DIM_P],
        .chunks = (int32_t)chunks,
        .rank = simt_group_rank(call),
        .ranks = (int32_t)dim[MOE_DISPATCH_DIM_RANKS],
        .long_experts = call->tensor[MOE_DISPATCH_EXPERTS].dtype == TRINE_I64,
    };
    lay_out(call, &p);
    trine_status status = step(call, "count", chunks, &p);
    if (status == TRINE_OK) status = step(call, "add", simt_blocks(experts, SIMT_THREADS), &p);
    if (status == TRINE_OK) status = moves_gather(call, p.own, p.all, experts);
    if (status == TRINE_OK) status = step(call, "plan", 1, &p);
    if (status == TRINE_OK) status = step(call, "put", chunks, &p);
    const trine_tensor *y = &call->tensor[MOE_DISPATCH_Y];
    if (status == TRINE_OK)
        status = moves_run(call, &call->tensor[MOE_DISPATCH_X], y->data,
                           y->stride[0] * (int64_t)trine_dtype_size(y->dtype), dim[MOE_DISPATCH_DIM_N], slots, p.moves);
    return status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t width = (int64_t)trine_dtype_size(call->type[MOE_DISPATCH_TYPE_T]), k = call->dim[MOE_DISPATCH_DIM_K];
    trine_kernel_edge(edges, MOE_DISPATCH_DIM_N, EXCHANGE_PACKET / 2 / width);
    if (k > 0) trine_kernel_edge(edges, MOE_DISPATCH_DIM_T, DISPATCH_CHUNK / k);
}

SIMT_KERNELS(moe_dispatch) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
