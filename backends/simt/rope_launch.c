/* SPDX-License-Identifier: Apache-2.0 */
/* The launch that rope and rope_backward share. */
#include "rope_launch.h"

#include <string.h>

#include "rope.h"

enum { X, COS, SIN, POSITIONS, Y }; /* as in the specification */
enum { B, S, H, D, P, C };          /* symbols */

/* Are a row's pairs and the elements beyond them whole vectors of `unit`, aligned to 16 bytes? */
static bool wide(const trine_call *call, int64_t unit) {
    return call->dim[C] % unit == 0 && call->dim[D] % unit == 0 && simt_aligned(call, X) && simt_aligned(call, Y) && simt_aligned(call, COS) &&
           simt_aligned(call, SIN);
}

trine_status rope_launch(const trine_call *call, bool interleaved, float sign) {
    const trine_tensor *x = &call->tensor[X], *y = &call->tensor[Y], *positions = &call->tensor[POSITIONS];
    const int64_t c = call->dim[C], d = call->dim[D], vector = ROPE_BYTES / (int64_t)trine_dtype_size(x->dtype);
    rope_params p = {
        .x = x->data,
        .y = y->data,
        .cos = simt_rows_of(call, COS),
        .sin = simt_rows_of(call, SIN),
        .p = call->dim[P],
        .c = c,
        .sign = sign,
        .interleaved = interleaved,
        .wide = wide(call, vector),
    };
    memcpy(p.x_stride, x->stride, sizeof p.x_stride);
    memcpy(p.y_stride, y->stride, sizeof p.y_stride);
    if (simt_present(call, POSITIONS)) {
        p.positions = positions->data;
        p.long_positions = positions->dtype == TRINE_I64;
        memcpy(p.position_stride, positions->stride, sizeof p.position_stride);
    }
    const int64_t unit = p.wide ? vector : 1;
    p.heads = p.wide && vector == 8 && call->dim[H] % ROPE_HEADS == 0 ? ROPE_HEADS : 1;
    p.pair_units = p.wide && interleaved ? 2 * c / unit : c / unit;
    p.row_units = simt_divisor_of(p.pair_units + simt_blocks(d - 2 * c, unit));
    p.groups = simt_divisor_of(call->dim[H] / p.heads);
    p.s = simt_divisor_of(call->dim[S]);
    p.units = p.row_units.by * call->dim[B] * p.s.by * p.groups.by;
    const simt_function function = { .type = { x->dtype, call->tensor[COS].dtype } };
    return simt_launch(call, &function, simt_blocks(p.units, SIMT_THREADS), SIMT_THREADS, &p, sizeof p);
}
