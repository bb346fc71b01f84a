/* SPDX-License-Identifier: Apache-2.0 */
/* The launch that rope and rope_backward share. */
#include "rope_launch.h"

#include <string.h>

#include "rope.h"

enum { X, COS, SIN, POSITIONS, Y }; /* as in the specification */
enum { B, S, H, D, P, C };          /* symbols */

/* Are a row's vectors of 8 pairs, and of 8 elements beyond them, all aligned to 16 bytes, or to the vector? */
static bool wide(const trine_call *call, bool interleaved) {
    const int64_t c = call->dim[C], size = (int64_t)trine_dtype_size(call->tensor[X].dtype);
    return simt_aligned(call, X) && simt_aligned(call, Y) && simt_aligned(call, COS) && simt_aligned(call, SIN) && (interleaved ? 2 : 1) * c * size % 16 == 0;
}

trine_status rope_launch(const trine_call *call, bool interleaved, float sign) {
    const trine_tensor *x = &call->tensor[X], *y = &call->tensor[Y], *positions = &call->tensor[POSITIONS];
    const int64_t c = call->dim[C], d = call->dim[D];
    rope_params p = {
        .x = x->data,
        .y = y->data,
        .cos = simt_rows_of(call, COS),
        .sin = simt_rows_of(call, SIN),
        .s = call->dim[S],
        .h = call->dim[H],
        .d = d,
        .p = call->dim[P],
        .c = c,
        .sign = sign,
        .interleaved = interleaved,
        .wide = wide(call, interleaved),
    };
    memcpy(p.x_stride, x->stride, sizeof p.x_stride);
    memcpy(p.y_stride, y->stride, sizeof p.y_stride);
    if (simt_present(call, POSITIONS)) {
        p.positions = positions->data;
        p.long_positions = positions->dtype == TRINE_I64;
        memcpy(p.position_stride, positions->stride, sizeof p.position_stride);
    }
    const int64_t unit = p.wide ? 8 : 1;
    p.pair_units = simt_blocks(c, unit);
    p.row_units = p.pair_units + simt_blocks(d - 2 * c, unit);
    p.units = p.row_units * call->dim[B] * p.s * p.h;
    const simt_function function = { .type = { x->dtype, call->tensor[COS].dtype } };
    return simt_launch(call, &function, simt_blocks(p.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}
