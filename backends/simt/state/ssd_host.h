/* SPDX-License-Identifier: Apache-2.0 */
/* ssd's parameters and its launch step by step, on all devices. */
#ifndef TRINE_SIMT_SSD_HOST_H
#define TRINE_SIMT_SSD_HOST_H

#include "state_host.h"
#include "spec/places/ssd.h"

#define DIM(name) call->dim[SSD_DIM_##name]
#define GIVEN(name) trine_call_given(call, SSD_##name)

static inline state_params ssd_params_of(const trine_call *call) {
    const trine_ssd_args *args = call->args;
    const trine_tensor *cu = GIVEN(CU_SEQLENS);
    return (state_params){
        .shape = { .cu = cu ? cu->data : NULL,
                   .t = DIM(T),
                   .h = DIM(H),
                   .groups = DIM(G),
                   .d = DIM(N),
                   .e = DIM(P),
                   .count = cu ? DIM(NSEQ) : DIM(B),
                   .blocks = simt_blocks(DIM(P), STATE_WIDTH),
                   .q = state_rows_of(GIVEN(C)),
                   .k = state_rows_of(GIVEN(B)),
                   .v = state_rows_of(GIVEN(X)),
                   .dt = state_rows_of(GIVEN(DT)),
                   .a = state_numbers_of(GIVEN(A)),
                   .dt_bias = state_numbers_of(GIVEN(DT_BIAS)),
                   .past = state_numbers_of(GIVEN(D)),
                   .s0 = state_matrices_of(GIVEN(S0), true),
                   .scale = 1,
                   .softplus = args->softplus },
        .y = state_rows_of(GIVEN(Y)),
        .last = state_matrices_of(GIVEN(LAST), true),
    };
}

#undef DIM
#undef GIVEN

static inline trine_status ssd_launch(const trine_call *call) {
    const state_params p = ssd_params_of(call);
    return state_forward_launch(call, &p);
}

static inline void ssd_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, SSD_DIM_N, SSD_DIM_P, SSD_DIM_T, STATE_WIDTH, STATE_STEPS);
}

#endif
