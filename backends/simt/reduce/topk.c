/* SPDX-License-Identifier: Apache-2.0 */
/* topk on devices: the host side. */
#include "topk.h"
#include "backends/simt/core/host.h"
#include "spec/places/topk.h"

static const char *refuse(const trine_call *call) {
    if (call->dim[TOPK_DIM_N] > INT32_MAX) return "rows of more than 2^31 - 1 elements";
    return call->dim[TOPK_DIM_K] > TOPK_MOST ? "more than 2048 elements of a row" : NULL;
}

/* Keys that a thread has of a longer row: so many that a block keeps a quarter of its keys at most. */
static int keys_of(const trine_call *call) {
    return call->dim[TOPK_DIM_N] <= TOPK_FEW * SIMT_THREADS        ? TOPK_FEW
           : call->dim[TOPK_DIM_K] <= TOPK_SOME * SIMT_THREADS / 8 ? TOPK_SOME
                                                                   : TOPK_MANY;
}

/* The parts of n elements, or keys that are left of them. */
static int64_t parts_of(const trine_call *call, int64_t n) { return simt_blocks(n, keys_of(call) * SIMT_THREADS); }

static size_t workspace(const trine_call *call) {
    const int64_t n = call->dim[TOPK_DIM_N], k = call->dim[TOPK_DIM_K], parts = parts_of(call, n);
    if (parts <= 1 || k == 0) return 0;
    return (size_t)(call->dim[TOPK_DIM_R] * k * (parts + parts_of(call, parts * k))) * sizeof(uint64_t);
}

static trine_status launch(const trine_call *call) {
    const trine_topk_args *args = call->args;
    const int64_t r = call->dim[TOPK_DIM_R];
    topk_params p = { .x = simt_rows_of(call, TOPK_X),
                      .values = simt_rows_of(call, TOPK_VALUES),
                      .indices = simt_rows_of(call, TOPK_INDICES),
                      .rows = r,
                      .n = (int32_t)call->dim[TOPK_DIM_N],
                      .k = (int32_t)call->dim[TOPK_DIM_K],
                      .smallest = args->smallest,
                      .long_indices = call->tensor[TOPK_INDICES].dtype == TRINE_I64 };
    simt_function function = { .step = "rows", .type = { call->type[TOPK_TYPE_T] } };
    if (p.n <= TOPK_SOME * TOPK_TEAM) {
        function.variant = p.n <= TOPK_FEW * TOPK_TEAM ? TOPK_FEW : TOPK_SOME;
        return simt_launch(call, &function, simt_blocks(r, SIMT_THREADS / TOPK_TEAM), SIMT_THREADS, &p, sizeof p);
    }
    function.step = "part", function.variant = keys_of(call);
    uint64_t *turn[2] = { call->workspace, NULL };
    for (int at = 0;; at = 1 - at) {
        p.parts = (int32_t)parts_of(call, p.n), p.to = turn[at];
        const trine_status status = simt_launch(call, &function, r * p.parts, SIMT_THREADS, &p, sizeof p);
        if (status != TRINE_OK || p.parts == 1) return status;
        if (turn[1] == NULL) turn[1] = turn[0] + r * p.parts * p.k;
        function.step = "left", p.from = p.to, p.n = p.parts * p.k;
    }
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, TOPK_DIM_N, TOPK_FEW * TOPK_TEAM);
    trine_kernel_edge(edges, TOPK_DIM_N, TOPK_SOME * TOPK_TEAM);
    trine_kernel_edge(edges, TOPK_DIM_N, TOPK_FEW * SIMT_THREADS);
    trine_kernel_edge(edges, TOPK_DIM_N, TOPK_SOME * SIMT_THREADS);
    trine_kernel_edge(edges, TOPK_DIM_N, TOPK_MANY * SIMT_THREADS);
    trine_kernel_edge(edges, TOPK_DIM_K, TOPK_SOME * SIMT_THREADS / 8);
    trine_kernel_edge(edges, TOPK_DIM_K, TOPK_MOST);
}

SIMT_KERNELS(topk) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
