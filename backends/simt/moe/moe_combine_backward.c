/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine_backward on devices: the host side. */
#include "moe_combine_backward.h"
#include "backends/simt/core/host.h"
#include "backends/simt/reduce/scatter_host.h"
#include "spec/places/moe_combine_backward.h"

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim, k = dim[MOE_COMBINE_BACKWARD_DIM_K];
    if (dim[MOE_COMBINE_BACKWARD_DIM_P] > INT32_MAX) return "more than 2^31 - 1 places";
    return k > 0 && dim[MOE_COMBINE_BACKWARD_DIM_T] > INT32_MAX / k ? "more than 2^31 - 1 slots" : NULL;
}

/* Of each place four numbers, of each slot three, the counts of the sort, and one more. */
static size_t workspace(const trine_call *call) {
    const int64_t *dim = call->dim, slots = dim[MOE_COMBINE_BACKWARD_DIM_T] * dim[MOE_COMBINE_BACKWARD_DIM_K];
    return (size_t)(4 * dim[MOE_COMBINE_BACKWARD_DIM_P] + 3 * slots + scatter_blocks(slots) * SORT_DIGITS + 1) *
           sizeof(int32_t);
}

static scatter_params sort_of(int32_t *place, int64_t slots, int64_t places) {
    uint32_t *const token = (uint32_t *)(place + slots);
    return (scatter_params){ .ids = place,
                             .t = slots,
                             .v = places,
                             .token = { token, token + slots },
                             .first = token + 2 * slots,
                             .end = token + 2 * slots + places,
                             .count = token + 2 * slots + 2 * places,
                             .block_tokens = scatter_block_tokens(slots),
                             .blocks = scatter_blocks(slots),
                             .padding = -1 };
}

/* By the digits of the numbers 0 .. p, lowest first; and where each place's slots are. */
static trine_status sort(const trine_call *call, combine_backward_params *p) {
    scatter_params *s = &p->sort;
    trine_status status = TRINE_OK;
    for (int64_t most = p->p; status == TRINE_OK && (s->pass == 0 || most > 0); s->pass++, most >>= SORT_BITS) {
        status = simt_launch(call, &(simt_function){ .step = "count" }, s->blocks, SIMT_THREADS, p, sizeof *p);
        if (status == TRINE_OK)
            status = simt_launch(call, &(simt_function){ .step = "sort" }, s->blocks, SIMT_THREADS, p, sizeof *p);
    }
    s->pass--;
    if (status != TRINE_OK) return status;
    return simt_launch(call, &(simt_function){ .step = "ends" }, simt_blocks(p->slots, SIMT_THREADS), SIMT_THREADS, p,
                       sizeof *p);
}

static trine_status launch(const trine_call *call) {
    const int64_t n = call->dim[MOE_COMBINE_BACKWARD_DIM_N], places = call->dim[MOE_COMBINE_BACKWARD_DIM_P],
                  k = call->dim[MOE_COMBINE_BACKWARD_DIM_K], slots = call->dim[MOE_COMBINE_BACKWARD_DIM_T] * k,
                  row_units = simt_blocks(n, SIMT_VECTOR), units = row_units * places;
    int32_t *const owner = call->workspace, *const place = owner + 2 * places + 1;
    combine_backward_params p = { .dy = simt_rows_of(call, MOE_COMBINE_BACKWARD_DY),
                                  .x = simt_rows_of(call, MOE_COMBINE_BACKWARD_X),
                                  .places = simt_rows_of(call, MOE_COMBINE_BACKWARD_PLACES),
                                  .weights = simt_rows_of(call, MOE_COMBINE_BACKWARD_WEIGHTS),
                                  .dx = simt_rows_of(call, MOE_COMBINE_BACKWARD_DX),
                                  .dweights = simt_rows_of(call, MOE_COMBINE_BACKWARD_DWEIGHTS),
                                  .k = simt_divisor_of(k + (k == 0)),
                                  .row_units = simt_divisor_of(row_units + (row_units == 0)),
                                  .units = units,
                                  .p = places,
                                  .n = n,
                                  .slots = (int32_t)slots,
                                  .place = place,
                                  .owner = owner,
                                  .several = owner + places,
                                  .any = owner + 2 * places,
                                  .sort = sort_of(place, slots, places),
                                  .aligned = simt_aligned(call, MOE_COMBINE_BACKWARD_DY) &&
                                             simt_aligned(call, MOE_COMBINE_BACKWARD_X) &&
                                             simt_aligned(call, MOE_COMBINE_BACKWARD_DX) };
    const trine_dtype type = call->type[MOE_COMBINE_BACKWARD_TYPE_T], of_dy = call->type[MOE_COMBINE_BACKWARD_TYPE_O];
    const simt_function own = { .step = "own" }, slot = { .step = "slots", .type = { type, of_dy } },
                        rows = { .step = "rows", .type = { type, of_dy } };
    trine_status status = TRINE_OK;
    if (slots > 0) {
        status = simt_launch(call, &own, simt_blocks(slots, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
        if (status == TRINE_OK)
            status =
                simt_launch(call, &slot, simt_blocks(slots, SIMT_THREADS / COMBINE_LANES), SIMT_THREADS, &p, sizeof p);
        if (status == TRINE_OK && places > 0) status = sort(call, &p);
    }
    return status == TRINE_OK ? simt_launch(call, &rows, simt_blocks(units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p)
                              : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, SIMT_VECTOR * COMBINE_LANES);
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, SIMT_VECTOR * SIMT_THREADS);
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_P, SORT_DIGITS - 1);
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_T, SIMT_THREADS);
}

SIMT_KERNELS(moe_combine_backward) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
