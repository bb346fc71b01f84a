/* SPDX-License-Identifier: Apache-2.0 */
/* ssd_backward on CUDA devices: the host side. */
#include "backends/simt/state/ssd_backward_host.h"
#include "spec/alike.h"
#include "state_back_host.h"

/* Entries are named by it. */
TRINE_ALIKE(SSD_BACKWARD_TYPE_T, SIMT_FIRST_TYPE);

static state_back_call call_of(const trine_call *call) {
    return (state_back_call){
        .call = call, .packed = trine_call_given(call, SSD_BACKWARD_CU_SEQLENS) != NULL, .ruled = false, .ssd = true
    };
}

static const char *refuse_mma(const trine_call *call) {
    const state_back_call c = call_of(call);
    const state_backward_params p = ssd_backward_params_of(call, STATE_MMA_WIDTH);
    return state_back_refuse(&c, &p.shape);
}

static size_t workspace_mma(const trine_call *call) {
    const state_back_call c = call_of(call);
    const state_backward_params p = ssd_backward_params_of(call, STATE_MMA_WIDTH);
    return state_back_workspace(&c, &p);
}

static trine_status launch_mma(const trine_call *call) {
    const state_back_call c = call_of(call);
    const state_backward_params p = ssd_backward_params_of(call, STATE_MMA_WIDTH);
    return state_back_launch(&c, &p,
                             simt_aligned(call, SSD_BACKWARD_C) && simt_aligned(call, SSD_BACKWARD_B) &&
                                 simt_aligned(call, SSD_BACKWARD_X) && simt_aligned(call, SSD_BACKWARD_DY) &&
                                 simt_aligned(call, SSD_BACKWARD_DX) && simt_aligned(call, SSD_BACKWARD_DC) &&
                                 simt_aligned(call, SSD_BACKWARD_DB));
}

static void edges_mma(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_mma_edges(edges, SSD_BACKWARD_DIM_N, SSD_BACKWARD_DIM_P, SSD_BACKWARD_DIM_T);
}

SIMT_KERNELS(ssd_backward) = { { .name = SIMT_NAME "_mma",
                                 .refuse = refuse_mma,
                                 .workspace = workspace_mma,
                                 .launch = launch_mma,
                                 .edges = edges_mma },
                               { .name = SIMT_NAME,
                                 .workspace = ssd_backward_workspace,
                                 .launch = ssd_backward_launch,
                                 .edges = ssd_backward_edges },
                               { 0 } };
