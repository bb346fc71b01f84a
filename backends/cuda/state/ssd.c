/* SPDX-License-Identifier: Apache-2.0 */
/* ssd on CUDA devices: the host side. */
#include "backends/simt/state/ssd_host.h"
#include "spec/alike.h"
#include "state_mma_host.h"

#define GIVEN(name) trine_call_given(call, SSD_##name)

/* Entries are named by it. */
TRINE_ALIKE(SSD_TYPE_T, SIMT_FIRST_TYPE);

static const char *refuse_mma(const trine_call *call) {
    const state_params p = ssd_params_of(call);
    return state_mma_refuse(call, &p, GIVEN(CU_SEQLENS) != NULL);
}

static size_t workspace_mma(const trine_call *call) {
    const state_params p = ssd_params_of(call);
    return state_mma_workspace(call, &p, GIVEN(CU_SEQLENS) != NULL, false);
}

static trine_status launch_mma(const trine_call *call) {
    const state_params p = ssd_params_of(call);
    const bool wide = simt_aligned(call, SSD_X) && simt_aligned(call, SSD_B) && simt_aligned(call, SSD_C) &&
                      simt_aligned(call, SSD_Y);
    return state_mma_launch(call, &p, wide, false);
}

static void edges_mma(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_mma_edges(edges, SSD_DIM_N, SSD_DIM_P, SSD_DIM_T);
}

SIMT_KERNELS(ssd) = { { .name = SIMT_NAME "_mma",
                        .refuse = refuse_mma,
                        .workspace = workspace_mma,
                        .launch = launch_mma,
                        .edges = edges_mma },
                      { .name = SIMT_NAME, .launch = ssd_launch, .edges = ssd_edges },
                      { 0 } };
