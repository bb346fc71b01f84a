/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on devices: the host side. */
#include "backends/simt/core/host.h"
#include "softmax.h"
#include "spec/alike.h"
#include "spec/places/softmax_backward.h"

TRINE_ALIKE(SOFTMAX_BACKWARD_TYPE_T, SIMT_FIRST_TYPE);

/* Of 16 bits also rows that fill half of the registers of their group. */
enum { RINGS = 2 };
static const simt_ring_entry rings[RINGS] = {
    { .threads = SIMT_RING_THREADS, .chunks = 4, .least = 16 << 10, .near = 20 << 10 },
    { .threads = SIMT_RING_THREADS, .chunks = 4, .least = 8 << 10, .most = 12 << 10, .near = 20 << 10 },
};

static trine_status launch(const trine_call *call) {
    const trine_softmax_backward_args *args = call->args;
    softmax_backward_params p = {
        .y = simt_rows_of(call, SOFTMAX_BACKWARD_Y),
        .dy = simt_rows_of(call, SOFTMAX_BACKWARD_DY),
        .dx = simt_rows_of(call, SOFTMAX_BACKWARD_DX),
        .rows = call->dim[SOFTMAX_BACKWARD_DIM_G] * call->dim[SOFTMAX_BACKWARD_DIM_S],
        .s = call->dim[SOFTMAX_BACKWARD_DIM_S],
        .n = call->dim[SOFTMAX_BACKWARD_DIM_N],
        .scale = args->scale,
        .causal = args->causal,
        .ahead = args->causal ? (simt_ahead_two){ { { 0 } } } : simt_ahead_of_two(call, SOFTMAX_BACKWARD_Y, SOFTMAX_BACKWARD_DY),
    };
    const bool one_matrix =
        call->dim[SOFTMAX_BACKWARD_DIM_G] == 1 || (p.y.batch == p.s * p.y.row && p.dy.batch == p.s * p.dy.row && p.dx.batch == p.s * p.dx.row);
    const int count = trine_dtype_size(call->type[SOFTMAX_BACKWARD_TYPE_T]) == 2 ? RINGS : RINGS - 1;
    const simt_ring_entry *entry = !p.causal && one_matrix ? simt_ring_of(call, SOFTMAX_BACKWARD_DIM_N, count, rings, &p.ring) : NULL;
    if (entry != NULL) return simt_launch_ring(call, entry, &p.ring, p.rows, p.rows, &p, sizeof p);
    return simt_launch_rows(call, NULL, p.rows, SOFTMAX_BACKWARD_DIM_N, SIMT_TWO_ROWS, &p, sizeof p);
}

SIMT_KERNELS(softmax_backward) = { { .name = SIMT_NAME, .launch = launch }, { 0 } };
