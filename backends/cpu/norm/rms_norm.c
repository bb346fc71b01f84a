/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on the CPU. */
enum { CENTERED = 0 };
#include "norm.h"
#include "norm_same.h"
#include "spec/places/rms_norm.h"

static norm norm_of(const trine_call *call) {
    const trine_rms_norm_args *args = call->args;
    return (norm){ .r = call->dim[RMS_NORM_DIM_R],
                   .n = call->dim[RMS_NORM_DIM_N],
                   .x = row_tensor(call, RMS_NORM_X),
                   .residual = row_tensor(call, RMS_NORM_RESIDUAL),
                   .philox = row_tensor(call, RMS_NORM_PHILOX),
                   .weight = row_tensor(call, RMS_NORM_WEIGHT),
                   .y = row_tensor(call, RMS_NORM_Y),
                   .residual_out = row_tensor(call, RMS_NORM_RESIDUAL_OUT),
                   .rstd = row_tensor(call, RMS_NORM_RSTD),
                   NORM_PARAMS(args) };
}

CPU_KERNELS(rms_norm) = {
    { .name = CPU_NAME, .workspace = norm_workspace, .launch = norm_launch, .edges = norm_edges },
    { .name = SAME_NAME, .refuse = norm_same_refuse, .launch = norm_same_launch, .edges = norm_edges, .same = true },
    { 0 }
};
