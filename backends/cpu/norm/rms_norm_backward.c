/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on the CPU. */
#include "norm_backward.h"

enum { DY, H, WEIGHT, RSTD, DRESIDUAL, DX, DH, DWEIGHT }; /* as in the specification */

static norm_gradient norm_gradient_of(const trine_call *call) {
    const trine_rms_norm_backward_args *args = call->args;
    return (norm_gradient){ .r = call->dim[0],
                            .n = call->dim[1],
                            .dy = row_tensor(call, DY),
                            .h = row_tensor(call, H),
                            .weight = row_tensor(call, WEIGHT),
                            .rstd = row_tensor(call, RSTD),
                            .dresidual = row_tensor(call, DRESIDUAL),
                            .dx = row_tensor(call, DX),
                            .dh = row_tensor(call, DH),
                            .dweight = row_tensor(call, DWEIGHT),
                            NORM_BACKWARD_PARAMS(args) };
}

CPU_KERNELS(rms_norm_backward) = { { .name = CPU_NAME, .workspace = norm_backward_workspace, .launch = norm_backward_launch }, { 0 } };
