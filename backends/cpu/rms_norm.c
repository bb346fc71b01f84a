/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on the CPU. */
enum { CENTERED = 0 };
#include "norm.h"

static norm norm_of(const trine_call *call) {
    const trine_rms_norm_args *args = call->args;
    return (norm){
        .r = call->dim[0],
        .n = call->dim[1],
        .x = row_tensor(call, 0),
        .residual = row_tensor(call, 1),
        .weight = row_tensor(call, 2),
        .y = row_tensor(call, 3),
        .residual_out = row_tensor(call, 4),
        .rstd = row_tensor(call, 5),
        .eps = args->eps,
        .weight_offset = args->weight_offset,
        .p = args->dropout,
        .round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT,
        .seed = args->seed,
        .offset = args->offset,
    };
}

CPU_KERNELS(rms_norm) = { { .name = CPU_NAME, .workspace = norm_workspace, .launch = norm_launch }, { 0 } };
