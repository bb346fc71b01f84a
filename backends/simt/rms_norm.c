/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm on devices: the host side. */
#include "host.h"
#include "norm.h"

enum { X, RESIDUAL, WEIGHT, Y, RESIDUAL_OUT, RSTD }; /* as in the specification */

static const simt_ring_entry ring = { .chunks = 8, .held = 1, .least = 32 << 10 };

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
    const simt_ring_entry *entry = norm_plain(&p, call->type[2] == call->type[0]) ? simt_ring_of(call, 1, 1, &ring, &p.ring) : NULL;
    if (entry != NULL) return simt_launch_ring(call, entry, &p.ring, p.rows, p.rows, &p, sizeof p);
    return simt_launch_rows(call, p.rows, 1, SIMT_ONE_ROW, &p, sizeof p);
}

SIMT_KERNELS(rms_norm) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
