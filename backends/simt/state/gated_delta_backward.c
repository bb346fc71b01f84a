/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward on devices: the host side. */
#include "state_host.h"
#include "spec/places/gated_delta_backward.h"

#define DIM(name) call->dim[GATED_DELTA_BACKWARD_DIM_##name]
#define GIVEN(name) trine_call_given(call, GATED_DELTA_BACKWARD_##name)

static state_backward_params params_of(const trine_call *call) {
    const trine_gated_delta_backward_args *args = call->args;
    const trine_tensor *cu = GIVEN(CU_SEQLENS);
    return (state_backward_params){
        .shape = { .cu = cu ? cu->data : NULL,
                   .t = DIM(T),
                   .h = DIM(H),
                   .groups = DIM(HK),
                   .d = DIM(D),
                   .e = DIM(E),
                   .count = cu ? DIM(NSEQ) : DIM(B),
                   .blocks = DIM(E) > 0 ? simt_blocks(DIM(E), STATE_BACK_WIDTH) : 1,
                   .q = state_rows_of(GIVEN(Q)),
                   .k = state_rows_of(GIVEN(K)),
                   .v = state_rows_of(GIVEN(V)),
                   .g = state_rows_of(GIVEN(G)),
                   .beta = state_rows_of(GIVEN(BETA)),
                   .s0 = state_matrices_of(GIVEN(S0), false),
                   .scale = args->scale == 0 ? (float)(1 / sqrt((double)DIM(D))) : args->scale },
        .dout = state_rows_of(GIVEN(DOUT)),
        .dq = state_rows_of(GIVEN(DQ)),
        .dk = state_rows_of(GIVEN(DK)),
        .dv = state_rows_of(GIVEN(DV)),
        .dg = state_rows_of(GIVEN(DG)),
        .dbeta = state_rows_of(GIVEN(DBETA)),
        .dlast = state_matrices_of(GIVEN(DLAST), false),
        .ds0 = state_matrices_of(GIVEN(DS0), false),
    };
}

static size_t workspace(const trine_call *call) {
    state_backward_params p = params_of(call);
    return (size_t)state_backward_plan(&p, DIM(B), GIVEN(CU_SEQLENS) != NULL, NULL) * sizeof(float);
}

static trine_status launch(const trine_call *call) {
    state_backward_params p = params_of(call);
    state_backward_plan(&p, DIM(B), GIVEN(CU_SEQLENS) != NULL, call->workspace);
    return state_backward_launch(call, &p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    state_edges(edges, GATED_DELTA_BACKWARD_DIM_D, GATED_DELTA_BACKWARD_DIM_E, GATED_DELTA_BACKWARD_DIM_T,
                STATE_BACK_WIDTH, STATE_LEAST_CHUNK);
}

SIMT_KERNELS(gated_delta_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                       { 0 } };
