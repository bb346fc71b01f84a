/* SPDX-License-Identifier: Apache-2.0 */
/* argmax on devices: the host side. */
#include "argmax.h"
#include "backends/simt/core/host.h"
#include "spec/places/argmax.h"

/* Of how many elements a part is, a multiple of SIMT_VECTOR: all of a row if there are many rows. */
static int64_t part_of(const trine_call *call) {
    const int64_t r = call->dim[ARGMAX_DIM_R], n = call->dim[ARGMAX_DIM_N];
    if (r >= ARGMAX_BLOCKS || n <= ARGMAX_PART) return n;
    const int64_t most = simt_blocks(n, ARGMAX_PARTS);
    return simt_blocks(most > ARGMAX_PART ? most : ARGMAX_PART, SIMT_VECTOR) * SIMT_VECTOR;
}
static int64_t parts_of(const trine_call *call) { return simt_blocks(call->dim[ARGMAX_DIM_N], part_of(call)); }

static const char *refuse(const trine_call *call) {
    return call->type[ARGMAX_TYPE_I] == TRINE_I32 && call->dim[ARGMAX_DIM_N] > INT32_MAX
               ? "rows of more than 2^31 - 1 elements with indices of 32 bits"
               : NULL;
}

static size_t workspace(const trine_call *call) {
    const int64_t parts = parts_of(call);
    return parts > 1 ? (size_t)(call->dim[ARGMAX_DIM_R] * parts) * sizeof(argmax_best) : 0;
}

static trine_status launch(const trine_call *call) {
    const trine_argmax_args *args = call->args;
    const int64_t r = call->dim[ARGMAX_DIM_R], n = call->dim[ARGMAX_DIM_N], parts = parts_of(call);
    const argmax_params p = {
        .x = simt_rows_of(call, ARGMAX_X),
        .indices = call->tensor[ARGMAX_INDICES].data,
        .values = simt_present(call, ARGMAX_VALUES) ? call->tensor[ARGMAX_VALUES].data : NULL,
        .best = call->workspace,
        .r = r,
        .n = n,
        .parts = parts,
        .part = part_of(call),
        .smallest = args->smallest,
        .wide = simt_aligned(call, ARGMAX_X),
        .long_indices = call->type[ARGMAX_TYPE_I] == TRINE_I64,
    };
    simt_function function = { .type = { call->type[ARGMAX_TYPE_T] } };
    if (n <= ARGMAX_SHORT) {
        function.step = "short";
        return simt_launch(call, &function, simt_blocks(r, SIMT_THREADS / ARGMAX_GROUP), SIMT_THREADS, &p, sizeof p);
    }
    const trine_status status = simt_launch(call, &function, r * parts, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK || parts == 1) return status;
    function.step = "parts";
    return simt_launch(call, &function, r, SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ARGMAX_DIM_N, SIMT_VECTOR);
    trine_kernel_edge(edges, ARGMAX_DIM_N, ARGMAX_SHORT);
    trine_kernel_edge(edges, ARGMAX_DIM_N, ARGMAX_PART);
    trine_kernel_edge(edges, ARGMAX_DIM_R, ARGMAX_BLOCKS);
}

SIMT_KERNELS(argmax) = {
    { .name = SIMT_NAME, .refuse = refuse, .workspace = workspace, .launch = launch, .edges = edges }, { 0 }
};
