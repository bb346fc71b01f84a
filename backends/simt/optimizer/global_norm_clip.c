/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm_clip on devices: the host side. */
#include "global_norm_clip.h"
#include "backends/simt/core/host.h"
#include "spec/places/global_norm_clip.h"

static int64_t blocks_of(const trine_call *call) { return simt_blocks(call->dim[GLOBAL_NORM_CLIP_DIM_N], CLIP_BLOCK); }

/* The coefficient has the place of one more sum. */
static size_t workspace(const trine_call *call) { return (size_t)(blocks_of(call) + 1) * sizeof(double); }

static void *data_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

/* Elements that a block scales. */
static int64_t scaled_of(const trine_call *call) {
    return SIMT_THREADS * CLIP_BYTES / (int64_t)trine_dtype_size(call->tensor[GLOBAL_NORM_CLIP_X].dtype);
}

static trine_status launch(const trine_call *call) {
    const int squares = simt_present(call, GLOBAL_NORM_CLIP_SUM_SQUARES) ? GLOBAL_NORM_CLIP_SUM_SQUARES
                                                                         : GLOBAL_NORM_CLIP_OTHER_SQUARES;
    const clip_params p = {
        .x = data_of(call, GLOBAL_NORM_CLIP_X),
        .other = data_of(call, GLOBAL_NORM_CLIP_OTHER_SQUARES),
        .y = data_of(call, GLOBAL_NORM_CLIP_Y),
        .sum_squares = data_of(call, GLOBAL_NORM_CLIP_SUM_SQUARES),
        .norm = data_of(call, GLOBAL_NORM_CLIP_NORM),
        .coefficient = data_of(call, GLOBAL_NORM_CLIP_COEFFICIENT),
        .partial = (double *)call->workspace + 1,
        .workspace_coefficient = call->workspace,
        .n = call->dim[GLOBAL_NORM_CLIP_DIM_N],
        .g = simt_present(call, GLOBAL_NORM_CLIP_OTHER_SQUARES) ? call->tensor[GLOBAL_NORM_CLIP_OTHER_SQUARES].shape[0]
                                                                : 0,
        .blocks = blocks_of(call),
        .max_norm = ((const trine_global_norm_clip_args *)call->args)->max_norm,
        .double_squares = simt_present(call, squares) && call->tensor[squares].dtype == TRINE_F64,
        .wide = simt_aligned(call, GLOBAL_NORM_CLIP_X) && simt_aligned(call, GLOBAL_NORM_CLIP_Y),
        .ahead = simt_ahead_of(call, GLOBAL_NORM_CLIP_X),
    };
    const trine_dtype type = call->tensor[GLOBAL_NORM_CLIP_X].dtype;
    trine_status status = simt_launch(call, &(simt_function){ .step = "squares", .type = { type } }, p.blocks,
                                      SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK)
        status = simt_launch(call, &(simt_function){ .step = "coefficient" }, 1, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK || p.y == NULL) return status;
    return simt_launch(call, &(simt_function){ .step = "scale", .type = { type } }, simt_blocks(p.n, scaled_of(call)),
                       SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, scaled_of(call) / SIMT_THREADS);
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, scaled_of(call));
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, CLIP_BLOCK);
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_G, SIMT_THREADS);
}

SIMT_KERNELS(global_norm_clip) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                   { 0 } };
