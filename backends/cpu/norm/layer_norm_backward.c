/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on the CPU. */
#include "norm_backward.h"
#include "spec/places/layer_norm_backward.h"

static norm_gradient norm_gradient_of(const trine_call *call) {
    const trine_layer_norm_backward_args *args = call->args;
    return (norm_gradient){ .r = call->dim[LAYER_NORM_BACKWARD_DIM_R],
                            .n = call->dim[LAYER_NORM_BACKWARD_DIM_N],
                            .dy = row_tensor(call, LAYER_NORM_BACKWARD_DY),
                            .h = row_tensor(call, LAYER_NORM_BACKWARD_H),
                            .weight = row_tensor(call, LAYER_NORM_BACKWARD_WEIGHT),
                            .mean = row_tensor(call, LAYER_NORM_BACKWARD_MEAN),
                            .rstd = row_tensor(call, LAYER_NORM_BACKWARD_RSTD),
                            .dresidual = row_tensor(call, LAYER_NORM_BACKWARD_DRESIDUAL),
                            .philox = row_tensor(call, LAYER_NORM_BACKWARD_PHILOX),
                            .dx = row_tensor(call, LAYER_NORM_BACKWARD_DX),
                            .dh = row_tensor(call, LAYER_NORM_BACKWARD_DH),
                            .dweight = row_tensor(call, LAYER_NORM_BACKWARD_DWEIGHT),
                            .dbias = row_tensor(call, LAYER_NORM_BACKWARD_DBIAS),
                            NORM_BACKWARD_PARAMS(args) };
}

CPU_KERNELS(layer_norm_backward) = { { .name = CPU_NAME,
                                       .workspace = norm_backward_workspace,
                                       .launch = norm_backward_launch,
                                       .edges = norm_backward_edges },
                                     { 0 } };
