/* SPDX-License-Identifier: Apache-2.0 */
/* smith_waterman on devices: the host side. */
#include "backends/simt/core/host.h"
#include "dynamic.h"
#include "spec/dynamic/smith_waterman.h"
#include "spec/places/smith_waterman.h"

/* How many rows a thread has; how many teams a pair, a power of two; and blocks, and the pairs of all at a time. */
typedef struct shape {
    int rows, teams, in_block;
    int64_t blocks, pairs;
} shape;

static shape shape_of(const trine_call *call) {
    static const int rows[] = { 2, 4, 6, 8, 12, ALIGN_MOST };
    const int64_t b = call->dim[SMITH_WATERMAN_DIM_B], m = call->dim[SMITH_WATERMAN_DIM_M];
    int i = 0, teams = 1;
    while (rows[i] < ALIGN_MOST && (int64_t)rows[i] * ALIGN_TEAM < m) i++;
    while (teams < ALIGN_TEAMS && (int64_t)teams * ALIGN_MOST * ALIGN_TEAM < m) teams *= 2;
    const int in_block = teams > 1 || call->dim[SMITH_WATERMAN_DIM_S] > ALIGN_LETTERS ? ALIGN_TEAMS : ALIGN_FEW;
    const int64_t blocks = simt_blocks(b, in_block / teams), most = blocks < ALIGN_BLOCKS ? blocks : ALIGN_BLOCKS;
    return (shape){ rows[i], teams, in_block, most, most * (in_block / teams) };
}

static size_t workspace(const trine_call *call) {
    return 2 * sizeof(int32_t) * (size_t)(shape_of(call).pairs * call->dim[SMITH_WATERMAN_DIM_N]);
}

static trine_status launch(const trine_call *call) {
    const trine_smith_waterman_args *args = call->args;
    const shape shape = shape_of(call);
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
                                      .open = -(int32_t)args->gap_open,
                                      .extend = -(int32_t)args->gap_extend,
                                      .alignment = args->alignment,
                                      .teams = shape.teams };
    const bool local = args->alignment == 0, letters = p.s > ALIGN_LETTERS, several = shape.in_block == ALIGN_TEAMS;
    const simt_function function = { .step = letters   ? (local ? "letters_local" : "letters")
                                             : several ? (local ? "several_local" : "several")
                                             : local   ? "local"
                                                       : NULL,
                                     .variant = several ? ALIGN_MOST : shape.rows };
    return simt_launch(call, &function, shape.blocks, shape.in_block * ALIGN_TEAM, &p, sizeof p);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    for (int teams = 1; teams <= 2 * ALIGN_TEAMS; teams *= 2)
        trine_kernel_edge(edges, SMITH_WATERMAN_DIM_M, (int64_t)teams * ALIGN_MOST * ALIGN_TEAM);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_M, 2 * ALIGN_TEAM);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_N, ALIGN_TEAM);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_B, ALIGN_FEW);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_B, ALIGN_TEAMS);
    trine_kernel_edge(edges, SMITH_WATERMAN_DIM_S, ALIGN_LETTERS);
}

SIMT_KERNELS(smith_waterman) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                 { 0 } };
