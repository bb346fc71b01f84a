/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm_clip on devices: the host side. */
#include "global_norm_clip.h"
#include "backends/simt/core/host.h"

enum { X, Y, OTHER_SQUARES, SUM_SQUARES, NORM, COEFFICIENT }; /* as in the specification */

static int64_t blocks_of(const trine_call *call) { return simt_blocks(call->dim[0], CLIP_BLOCK); }

/* The coefficient has the place of one more sum. */
static size_t workspace(const trine_call *call) { return (size_t)(blocks_of(call) + 1) * sizeof(double); }

static void *data_of(const trine_call *call, int tensor) { return simt_present(call, tensor) ? call->tensor[tensor].data : NULL; }

static trine_status launch(const trine_call *call) {
    const int squares = simt_present(call, SUM_SQUARES) ? SUM_SQUARES : OTHER_SQUARES;
    const clip_params p = {
        .x = data_of(call, X),
        .other = data_of(call, OTHER_SQUARES),
        .y = data_of(call, Y),
        .sum_squares = data_of(call, SUM_SQUARES),
        .norm = data_of(call, NORM),
        .coefficient = data_of(call, COEFFICIENT),
        .partial = (double *)call->workspace + 1,
        .workspace_coefficient = call->workspace,
        .n = call->dim[0],
        .g = simt_present(call, OTHER_SQUARES) ? call->tensor[OTHER_SQUARES].shape[0] : 0,
        .blocks = blocks_of(call),
        .max_norm = ((const trine_global_norm_clip_args *)call->args)->max_norm,
        .double_squares = simt_present(call, squares) && call->tensor[squares].dtype == TRINE_F64,
        .wide = simt_aligned(call, X) && simt_aligned(call, Y),
        .ahead = simt_ahead_of(call, X),
    };
    const trine_dtype type = call->tensor[X].dtype;
    trine_status status = simt_launch(call, &(simt_function){ .step = "squares", .type = { type } }, p.blocks, SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK) status = simt_launch(call, &(simt_function){ .step = "coefficient" }, 1, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK || p.y == NULL) return status;
    const int64_t each = SIMT_THREADS * CLIP_BYTES / (int64_t)trine_dtype_size(type);
    return simt_launch(call, &(simt_function){ .step = "scale", .type = { type } }, simt_blocks(p.n, each), SIMT_THREADS, &p, sizeof p);
}

SIMT_KERNELS(global_norm_clip) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch }, { 0 } };
