/* SPDX-License-Identifier: Apache-2.0 */
/* ssd_backward's parameters and its launch step by step, on all devices. */
#ifndef TRINE_SIMT_SSD_BACKWARD_HOST_H
#define TRINE_SIMT_SSD_BACKWARD_HOST_H

#include "ssd_shape.h"
#include "spec/places/ssd_backward.h"

#define GIVEN(name) trine_call_given(call, SSD_BACKWARD_##name)

static inline state_backward_params ssd_backward_params_of(const trine_call *call, int width) {
    const trine_ssd_backward_args *args = call->args;
    return (state_backward_params){
        .shape = SSD_SHAPE(call, SSD_BACKWARD, args->softplus, width),
        .dout = state_rows_of(GIVEN(DY)),
        .dq = state_rows_of(GIVEN(DC)),
        .dk = state_rows_of(GIVEN(DB)),
        .dv = state_rows_of(GIVEN(DX)),
        .ddt = state_rows_of(GIVEN(DDT)),
        .dlast = state_matrices_of(GIVEN(DLAST), true),
        .ds0 = state_matrices_of(GIVEN(DS0), true),
        .da = state_numbers_of(GIVEN(DA)),
        .dpast = state_numbers_of(GIVEN(DD)),
        .ddt_bias = state_numbers_of(GIVEN(DDT_BIAS)),
        .rows = call->dim[SSD_BACKWARD_DIM_B] * call->dim[SSD_BACKWARD_DIM_T],
    };
}

static inline size_t ssd_backward_workspace(const trine_call *call) {
    state_backward_params p = ssd_backward_params_of(call, STATE_BACK_WIDTH);
    const int64_t floats = state_backward_plan(&p, GIVEN(CU_SEQLENS) != NULL, NULL);
    return (size_t)(floats + state_backward_terms(&p)) * sizeof(float);
}

#undef GIVEN

static inline trine_status ssd_backward_launch(const trine_call *call) {
    state_backward_params p = ssd_backward_params_of(call, STATE_BACK_WIDTH);
    state_backward_plan(&p, p.shape.cu != NULL, call->workspace);
    return state_backward_launch(call, &p);
}

static inline void ssd_backward_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, SSD_BACKWARD_DIM_N, SSD_BACKWARD_DIM_P, SSD_BACKWARD_DIM_T, STATE_BACK_WIDTH, STATE_LEAST_CHUNK);
}

#endif
