/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on devices: the host side. */
#include "norm_launch.h"

static const norm_backward_tensors tensors = { .dy = RMS_NORM_BACKWARD_DY,
                                               .h = RMS_NORM_BACKWARD_H,
                                               .weight = RMS_NORM_BACKWARD_WEIGHT,
                                               .mean = -1,
                                               .rstd = RMS_NORM_BACKWARD_RSTD,
                                               .dresidual = RMS_NORM_BACKWARD_DRESIDUAL,
                                               .dx = RMS_NORM_BACKWARD_DX,
                                               .dh = RMS_NORM_BACKWARD_DH,
                                               .dweight = RMS_NORM_BACKWARD_DWEIGHT,
                                               .dbias = -1 };

static norm_backward_params params_of(const trine_call *call) {
    const trine_rms_norm_backward_args *args = call->args;
    return NORM_BACKWARD_PARAMS(args);
}

static size_t workspace(const trine_call *call) { return norm_backward_workspace(call, &tensors, params_of(call)); }

static trine_status launch(const trine_call *call) { return norm_backward_launch(call, &tensors, params_of(call)); }

SIMT_KERNELS(rms_norm_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch }, { 0 } };
