/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on the CPU. */
#include "norm_backward.h"

static norm_gradient arguments(const trine_call *call) {
    const trine_rms_norm_backward_args *args = call->args;
    return (norm_gradient){
        .dy = row_tensor(call, 0),
        .h = row_tensor(call, 1),
        .weight = row_tensor(call, 2),
        .rstd = row_tensor(call, 3),
        .dresidual = row_tensor(call, 4),
        .dx = row_tensor(call, 5),
        .dh = row_tensor(call, 6),
        .dweight = row_tensor(call, 7),
        .weight_offset = args->weight_offset,
        .p = args->dropout,
        .dropout = dropout_of(args->dropout, args->seed, args->offset),
    };
}

static size_t workspace(const trine_call *call) {
    const norm_gradient a = arguments(call);
    return norm_workspace(call, &a);
}

static trine_status launch(const trine_call *call) {
    norm_gradient a = arguments(call);
    norm_rows(call, &a);
    return TRINE_OK;
}

CPU_KERNELS(rms_norm_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch }, { 0 } };
