/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta's parameters and its launch step by step, on all devices. */
#ifndef TRINE_SIMT_GATED_DELTA_HOST_H
#define TRINE_SIMT_GATED_DELTA_HOST_H

#include "state_host.h"
#include "spec/places/gated_delta.h"

#define DIM(name) call->dim[GATED_DELTA_DIM_##name]
#define GIVEN(name) trine_call_given(call, GATED_DELTA_##name)

static inline state_params gated_delta_params_of(const trine_call *call) {
    const trine_gated_delta_args *args = call->args;
    const trine_tensor *cu = GIVEN(CU_SEQLENS);
    return (state_params){
        .shape = { .cu = cu ? cu->data : NULL,
                   .t = DIM(T),
                   .h = DIM(H),
                   .groups = DIM(HK),
                   .d = DIM(D),
                   .e = DIM(E),
                   .count = cu ? DIM(NSEQ) : DIM(B),
                   .blocks = simt_blocks(DIM(E), STATE_WIDTH),
                   .q = state_rows_of(GIVEN(Q)),
                   .k = state_rows_of(GIVEN(K)),
                   .v = state_rows_of(GIVEN(V)),
                   .g = state_rows_of(GIVEN(G)),
                   .beta = state_rows_of(GIVEN(BETA)),
                   .s0 = state_matrices_of(GIVEN(S0), false),
                   .scale = args->scale == 0 ? (float)(1 / sqrt((double)DIM(D))) : args->scale },
        .y = state_rows_of(GIVEN(O)),
        .last = state_matrices_of(GIVEN(LAST), false),
    };
}

#undef DIM
#undef GIVEN

static inline trine_status gated_delta_launch(const trine_call *call) {
    const state_params p = gated_delta_params_of(call);
    return state_forward_launch(call, &p);
}

static inline void gated_delta_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, GATED_DELTA_DIM_D, GATED_DELTA_DIM_E, GATED_DELTA_DIM_T, STATE_WIDTH, STATE_STEPS);
}

#endif
