/* SPDX-License-Identifier: Apache-2.0 */
/* smith_waterman on devices: the host side. */
#include "backends/simt/core/host.h"
#include "dynamic.h"
#include "spec/dynamic/smith_waterman.h"
#include "spec/places/smith_waterman.h"

static int64_t blocks_of(const trine_call *call) {
    const int64_t b = call->dim[SMITH_WATERMAN_DIM_B];
    return b < SMITH_WATERMAN_BLOCKS ? b : SMITH_WATERMAN_BLOCKS;
}

/* A diagonal has an element for each row, and one before them. */
static int64_t line_of(const trine_call *call) { return call->dim[SMITH_WATERMAN_DIM_M] + 1; }

static size_t workspace(const trine_call *call) {
    return sizeof(int32_t) * (size_t)(blocks_of(call) * SMITH_WATERMAN_LINES * line_of(call));
}

static trine_status launch(const trine_call *call) {
    const trine_smith_waterman_args *args = call->args;
    const trine_tensor *t = call->tensor, *queries = trine_call_given(call, SMITH_WATERMAN_QUERIES),
                       *targets = trine_call_given(call, SMITH_WATERMAN_TARGETS),
                       *ends = trine_call_given(call, SMITH_WATERMAN_ENDS);
    const smith_waterman_params p = { .query = t[SMITH_WATERMAN_QUERY].data,
                                      .target = t[SMITH_WATERMAN_TARGET].data,
                                      .queries = queries ? queries->data : NULL,
                                      .targets = targets ? targets->data : NULL,
                                      .scores = t[SMITH_WATERMAN_SCORES].data,
                                      .best = t[SMITH_WATERMAN_BEST].data,
                                      .lines = call->workspace,
                                      .ends = ends ? ends->data : NULL,
                                      .query_row = t[SMITH_WATERMAN_QUERY].stride[0],
                                      .target_row = t[SMITH_WATERMAN_TARGET].stride[0],
                                      .queries_step = queries ? queries->stride[0] : 0,
                                      .targets_step = targets ? targets->stride[0] : 0,
                                      .scores_row = t[SMITH_WATERMAN_SCORES].stride[0],
                                      .best_step = t[SMITH_WATERMAN_BEST].stride[0],
                                      .ends_row = ends ? ends->stride[0] : 0,
                                      .ends_step = ends ? ends->stride[1] : 0,
                                      .b = call->dim[SMITH_WATERMAN_DIM_B],
                                      .m = call->dim[SMITH_WATERMAN_DIM_M],
                                      .n = call->dim[SMITH_WATERMAN_DIM_N],
                                      .s = call->dim[SMITH_WATERMAN_DIM_S],
                                      .line = line_of(call),
                                      .open = -(int32_t)args->gap_open,
                                      .extend = -(int32_t)args->gap_extend,
                                      .alignment = args->alignment };
    const simt_function function = { .variant = 0 };
    return simt_launch(call, &function, blocks_of(call), SIMT_THREADS, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_M, SIMT_THREADS);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_B, SMITH_WATERMAN_BLOCKS);
}

SIMT_KERNELS(smith_waterman) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                 { 0 } };
