/* SPDX-License-Identifier: Apache-2.0 */
/* ssd on the CPU. */
#include "forward.h"
#include "spec/places/ssd.h"

static trine_status launch(const trine_call *call) {
    const trine_ssd_args *args = call->args;
    const trine_tensor *cu = trine_call_given(call, SSD_CU_SEQLENS);
    const int64_t *dim = call->dim;
    const state_job s = {
        .call = call,
        .cu = cu ? cu->data : NULL,
        .t = dim[SSD_DIM_T],
        .h = dim[SSD_DIM_H],
        .groups = dim[SSD_DIM_G],
        .d = dim[SSD_DIM_N],
        .e = dim[SSD_DIM_P],
        .count = cu ? dim[SSD_DIM_NSEQ] : dim[SSD_DIM_B],
        .q = &call->tensor[SSD_C],
        .k = &call->tensor[SSD_B],
        .v = &call->tensor[SSD_X],
        .y = &call->tensor[SSD_Y],
        .s0 = trine_call_given(call, SSD_S0),
        .last = trine_call_given(call, SSD_LAST),
        .dt = &call->tensor[SSD_DT],
        .a = &call->tensor[SSD_A],
        .dt_bias = trine_call_given(call, SSD_DT_BIAS),
        .past = trine_call_given(call, SSD_D),
        .softplus = args->softplus,
        .scale = 1,
    };
    return state_run(&s);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SSD_DIM_N, VL);
    trine_kernel_edge(edges, SSD_DIM_P, VL);
    trine_kernel_edge(edges, SSD_DIM_P, STATE_WIDTH);
    trine_kernel_edge(edges, SSD_DIM_T, 1);
}

CPU_KERNELS(ssd) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
