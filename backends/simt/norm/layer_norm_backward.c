/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on devices: the host side. */
#include "norm_launch.h"

static const norm_backward_tensors tensors = { .dy = LAYER_NORM_BACKWARD_DY,
                                               .h = LAYER_NORM_BACKWARD_H,
                                               .weight = LAYER_NORM_BACKWARD_WEIGHT,
                                               .mean = LAYER_NORM_BACKWARD_MEAN,
                                               .rstd = LAYER_NORM_BACKWARD_RSTD,
                                               .dresidual = LAYER_NORM_BACKWARD_DRESIDUAL,
                                               .dx = LAYER_NORM_BACKWARD_DX,
                                               .dh = LAYER_NORM_BACKWARD_DH,
                                               .dweight = LAYER_NORM_BACKWARD_DWEIGHT,
                                               .dbias = LAYER_NORM_BACKWARD_DBIAS };

static norm_backward_params params_of(const trine_call *call) {
    const trine_layer_norm_backward_args *args = call->args;
    return NORM_BACKWARD_PARAMS(args);
}

static size_t workspace(const trine_call *call) { return norm_backward_workspace(call, &tensors, params_of(call)); }

static trine_status launch(const trine_call *call) { return norm_backward_launch(call, &tensors, params_of(call)); }

SIMT_KERNELS(layer_norm_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch }, { 0 } };
