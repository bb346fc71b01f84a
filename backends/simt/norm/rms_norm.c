/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices: the host side. */
#include "norm_launch.h"

static const norm_tensors tensors = {
    .x = 0, .residual = 1, .weight = 2, .bias = -1, .y = 3, .residual_out = 4, .mean = -1, .rstd = 5
}; /* as in the specification */

static trine_status launch(const trine_call *call) {
    const trine_rms_norm_args *args = call->args;
    return norm_launch(call, &tensors, NORM_PARAMS(args));
}

SIMT_KERNELS(rms_norm) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
