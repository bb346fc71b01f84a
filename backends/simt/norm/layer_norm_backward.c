/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm_backward on devices: the host side. */
#include "norm_launch.h"

static const norm_backward_tensors tensors = {
    .dy = 0, .h = 1, .weight = 2, .mean = 3, .rstd = 4, .dresidual = 5, .dx = 6, .dh = 7, .dweight = 8, .dbias = 9
}; /* as in the specification */

static norm_backward_params params_of(const trine_call *call) {
    const trine_layer_norm_backward_args *args = call->args;
    return NORM_BACKWARD_PARAMS(args);
}

static size_t workspace(const trine_call *call) { return norm_backward_workspace(call, &tensors, params_of(call)); }

static trine_status launch(const trine_call *call) { return norm_backward_launch(call, &tensors, params_of(call)); }

SIMT_KERNELS(layer_norm_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch }, { 0 } };
