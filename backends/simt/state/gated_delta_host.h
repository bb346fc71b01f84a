/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta's parameters and its launch step by step, on all devices. */
#ifndef TRINE_SIMT_GATED_DELTA_HOST_H
#define TRINE_SIMT_GATED_DELTA_HOST_H

#include "gated_delta_shape.h"
#include "spec/places/gated_delta.h"

static inline state_params gated_delta_params_of(const trine_call *call) {
    const trine_gated_delta_args *args = call->args;
    return (state_params){
        .shape = GATED_DELTA_SHAPE(call, GATED_DELTA, args->scale, STATE_WIDTH),
        .y = state_rows_of(trine_call_given(call, GATED_DELTA_O)),
        .last = state_matrices_of(trine_call_given(call, GATED_DELTA_LAST), false),
    };
}

static inline trine_status gated_delta_launch(const trine_call *call) {
    const state_params p = gated_delta_params_of(call);
    return state_forward_launch(call, &p);
}

static inline void gated_delta_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, GATED_DELTA_DIM_D, GATED_DELTA_DIM_E, GATED_DELTA_DIM_T, STATE_WIDTH, STATE_STEPS);
}

#endif
