/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy_backward on devices: the host side. */
#include "cross_entropy_launch.h"
#include "spec/places/cross_entropy_backward.h"

enum { WARP = 32 };

/* Logits of a thread whose rows are whole vectors. */
static int64_t whole_items(const trine_call *call) {
    return GRADIENT_BYTES / (int64_t)trine_dtype_size(call->tensor[CROSS_ENTROPY_BACKWARD_LOGITS].dtype);
}

static trine_status launch(const trine_call *call) {
    const trine_cross_entropy_backward_args *args = call->args;
    const bool whole = simt_rows_whole(call, CROSS_ENTROPY_BACKWARD_DIM_V);
    const int64_t items = whole ? whole_items(call) : SIMT_VECTOR;
    cross_entropy_params p = {
        .pieces = simt_divisor_of(simt_blocks(
            call->dim[CROSS_ENTROPY_BACKWARD_DIM_V] > 0 ? call->dim[CROSS_ENTROPY_BACKWARD_DIM_V] : 1, WARP * items)),
        CROSS_ENTROPY_PARAMS(call, args, CROSS_ENTROPY_BACKWARD),
    };
    p.tasks = p.rows * p.pieces.by;
    if (loss_weighted(&p))
        return simt_launch(call, &(simt_function){ .step = "weighted" }, p.rows, SIMT_THREADS, &p, sizeof p);
    const simt_function function = { .step = loss_narrow(&p) ? "narrow" : NULL,
                                     .ragged = !whole,
                                     .type = { call->tensor[CROSS_ENTROPY_BACKWARD_LOGITS].dtype } };
    return simt_launch(call, &function, simt_blocks(p.tasks, SIMT_THREADS / WARP), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, CROSS_ENTROPY_BACKWARD_DIM_V, SIMT_VECTOR);
    trine_kernel_edge(edges, CROSS_ENTROPY_BACKWARD_DIM_V, WARP * SIMT_VECTOR);
    trine_kernel_edge(edges, CROSS_ENTROPY_BACKWARD_DIM_V, WARP * whole_items(call));
}

SIMT_KERNELS(cross_entropy_backward) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
