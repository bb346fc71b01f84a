/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta_backward on the CPU. */
#include "backward.h"
#include "spec/places/gated_delta_backward.h"

#define DIM(name) call->dim[GATED_DELTA_BACKWARD_DIM_##name]
#define GIVEN(name) trine_call_given(call, GATED_DELTA_BACKWARD_##name)

static state_gradient plan_of(const trine_call *call) {
    const trine_gated_delta_backward_args *args = call->args;
    const trine_tensor *cu = GIVEN(CU_SEQLENS);
    state_gradient a = {
        .job = { .call = call,
                 .cu = cu ? cu->data : NULL,
                 .t = DIM(T),
                 .h = DIM(H),
                 .groups = DIM(HK),
                 .d = DIM(D),
                 .e = DIM(E),
                 .count = cu ? DIM(NSEQ) : DIM(B),
                 .q = GIVEN(Q),
                 .k = GIVEN(K),
                 .v = GIVEN(V),
                 .s0 = GIVEN(S0),
                 .g = GIVEN(G),
                 .beta = GIVEN(BETA),
                 .scale = args->scale == 0 ? (float)(1 / sqrt((double)DIM(D))) : args->scale },
        .dout = GIVEN(DOUT),
        .dlast = GIVEN(DLAST),
        .dq = GIVEN(DQ),
        .dk = GIVEN(DK),
        .dv = GIVEN(DV),
        .ds0 = GIVEN(DS0),
        .dg = GIVEN(DG),
        .dbeta = GIVEN(DBETA),
    };
    state_gradient_plan(&a, DIM(B), cu != NULL);
    return a;
}

static size_t workspace(const trine_call *call) {
    const state_gradient a = plan_of(call);
    return state_gradient_bytes(&a);
}

static trine_status launch(const trine_call *call) {
    const state_gradient a = plan_of(call);
    return state_gradient_run(&a);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, GATED_DELTA_BACKWARD_DIM_D, VL);
    trine_kernel_edge(edges, GATED_DELTA_BACKWARD_DIM_E, STATE_WIDTH);
    trine_kernel_edge(edges, GATED_DELTA_BACKWARD_DIM_T, STATE_LEAST_CHUNK);
    trine_kernel_edge(edges, GATED_DELTA_BACKWARD_DIM_T, STATE_LEAST_CHUNK * STATE_LEAST_CHUNK);
}

CPU_KERNELS(gated_delta_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                      { 0 } };
