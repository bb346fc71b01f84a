/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward's parameters and its launch step by step, on all devices. */
#ifndef TRINE_SIMT_GATED_DELTA_BACKWARD_HOST_H
#define TRINE_SIMT_GATED_DELTA_BACKWARD_HOST_H

#include "gated_delta_shape.h"
#include "spec/places/gated_delta_backward.h"

#define GIVEN(name) trine_call_given(call, GATED_DELTA_BACKWARD_##name)

static inline state_backward_params gated_delta_backward_params_of(const trine_call *call, int width) {
    const trine_gated_delta_backward_args *args = call->args;
    return (state_backward_params){
        .shape = GATED_DELTA_SHAPE(call, GATED_DELTA_BACKWARD, args->scale, width),
        .dout = state_rows_of(GIVEN(DOUT)),
        .dq = state_rows_of(GIVEN(DQ)),
        .dk = state_rows_of(GIVEN(DK)),
        .dv = state_rows_of(GIVEN(DV)),
        .dg = state_rows_of(GIVEN(DG)),
        .dbeta = state_rows_of(GIVEN(DBETA)),
        .dlast = state_matrices_of(GIVEN(DLAST), false),
        .ds0 = state_matrices_of(GIVEN(DS0), false),
        .rows = call->dim[GATED_DELTA_BACKWARD_DIM_B] * call->dim[GATED_DELTA_BACKWARD_DIM_T],
    };
}

static inline size_t gated_delta_backward_workspace(const trine_call *call) {
    state_backward_params p = gated_delta_backward_params_of(call, STATE_BACK_WIDTH);
    return (size_t)state_backward_plan(&p, GIVEN(CU_SEQLENS) != NULL, NULL) * sizeof(float);
}

#undef GIVEN

static inline trine_status gated_delta_backward_launch(const trine_call *call) {
    state_backward_params p = gated_delta_backward_params_of(call, STATE_BACK_WIDTH);
    state_backward_plan(&p, p.shape.cu != NULL, call->workspace);
    return state_backward_launch(call, &p);
}

static inline void gated_delta_backward_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, GATED_DELTA_BACKWARD_DIM_D, GATED_DELTA_BACKWARD_DIM_E, GATED_DELTA_BACKWARD_DIM_T,
                STATE_BACK_WIDTH, STATE_LEAST_CHUNK);
}

#endif
