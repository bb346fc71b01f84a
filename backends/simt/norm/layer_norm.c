/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices: the host side. */
#include "norm_launch.h"

static const norm_tensors tensors = { .x = LAYER_NORM_X,
                                      .residual = LAYER_NORM_RESIDUAL,
                                      .weight = LAYER_NORM_WEIGHT,
                                      .bias = LAYER_NORM_BIAS,
                                      .y = LAYER_NORM_Y,
                                      .residual_out = LAYER_NORM_RESIDUAL_OUT,
                                      .mean = LAYER_NORM_MEAN,
                                      .rstd = LAYER_NORM_RSTD };

static trine_status launch(const trine_call *call) {
    const trine_layer_norm_args *args = call->args;
    return norm_launch(call, &tensors, NORM_PARAMS(args));
}

SIMT_KERNELS(layer_norm) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
