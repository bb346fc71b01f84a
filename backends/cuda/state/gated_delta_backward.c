/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward on CUDA devices: the host side. */
#include "backends/simt/state/gated_delta_backward_host.h"
#include "spec/alike.h"
#include "state_back_host.h"

/* Entries are named by it. */
TRINE_ALIKE(GATED_DELTA_BACKWARD_TYPE_T, SIMT_FIRST_TYPE);

static state_back_call call_of(const trine_call *call) {
    return (state_back_call){ .call = call,
                              .packed = trine_call_given(call, GATED_DELTA_BACKWARD_CU_SEQLENS) != NULL,
                              .ruled = trine_call_given(call, GATED_DELTA_BACKWARD_BETA) != NULL,
                              .ssd = false,
                              .gates = trine_call_given(call, GATED_DELTA_BACKWARD_DG) != NULL };
}

static const char *refuse_mma(const trine_call *call) {
    const state_back_call c = call_of(call);
    const state_backward_params p = gated_delta_backward_params_of(call, STATE_MMA_WIDTH);
    return state_back_refuse(&c, &p.shape);
}

static size_t workspace_mma(const trine_call *call) {
    const state_back_call c = call_of(call);
    const state_backward_params p = gated_delta_backward_params_of(call, STATE_MMA_WIDTH);
    return state_back_workspace(&c, &p);
}

static trine_status launch_mma(const trine_call *call) {
    const state_back_call c = call_of(call);
    const state_backward_params p = gated_delta_backward_params_of(call, STATE_MMA_WIDTH);
    return state_back_launch(
        &c, &p,
        simt_aligned(call, GATED_DELTA_BACKWARD_Q) && simt_aligned(call, GATED_DELTA_BACKWARD_K) &&
            simt_aligned(call, GATED_DELTA_BACKWARD_V) && simt_aligned(call, GATED_DELTA_BACKWARD_DOUT) &&
            simt_aligned(call, GATED_DELTA_BACKWARD_DV) && simt_aligned(call, GATED_DELTA_BACKWARD_DQ) &&
            simt_aligned(call, GATED_DELTA_BACKWARD_DK));
}

static void edges_mma(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_mma_edges(edges, GATED_DELTA_BACKWARD_DIM_D, GATED_DELTA_BACKWARD_DIM_E, GATED_DELTA_BACKWARD_DIM_T);
}

SIMT_KERNELS(gated_delta_backward) = { { .name = SIMT_NAME "_mma",
                                         .refuse = refuse_mma,
                                         .workspace = workspace_mma,
                                         .launch = launch_mma,
                                         .edges = edges_mma },
                                       { .name = SIMT_NAME,
                                         .workspace = gated_delta_backward_workspace,
                                         .launch = gated_delta_backward_launch,
                                         .edges = gated_delta_backward_edges },
                                       { 0 } };
