/* SPDX-License-Identifier: Apache-2.0 */
/* ssd's parameters and its launch step by step, on all devices. */
#ifndef TRINE_SIMT_SSD_HOST_H
#define TRINE_SIMT_SSD_HOST_H

#include "ssd_shape.h"
#include "spec/places/ssd.h"

static inline state_params ssd_params_of(const trine_call *call) {
    const trine_ssd_args *args = call->args;
    return (state_params){
        .shape = SSD_SHAPE(call, SSD, args->softplus, STATE_WIDTH),
        .y = state_rows_of(trine_call_given(call, SSD_Y)),
        .last = state_matrices_of(trine_call_given(call, SSD_LAST), true),
    };
}

static inline trine_status ssd_launch(const trine_call *call) {
    const state_params p = ssd_params_of(call);
    return state_forward_launch(call, &p);
}

static inline void ssd_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, SSD_DIM_N, SSD_DIM_P, SSD_DIM_T, STATE_WIDTH, STATE_STEPS);
}

#endif
