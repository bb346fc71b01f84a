/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on the CPU. */
enum { CENTERED = 1 };
#include "norm.h"
#include "norm_same.h"
#include "spec/places/layer_norm.h"

static norm norm_of(const trine_call *call) {
    const trine_layer_norm_args *args = call->args;
    return (norm){ .r = call->dim[LAYER_NORM_DIM_R],
                   .n = call->dim[LAYER_NORM_DIM_N],
                   .x = row_tensor(call, LAYER_NORM_X),
                   .residual = row_tensor(call, LAYER_NORM_RESIDUAL),
                   .philox = row_tensor(call, LAYER_NORM_PHILOX),
                   .weight = row_tensor(call, LAYER_NORM_WEIGHT),
                   .bias = row_tensor(call, LAYER_NORM_BIAS),
                   .y = row_tensor(call, LAYER_NORM_Y),
                   .residual_out = row_tensor(call, LAYER_NORM_RESIDUAL_OUT),
                   .mean = row_tensor(call, LAYER_NORM_MEAN),
                   .rstd = row_tensor(call, LAYER_NORM_RSTD),
                   NORM_PARAMS(args) };
}

CPU_KERNELS(layer_norm) = {
    { .name = CPU_NAME, .workspace = norm_workspace, .launch = norm_launch, .edges = norm_edges },
    { .name = SAME_NAME, .refuse = norm_same_refuse, .launch = norm_same_launch, .edges = norm_edges, .same = true },
    { 0 }
};
