/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce_backward on devices: the host side. */
#include "segments_host.h"
#include "spec/places/segment_reduce_backward.h"

static trine_status launch(const trine_call *call) {
    segments_params p = {
        .x = simt_rows_of(call, SEGMENT_REDUCE_BACKWARD_X),
        .dy = simt_rows_of(call, SEGMENT_REDUCE_BACKWARD_DY),
        .out = simt_rows_of(call, SEGMENT_REDUCE_BACKWARD_DX),
        .offsets = call->tensor[SEGMENT_REDUCE_BACKWARD_OFFSETS].data,
        .p = call->dim[SEGMENT_REDUCE_BACKWARD_DIM_P],
        .e = call->dim[SEGMENT_REDUCE_BACKWARD_DIM_E],
        .n = call->dim[SEGMENT_REDUCE_BACKWARD_DIM_N],
        .kind = ((const trine_segment_reduce_backward_args *)call->args)->kind,
        .wide_offsets = call->tensor[SEGMENT_REDUCE_BACKWARD_OFFSETS].dtype == TRINE_I64,
        .aligned = simt_aligned(call, SEGMENT_REDUCE_BACKWARD_X) && simt_aligned(call, SEGMENT_REDUCE_BACKWARD_DX) &&
                   simt_aligned(call, SEGMENT_REDUCE_BACKWARD_DY),
    };
    const trine_dtype type = call->type[SEGMENT_REDUCE_BACKWARD_TYPE_T];
    const simt_function clear = { .step = "clear", .type = { type } };
    const int64_t cleared = p.n > 0 ? simt_blocks(p.p, SEGMENT_CLEARED) : 0;
    const trine_status status = simt_launch(call, &clear, cleared, SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? segments_launch(call, &p, type) : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    segments_edges(edges, SEGMENT_REDUCE_BACKWARD_DIM_N);
    trine_kernel_edge(edges, SEGMENT_REDUCE_BACKWARD_DIM_P, SEGMENT_CLEARED);
}

SIMT_KERNELS(segment_reduce_backward) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
