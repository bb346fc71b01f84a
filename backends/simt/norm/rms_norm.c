/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices: the host side. */
#include "norm_launch.h"

static const norm_tensors tensors = { .x = RMS_NORM_X,
                                      .residual = RMS_NORM_RESIDUAL,
                                      .weight = RMS_NORM_WEIGHT,
                                      .bias = -1,
                                      .y = RMS_NORM_Y,
                                      .residual_out = RMS_NORM_RESIDUAL_OUT,
                                      .mean = -1,
                                      .rstd = RMS_NORM_RSTD };

static trine_status launch(const trine_call *call) {
    const trine_rms_norm_args *args = call->args;
    return norm_launch(call, &tensors, NORM_PARAMS(args));
}

SIMT_KERNELS(rms_norm) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
