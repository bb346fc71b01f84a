/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on the CPU. */
enum { CENTERED = 0 };
#include "norm.h"

enum { X, RESIDUAL, WEIGHT, Y, RESIDUAL_OUT, RSTD }; /* as in the specification */

static norm norm_of(const trine_call *call) {
    const trine_rms_norm_args *args = call->args;
    return (norm){ .r = call->dim[0],
                   .n = call->dim[1],
                   .x = row_tensor(call, X),
                   .residual = row_tensor(call, RESIDUAL),
                   .weight = row_tensor(call, WEIGHT),
                   .y = row_tensor(call, Y),
                   .residual_out = row_tensor(call, RESIDUAL_OUT),
                   .rstd = row_tensor(call, RSTD),
                   NORM_PARAMS(args) };
}

CPU_KERNELS(rms_norm) = { { .name = CPU_NAME, .workspace = norm_workspace, .launch = norm_launch }, { 0 } };
