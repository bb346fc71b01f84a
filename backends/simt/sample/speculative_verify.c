/* SPDX-License-Identifier: Apache-2.0 */
/* speculative_verify on devices: the host side. */
#include "speculative_verify.h"
#include "backends/simt/core/host.h"
#include "spec/places/speculative_verify.h"

static trine_status launch(const trine_call *call) {
    const trine_speculative_verify_args *args = call->args;
    const trine_tensor *proposed = &call->tensor[SPECULATIVE_VERIFY_DRAFT_TOKENS],
                       *tokens = &call->tensor[SPECULATIVE_VERIFY_TOKENS];
    const bool told = simt_present(call, SPECULATIVE_VERIFY_PHILOX);
    const speculative_verify_params p = {
        .target = simt_rows_of(call, SPECULATIVE_VERIFY_TARGET_PROBS),
        .draft = simt_rows_of(call, SPECULATIVE_VERIFY_DRAFT_PROBS),
        .proposed = proposed->data,
        .accepted = call->tensor[SPECULATIVE_VERIFY_ACCEPTED].data,
        .tokens = tokens->data,
        .key = { args->seed, args->offset, told ? call->tensor[SPECULATIVE_VERIFY_PHILOX].data : NULL },
        .g = call->dim[SPECULATIVE_VERIFY_DIM_G],
        .v = call->dim[SPECULATIVE_VERIFY_DIM_V],
        .proposed_row = proposed->stride[0],
        .tokens_row = tokens->stride[0],
        .wide = call->type[SPECULATIVE_VERIFY_TYPE_I] == TRINE_I64,
    };
    return simt_launch(call, &(simt_function){ 0 }, call->dim[SPECULATIVE_VERIFY_DIM_B], DRAW_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SPECULATIVE_VERIFY_DIM_V, DRAW_PARTS);
    trine_kernel_edge(edges, SPECULATIVE_VERIFY_DIM_V, DRAW_THREADS);
    trine_kernel_edge(edges, SPECULATIVE_VERIFY_DIM_G, DRAW_THREADS);
}

SIMT_KERNELS(speculative_verify) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
