/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward on devices: the host side. */
#include "norm_backward.h"

enum { DY, H, WEIGHT, RSTD, DRESIDUAL, DX, DH, DWEIGHT }; /* as in the specification */

static norm_backward_params params_of(const trine_call *call) {
    const trine_rms_norm_backward_args *args = call->args;
    return (norm_backward_params){
        .dy = simt_rows_of(call, DY),
        .h = simt_rows_of(call, H),
        .weight = simt_rows_of(call, WEIGHT),
        .rstd = simt_rows_of(call, RSTD),
        .dresidual = simt_rows_of(call, DRESIDUAL),
        .dx = simt_rows_of(call, DX),
        .dh = simt_rows_of(call, DH),
        .rows = call->dim[0],
        .n = call->dim[1],
        .weight_offset = args->weight_offset,
        .f32_residual = call->type[1] == TRINE_F32,
        .f32_weight = call->type[2] == TRINE_F32,
        .dropout = simt_dropout_of(args->dropout, args->seed, args->offset),
    };
}

static size_t workspace(const trine_call *call) { return norm_backward_workspace(call, params_of(call), DWEIGHT, -1); }

static trine_status launch(const trine_call *call) {
    norm_backward_params p = params_of(call);
    return norm_backward_launch(call, &p, DWEIGHT, -1);
}

SIMT_KERNELS(rms_norm_backward) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch }, { 0 } };
