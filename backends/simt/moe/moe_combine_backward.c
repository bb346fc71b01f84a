/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine_backward on devices: the host side. */
#include "moe_combine_backward.h"
#include "backends/simt/core/host.h"
#include "spec/places/moe_combine_backward.h"

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim, k = dim[MOE_COMBINE_BACKWARD_DIM_K];
    if (dim[MOE_COMBINE_BACKWARD_DIM_P] > INT32_MAX) return "more than 2^31 - 1 places";
    return k > 0 && dim[MOE_COMBINE_BACKWARD_DIM_T] > INT32_MAX / k ? "more than 2^31 - 1 slots" : NULL;
}

static size_t workspace(const trine_call *call) {
    return 2 * (size_t)call->dim[MOE_COMBINE_BACKWARD_DIM_P] * sizeof(int32_t);
}

static trine_status launch(const trine_call *call) {
    const int64_t n = call->dim[MOE_COMBINE_BACKWARD_DIM_N], places = call->dim[MOE_COMBINE_BACKWARD_DIM_P],
                  k = call->dim[MOE_COMBINE_BACKWARD_DIM_K], slots = call->dim[MOE_COMBINE_BACKWARD_DIM_T] * k,
                  row_units = simt_blocks(n, SIMT_VECTOR), units = row_units * places;
    int32_t *const owner = call->workspace;
    const combine_backward_params p = { .dy = simt_rows_of(call, MOE_COMBINE_BACKWARD_DY),
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
                                        .owner = owner,
                                        .several = owner + places,
                                        .aligned = simt_aligned(call, MOE_COMBINE_BACKWARD_DY) &&
                                                   simt_aligned(call, MOE_COMBINE_BACKWARD_X) &&
                                                   simt_aligned(call, MOE_COMBINE_BACKWARD_DX) };
    const trine_dtype type = call->type[MOE_COMBINE_BACKWARD_TYPE_T], of_dy = call->type[MOE_COMBINE_BACKWARD_TYPE_O];
    const simt_function own = { .step = "own" }, slot = { .step = "slots", .type = { type, of_dy } },
                        rows = { .step = "rows", .type = { type, of_dy } };
    trine_status status = simt_launch(call, &own, simt_blocks(slots, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK)
        status = simt_launch(call, &slot, simt_blocks(slots, SIMT_THREADS / COMBINE_LANES), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &rows, simt_blocks(units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p)
                              : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, SIMT_VECTOR * COMBINE_LANES);
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(moe_combine_backward) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
