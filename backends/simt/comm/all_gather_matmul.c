/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_matmul on devices: the host side. */
#include "backends/simt/comm/products.h"
#include "spec/places/all_gather_matmul.h"

/* Where the rows of all ranks come: to the output, or else to the workspace's beginning. */
static trine_tensor gathered_of(const trine_call *call, size_t *bytes_out) {
    *bytes_out = 0;
    if (trine_call_given(call, ALL_GATHER_MATMUL_GATHERED) != NULL) return own_tensor(call, ALL_GATHER_MATMUL_GATHERED);
    return product_room(call, call->type[ALL_GATHER_MATMUL_TYPE_T], call->dim[ALL_GATHER_MATMUL_DIM_RANKS],
                        call->dim[ALL_GATHER_MATMUL_DIM_M], call->dim[ALL_GATHER_MATMUL_DIM_K], bytes_out);
}

static trine_status product(const trine_call *call, size_t *bytes, bool run) {
    size_t at, nested = 0;
    const trine_tensor gathered = gathered_of(call, &at);
    if (run) nested = call->workspace_size - at;
    const trine_status status = multiply(call, gathered, own_tensor(call, ALL_GATHER_MATMUL_B),
                                         own_tensor(call, ALL_GATHER_MATMUL_D), at, &nested, run);
    *bytes = at + nested;
    return status;
}

static const char *refuse(const trine_call *call) {
    size_t bytes;
    return product(call, &bytes, false) == TRINE_OK ? NULL : "matmul has no kernel for it";
}

static size_t workspace(const trine_call *call) {
    size_t bytes;
    return product(call, &bytes, false) == TRINE_OK ? bytes : 0;
}

static trine_status run(const trine_call *call) {
    size_t bytes;
    const trine_tensor a = own_tensor(call, ALL_GATHER_MATMUL_A), all = gathered_of(call, &bytes);
    const int64_t width = (int64_t)trine_dtype_size(a.dtype), elements = EXCHANGE_PACKET / width;
    const simt_function function = { .variant = (int)width };
    exchange_params p =
        lines_of(&a, &all, call->dim[ALL_GATHER_MATMUL_DIM_M], call->dim[ALL_GATHER_MATMUL_DIM_K], elements);
    const trine_status status = simt_exchange(call, &function, &p, line_packets(&p, elements), 1);
    return status == TRINE_OK ? product(call, &bytes, true) : status;
}
static trine_status launch(const trine_call *call) { return simt_group_run(call, run); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t width = (int64_t)trine_dtype_size(call->type[ALL_GATHER_MATMUL_TYPE_T]);
    trine_kernel_edge(edges, ALL_GATHER_MATMUL_DIM_K, EXCHANGE_PACKET / width);
}

SIMT_KERNELS(all_gather_matmul) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
