/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm on devices: the host side. */
#include "host.h"
#include "norm.h"

enum { X, RESIDUAL, WEIGHT, BIAS, Y, RESIDUAL_OUT, MEAN, RSTD }; /* as in the specification */

static const simt_ring_entry rings[] = { { .chunks = 4, .held = 2, .least = 24 << 10, .most = 32 << 10 }, { .chunks = 8, .held = 1, .least = 32 << 10 } };

static trine_status launch(const trine_call *call) {
    const trine_layer_norm_args *args = call->args;
    norm_params p = {
        .x = simt_rows_of(call, X),
        .residual = simt_rows_of(call, RESIDUAL),
        .weight = simt_rows_of(call, WEIGHT),
        .bias = simt_rows_of(call, BIAS),
        .y = simt_rows_of(call, Y),
        .residual_out = simt_rows_of(call, RESIDUAL_OUT),
        .mean = simt_rows_of(call, MEAN),
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
    const simt_ring_entry *ring = norm_plain(&p, call->type[2] == call->type[0]) ? simt_ring_of(call, 1, 2, rings, &p.ring) : NULL;
    if (ring != NULL) return simt_launch_ring(call, ring, &p.ring, p.rows, p.rows, &p, sizeof p);
    return simt_launch_rows(call, p.rows, 1, SIMT_ONE_ROW, &p, sizeof p);
}

SIMT_KERNELS(layer_norm) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
