/* SPDX-License-Identifier: Apache-2.0 */
/* The launch that rope and rope_backward share. */
#include "rope_launch.h"

#include <string.h>

#include "rope.h"
#include "spec/attention/rope_places.h"

/* Are a row's pairs and the elements beyond them whole vectors, aligned to 16 bytes? */
static bool wide(const trine_call *call) {
    return call->dim[ROPE_DIM_C] % ROPE_VECTOR == 0 && call->dim[ROPE_DIM_D] % ROPE_VECTOR == 0 &&
           simt_aligned(call, ROPE_X) && simt_aligned(call, ROPE_Y) && simt_aligned(call, ROPE_COS) &&
           simt_aligned(call, ROPE_SIN);
}

/* Heads of a unit, which share its factors: those of f32 lose by that (H200). */
enum { HEADS = 4, HEADS_PARTIAL = 2 };
static int heads_of(const trine_call *call, bool partial) {
    const int heads = partial ? HEADS_PARTIAL : HEADS;
    return call->tensor[ROPE_X].dtype == TRINE_F32 || call->dim[ROPE_DIM_H] % heads != 0 ? 1 : heads;
}

trine_status rope_launch(const trine_call *call, bool interleaved, float sign) {
    const trine_tensor *x = &call->tensor[ROPE_X], *y = &call->tensor[ROPE_Y],
                       *positions = &call->tensor[ROPE_POSITIONS];
    const int64_t c = call->dim[ROPE_DIM_C], d = call->dim[ROPE_DIM_D];
    const bool vectors = wide(call), partial = vectors && d > 2 * c;
    const int64_t unit = vectors ? ROPE_VECTOR : 1, rest = simt_blocks(d - 2 * c, vectors ? 2 * ROPE_VECTOR : 1);
    const int heads = vectors ? heads_of(call, partial) : 1;
    rope_params p = {
        .x = x->data,
        .y = y->data,
        .cos = simt_rows_of(call, ROPE_COS),
        .sin = simt_rows_of(call, ROPE_SIN),
        .p = call->dim[ROPE_DIM_P],
        .c = c,
        .d = d,
        .pair_units = c / unit,
        .gap = rest * unit,
        .row_units = simt_divisor_of(c / unit + rest),
        .groups = simt_divisor_of(call->dim[ROPE_DIM_H] / heads),
        .s = simt_divisor_of(call->dim[ROPE_DIM_S]),
        .sign = sign,
        .interleaved = interleaved,
        .ahead = simt_ahead_of(call, ROPE_X),
    };
    memcpy(p.x_stride, x->stride, sizeof p.x_stride);
    memcpy(p.y_stride, y->stride, sizeof p.y_stride);
    if (simt_present(call, ROPE_POSITIONS)) {
        p.positions = positions->data;
        p.long_positions = positions->dtype == TRINE_I64;
        memcpy(p.position_stride, positions->stride, sizeof p.position_stride);
    }
    p.units = p.row_units.by * call->dim[ROPE_DIM_B] * p.s.by * p.groups.by;
    const char *const step = vectors ? (partial ? "partial" : NULL) : "single";
    const simt_function function = { .step = step,
                                     .type = { x->dtype, call->tensor[ROPE_COS].dtype },
                                     .variant = vectors ? heads : 0 };
    return simt_launch(call, &function, simt_blocks(p.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}

void rope_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, ROPE_DIM_C, ROPE_VECTOR);
    trine_kernel_edge(edges, ROPE_DIM_H, HEADS_PARTIAL);
    trine_kernel_edge(edges, ROPE_DIM_H, HEADS);
    trine_kernel_edge(edges, ROPE_DIM_S, SIMT_THREADS);
}
