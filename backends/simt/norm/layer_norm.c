/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices: the host side. */
#include "norm_launch.h"

static const norm_tensors tensors = {
    .x = 0, .residual = 1, .weight = 2, .bias = 3, .y = 4, .residual_out = 5, .mean = 6, .rstd = 7
}; /* as in the specification */

static trine_status launch(const trine_call *call) {
    const trine_layer_norm_args *args = call->args;
    return norm_launch(call, &tensors, NORM_PARAMS(args));
}

SIMT_KERNELS(layer_norm) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
