/* SPDX-License-Identifier: Apache-2.0 */
/* topk on devices: the host side. */
#include "topk.h"
#include "backends/simt/core/host.h"
#include "spec/places/topk.h"

static const char *refuse(const trine_call *call) {
    if (call->dim[TOPK_DIM_N] > INT32_MAX) return "rows of more than 2^31 - 1 elements";
    return call->dim[TOPK_DIM_K] > TOPK_MOST ? "more than 2048 elements of a row" : NULL;
}

static trine_status launch(const trine_call *call) {
    const trine_topk_args *args = call->args;
    const topk_params p = { .x = simt_rows_of(call, TOPK_X),
                            .values = simt_rows_of(call, TOPK_VALUES),
                            .indices = simt_rows_of(call, TOPK_INDICES),
                            .n = (int32_t)call->dim[TOPK_DIM_N],
                            .k = (int32_t)call->dim[TOPK_DIM_K],
                            .smallest = args->smallest,
                            .long_indices = call->tensor[TOPK_INDICES].dtype == TRINE_I64 };
    const simt_function function = { .type = { call->type[TOPK_TYPE_T] } };
    return simt_launch(call, &function, call->dim[TOPK_DIM_R], SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, TOPK_DIM_N, SIMT_THREADS);
    trine_kernel_edge(edges, TOPK_DIM_K, SIMT_THREADS);
    trine_kernel_edge(edges, TOPK_DIM_K, TOPK_MOST);
}

SIMT_KERNELS(topk) = { { .name = SIMT_NAME, .refuse = refuse, .launch = launch, .edges = edges }, { 0 } };
