/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices: the host side. */
#include "host.h"
#include "norm.h"

enum { X, RESIDUAL, WEIGHT, Y, RESIDUAL_OUT, RSTD }; /* as in the specification */

static trine_status launch(const trine_call *call) {
    const trine_rms_norm_args *args = call->args;
    norm_params p = {
        .x = simt_rows_of(call, X),
        .residual = simt_rows_of(call, RESIDUAL),
        .weight = simt_rows_of(call, WEIGHT),
        .y = simt_rows_of(call, Y),
        .residual_out = simt_rows_of(call, RESIDUAL_OUT),
        .rstd = simt_rows_of(call, RSTD),
        .rows = call->dim[0],
        .n = call->dim[1],
        .eps = args->eps,
        .weight_offset = args->weight_offset,
        .round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT,
        .f32_residual = call->type[1] == TRINE_F32,
        .f32_weight = call->type[2] == TRINE_F32,
        .dropout = simt_dropout_of(args->dropout, args->seed, args->offset),
    };
    if (norm_plain(&p, call->type[2] == call->type[0]) && simt_ring_of(call, p.rows, 1, &p.ring)) return simt_launch_ring(call, &p.ring, &p, sizeof p);
    return simt_launch_rows(call, p.rows, 1, SIMT_ONE_ROW, &p, sizeof p);
}

SIMT_KERNELS(rms_norm) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
