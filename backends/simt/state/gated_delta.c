/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta on devices: the host side. */
#include "state_host.h"
#include "spec/places/gated_delta.h"

#define DIM(name) call->dim[GATED_DELTA_DIM_##name]
#define GIVEN(name) trine_call_given(call, GATED_DELTA_##name)

static trine_status launch(const trine_call *call) {
    const trine_gated_delta_args *args = call->args;
    const trine_tensor *cu = GIVEN(CU_SEQLENS);
    const state_params p = {
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
    return state_forward_launch(call, &p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, GATED_DELTA_DIM_D, GATED_DELTA_DIM_E, GATED_DELTA_DIM_T, STATE_WIDTH, STATE_STEPS);
}

SIMT_KERNELS(gated_delta) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
