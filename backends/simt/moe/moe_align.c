/* SPDX-License-Identifier: Apache-2.0 */
/* moe_align on devices: the host side. */
#include "moe_align.h"
#include "backends/simt/core/host.h"
#include "spec/places/moe_align.h"

static int64_t slots_of(const trine_call *call) { return call->dim[MOE_ALIGN_DIM_T] * call->dim[MOE_ALIGN_DIM_K]; }

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim;
    const int64_t most = INT32_MAX - ALIGN_CHUNK;
    if (dim[MOE_ALIGN_DIM_E] > most) return "more than 2^31 - 1025 experts";
    if (dim[MOE_ALIGN_DIM_T] > 0 && dim[MOE_ALIGN_DIM_K] > most / dim[MOE_ALIGN_DIM_T])
        return "more than 2^31 - 1025 slots";
    return dim[MOE_ALIGN_DIM_B] > most || dim[MOE_ALIGN_DIM_M] > most / dim[MOE_ALIGN_DIM_B]
               ? "more than 2^31 - 1025 places"
               : NULL;
}

static size_t workspace(const trine_call *call) {
    return (size_t)(simt_blocks(slots_of(call), ALIGN_CHUNK) * call->dim[MOE_ALIGN_DIM_E]) * sizeof(int32_t);
}

static trine_status launch(const trine_call *call) {
    const trine_moe_align_args *args = call->args;
    const int64_t slots = slots_of(call), room = call->dim[MOE_ALIGN_DIM_M] * call->dim[MOE_ALIGN_DIM_B],
                  chunks = simt_blocks(slots, ALIGN_CHUNK), blocks = chunks > 0 ? chunks : 1;
    const align_params p = {
        .experts = simt_rows_of(call, MOE_ALIGN_EXPERTS),
        .rows = simt_rows_of(call, MOE_ALIGN_ROWS),
        .places = simt_rows_of(call, MOE_ALIGN_PLACES),
        .counts = call->tensor[MOE_ALIGN_COUNTS].data,
        .offsets = call->tensor[MOE_ALIGN_OFFSETS].data,
        .block_experts =
            simt_present(call, MOE_ALIGN_BLOCK_EXPERTS) ? call->tensor[MOE_ALIGN_BLOCK_EXPERTS].data : NULL,
        .table = call->workspace,
        .k = simt_divisor_of(call->dim[MOE_ALIGN_DIM_K] > 0 ? call->dim[MOE_ALIGN_DIM_K] : 1),
        .b = simt_divisor_of(call->dim[MOE_ALIGN_DIM_B]),
        .capacity = args->capacity > 0 ? args->capacity : INT32_MAX,
        .slots = (int32_t)slots,
        .e = (int32_t)call->dim[MOE_ALIGN_DIM_E],
        .room = (int32_t)room,
        .chunks = (int32_t)chunks,
        .blocks = (int32_t)blocks,
        .long_experts = call->tensor[MOE_ALIGN_EXPERTS].dtype == TRINE_I64,
    };
    trine_status status = simt_launch(call, &(simt_function){ .step = "count" }, blocks, SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK)
        status = simt_launch(call, &(simt_function){ .step = "add" }, 1, SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK)
        status = simt_launch(call, &(simt_function){ .step = "put" }, blocks, SIMT_THREADS, &p, sizeof p);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t k = call->dim[MOE_ALIGN_DIM_K];
    if (k > 0) trine_kernel_edge(edges, MOE_ALIGN_DIM_T, ALIGN_CHUNK / k);
    trine_kernel_edge(edges, MOE_ALIGN_DIM_E, SIMT_THREADS);
}

SIMT_KERNELS(moe_align) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
