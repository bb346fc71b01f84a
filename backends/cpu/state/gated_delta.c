/* SPDX-License-Identifier: Apache-2.0 */
/* gated_delta on the CPU. */
#include "forward.h"
#include "spec/places/gated_delta.h"

static trine_status launch(const trine_call *call) {
    const trine_gated_delta_args *args = call->args;
    const trine_tensor *cu = trine_call_given(call, GATED_DELTA_CU_SEQLENS);
    const int64_t *dim = call->dim;
    const state_job s = {
        .call = call,
        .cu = cu ? cu->data : NULL,
        .t = dim[GATED_DELTA_DIM_T],
        .h = dim[GATED_DELTA_DIM_H],
        .groups = dim[GATED_DELTA_DIM_HK],
        .d = dim[GATED_DELTA_DIM_D],
        .e = dim[GATED_DELTA_DIM_E],
        .count = cu ? dim[GATED_DELTA_DIM_NSEQ] : dim[GATED_DELTA_DIM_B],
        .q = &call->tensor[GATED_DELTA_Q],
        .k = &call->tensor[GATED_DELTA_K],
        .v = &call->tensor[GATED_DELTA_V],
        .y = &call->tensor[GATED_DELTA_O],
        .s0 = trine_call_given(call, GATED_DELTA_S0),
        .last = trine_call_given(call, GATED_DELTA_LAST),
        .g = trine_call_given(call, GATED_DELTA_G),
        .beta = trine_call_given(call, GATED_DELTA_BETA),
        .scale = args->scale == 0 ? (float)(1 / sqrt((double)dim[GATED_DELTA_DIM_D])) : args->scale,
    };
    return state_run(&s);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, GATED_DELTA_DIM_D, VL);
    trine_kernel_edge(edges, GATED_DELTA_DIM_E, VL);
    trine_kernel_edge(edges, GATED_DELTA_DIM_E, STATE_WIDTH);
    trine_kernel_edge(edges, GATED_DELTA_DIM_T, 1);
}

CPU_KERNELS(gated_delta) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
