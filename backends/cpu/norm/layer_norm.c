/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on the CPU. */
enum { CENTERED = 1 };
#include "norm.h"

enum { X, RESIDUAL, WEIGHT, BIAS, Y, RESIDUAL_OUT, MEAN, RSTD }; /* as in the specification */

static norm norm_of(const trine_call *call) {
    const trine_layer_norm_args *args = call->args;
    return (norm){ .r = call->dim[0],
                   .n = call->dim[1],
                   .x = row_tensor(call, X),
                   .residual = row_tensor(call, RESIDUAL),
                   .weight = row_tensor(call, WEIGHT),
                   .bias = row_tensor(call, BIAS),
                   .y = row_tensor(call, Y),
                   .residual_out = row_tensor(call, RESIDUAL_OUT),
                   .mean = row_tensor(call, MEAN),
                   .rstd = row_tensor(call, RSTD),
                   NORM_PARAMS(args) };
}

CPU_KERNELS(layer_norm) = { { .name = CPU_NAME, .workspace = norm_workspace, .launch = norm_launch }, { 0 } };
