/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta on CUDA devices: the host side. */
#include "backends/simt/state/gated_delta_host.h"
#include "spec/alike.h"
#include "state_mma_host.h"

#define GIVEN(name) trine_call_given(call, GATED_DELTA_##name)

/* Entries are named by it. */
TRINE_ALIKE(GATED_DELTA_TYPE_T, SIMT_FIRST_TYPE);

static const char *refuse_mma(const trine_call *call) {
    const state_params p = gated_delta_params_of(call);
    return state_mma_refuse(call, &p, GIVEN(CU_SEQLENS) != NULL);
}

static size_t workspace_mma(const trine_call *call) {
    const state_params p = gated_delta_params_of(call);
    return state_mma_workspace(call, &p, GIVEN(CU_SEQLENS) != NULL, GIVEN(BETA) != NULL);
}

static trine_status launch_mma(const trine_call *call) {
    const state_params p = gated_delta_params_of(call);
    const bool wide = simt_aligned(call, GATED_DELTA_Q) && simt_aligned(call, GATED_DELTA_K) &&
                      simt_aligned(call, GATED_DELTA_V) && simt_aligned(call, GATED_DELTA_O);
    return state_mma_launch(call, &p, wide, GIVEN(BETA) != NULL);
}

static void edges_mma(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_mma_edges(edges, GATED_DELTA_DIM_D, GATED_DELTA_DIM_E, GATED_DELTA_DIM_T);
}

SIMT_KERNELS(gated_delta) = { { .name = SIMT_NAME "_mma",
                                .refuse = refuse_mma,
                                .workspace = workspace_mma,
                                .launch = launch_mma,
                                .edges = edges_mma },
                              { .name = SIMT_NAME, .launch = gated_delta_launch, .edges = gated_delta_edges },
                              { 0 } };
