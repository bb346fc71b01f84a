/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine on devices: the host side. */
#include "moe_combine.h"
#include "backends/simt/core/host.h"
#include "spec/places/moe_combine.h"

static const char *refuse(const trine_call *call) {
    return call->dim[MOE_COMBINE_DIM_K] > INT32_MAX ? "more than 2^31 - 1 slots of a token" : NULL;
}

static trine_status launch(const trine_call *call) {
    const int64_t n = call->dim[MOE_COMBINE_DIM_N], row_units = simt_blocks(n, SIMT_VECTOR),
                  units = row_units * call->dim[MOE_COMBINE_DIM_T];
    const combine_params p = { .x = simt_rows_of(call, MOE_COMBINE_X),
                               .places = simt_rows_of(call, MOE_COMBINE_PLACES),
                               .weights = simt_rows_of(call, MOE_COMBINE_WEIGHTS),
                               .y = simt_rows_of(call, MOE_COMBINE_Y),
                               .row_units = simt_divisor_of(row_units),
                               .units = units,
                               .p = call->dim[MOE_COMBINE_DIM_P],
                               .n = n,
                               .k = (int32_t)call->dim[MOE_COMBINE_DIM_K],
                               .aligned = simt_aligned(call, MOE_COMBINE_X) && simt_aligned(call, MOE_COMBINE_Y) };
    const simt_function function = { .type = { call->type[MOE_COMBINE_TYPE_T], call->type[MOE_COMBINE_TYPE_O] } };
    return simt_launch(call, &function, simt_blocks(units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MOE_COMBINE_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, MOE_COMBINE_DIM_N, SIMT_VECTOR * SIMT_THREADS);
}

SIMT_KERNELS(moe_combine) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
