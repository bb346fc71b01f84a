/* SPDX-License-Identifier: Apache-2.0 */
/* segment_reduce on devices: the host side. */
#include "segments_host.h"
#include "spec/places/segment_reduce.h"

static trine_status launch(const trine_call *call) {
    segments_params p = {
        .x = simt_rows_of(call, SEGMENT_REDUCE_X),
        .out = simt_rows_of(call, SEGMENT_REDUCE_Y),
        .offsets = call->tensor[SEGMENT_REDUCE_OFFSETS].data,
        .p = call->dim[SEGMENT_REDUCE_DIM_P],
        .e = call->dim[SEGMENT_REDUCE_DIM_E],
        .n = call->dim[SEGMENT_REDUCE_DIM_N],
        .kind = ((const trine_segment_reduce_args *)call->args)->kind,
        .wide_offsets = call->tensor[SEGMENT_REDUCE_OFFSETS].dtype == TRINE_I64,
        .aligned = simt_aligned(call, SEGMENT_REDUCE_X),
    };
    return segments_launch(call, &p, call->type[SEGMENT_REDUCE_TYPE_T]);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    segments_edges(edges, SEGMENT_REDUCE_DIM_N);
}

SIMT_KERNELS(segment_reduce) = { { .name = SIMT_NAME, .launch = launch, .edges = edges }, { 0 } };
