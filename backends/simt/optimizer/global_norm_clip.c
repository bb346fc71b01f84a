/* SPDX-License-Identifier: Apache-2.0 */
/* global_norm_clip on devices: the host side. */
#include "global_norm_clip.h"
#include "backends/simt/core/host.h"
#include "spec/places/global_norm_clip.h"

/* Do other_squares say the norm? */
static bool told(const trine_call *call) {
    return ((const trine_global_norm_clip_args *)call->args)->own_included &&
           simt_present(call, GLOBAL_NORM_CLIP_OTHER_SQUARES);
}

/* Whose squares are to be summed. */
static int64_t blocks_of(const trine_call *call) {
    const bool none = told(call) && !simt_present(call, GLOBAL_NORM_CLIP_SUM_SQUARES);
    return none ? 0 : simt_blocks(call->dim[GLOBAL_NORM_CLIP_DIM_N], CLIP_BLOCK);
}

/* The coefficient has the place of one more sum. */
static size_t workspace(const trine_call *call) { return (size_t)(blocks_of(call) + 1) * sizeof(double); }

static void *data_of(const trine_call *call, int tensor) {
    return simt_present(call, tensor) ? call->tensor[tensor].data : NULL;
}

/* Elements that a block scales. */
static int64_t scaled_of(const trine_call *call) {
    return SIMT_THREADS * CLIP_BYTES / (int64_t)trine_dtype_size(call->tensor[GLOBAL_NORM_CLIP_X].dtype);
}

static bool wide(const trine_call *call) {
    return simt_aligned(call, GLOBAL_NORM_CLIP_X) && simt_aligned(call, GLOBAL_NORM_CLIP_Y);
}

static clip_sums sums_of(const trine_call *call) {
    const int squares = simt_present(call, GLOBAL_NORM_CLIP_SUM_SQUARES) ? GLOBAL_NORM_CLIP_SUM_SQUARES
                                                                         : GLOBAL_NORM_CLIP_OTHER_SQUARES;
    return (clip_sums){
        .other = data_of(call, GLOBAL_NORM_CLIP_OTHER_SQUARES),
        .sum_squares = data_of(call, GLOBAL_NORM_CLIP_SUM_SQUARES),
        .norm = data_of(call, GLOBAL_NORM_CLIP_NORM),
        .coefficient = data_of(call, GLOBAL_NORM_CLIP_COEFFICIENT),
        .partial = (double *)call->workspace + 1,
        .workspace_coefficient = call->workspace,
        .g = simt_present(call, GLOBAL_NORM_CLIP_OTHER_SQUARES) ? call->tensor[GLOBAL_NORM_CLIP_OTHER_SQUARES].shape[0]
                                                                : 0,
        .blocks = blocks_of(call),
        .max_norm = ((const trine_global_norm_clip_args *)call->args)->max_norm,
        .told = told(call),
        .double_squares = simt_present(call, squares) && call->tensor[squares].dtype == TRINE_F64,
    };
}

static trine_status launch(const trine_call *call) {
    const clip_params p = {
        .x = data_of(call, GLOBAL_NORM_CLIP_X),
        .y = data_of(call, GLOBAL_NORM_CLIP_Y),
        .n = call->dim[GLOBAL_NORM_CLIP_DIM_N],
        .wide = wide(call),
        .ahead = simt_ahead_of(call, GLOBAL_NORM_CLIP_X),
        .sums = sums_of(call),
    };
    const trine_dtype type = call->tensor[GLOBAL_NORM_CLIP_X].dtype;
    trine_status status = simt_launch(call, &(simt_function){ .step = "squares", .type = { type } }, p.sums.blocks,
                                      SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK)
        status = simt_launch(call, &(simt_function){ .step = "coefficient" }, 1, SIMT_THREADS, &p, sizeof p);
    if (status != TRINE_OK || p.y == NULL) return status;
    return simt_launch(call, &(simt_function){ .step = "scale", .type = { type } }, simt_blocks(p.n, scaled_of(call)),
                       SIMT_THREADS, &p, sizeof p);
}

/* ----------------------------------------------------------------------------------------------------------- a list */

static uint8_t type_of(const trine_call *call) { return simt_list_type_of(call->tensor[GLOBAL_NORM_CLIP_X].dtype); }

/* Steps of a list take as many calls at a time as parameters have room for. */
static trine_status list_squares(trine_call *const *calls, int64_t count) {
    const simt_function function = { .step = "list_squares" };
    clip_list_squares p = { 0 };
    int64_t blocks = 0;
    trine_status status = TRINE_OK;
    for (int64_t i = 0; i < count && status == TRINE_OK; i++) {
        const trine_call *call = calls[i];
        if (blocks_of(call) == 0) continue;
        if (p.count == CLIP_LIST_SQUARES || (p.count > 0 && blocks + blocks_of(call) > INT32_MAX)) {
            status = simt_launch(call, &function, blocks, SIMT_THREADS, &p, sizeof p);
            p.count = 0;
            blocks = 0;
        }
        p.item[p.count++] = (clip_squares_item){ .x = call->tensor[GLOBAL_NORM_CLIP_X].data,
                                                 .partial = (double *)call->workspace + 1,
                                                 .n = call->dim[GLOBAL_NORM_CLIP_DIM_N],
                                                 .first = (uint32_t)blocks,
                                                 .type = type_of(call),
                                                 .wide = wide(call) };
        blocks += blocks_of(call);
    }
    return status == TRINE_OK ? simt_launch(calls[0], &function, blocks, SIMT_THREADS, &p, sizeof p) : status;
}

static trine_status list_coefficient(trine_call *const *calls, int64_t count) {
    const simt_function function = { .step = "list_coefficient" };
    clip_list_sums p = { 0 };
    trine_status status = TRINE_OK;
    for (int64_t i = 0; i < count && status == TRINE_OK;) {
        int64_t blocks = 0;
        for (; i < count && blocks < CLIP_LIST_SUMS; i++) p.item[blocks++] = sums_of(calls[i]);
        status = simt_launch(calls[0], &function, blocks, SIMT_THREADS, &p, sizeof p);
    }
    return status;
}

static trine_status list_scale(trine_call *const *calls, int64_t count) {
    const simt_function function = { .step = "list_scale" };
    clip_list_scale p = { 0 };
    int64_t blocks = 0;
    trine_status status = TRINE_OK;
    for (int64_t i = 0; i < count && status == TRINE_OK; i++) {
        const trine_call *call = calls[i];
        const int64_t n = call->dim[GLOBAL_NORM_CLIP_DIM_N], own = simt_blocks(n, scaled_of(call));
        if (!simt_present(call, GLOBAL_NORM_CLIP_Y) || n == 0) continue;
        if (p.count == CLIP_LIST_SCALE || (p.count > 0 && blocks + own > INT32_MAX)) {
            status = simt_launch(call, &function, blocks, SIMT_THREADS, &p, sizeof p);
            p.count = 0;
            blocks = 0;
        }
        p.item[p.count++] = (clip_scale_item){ .x = call->tensor[GLOBAL_NORM_CLIP_X].data,
                                               .y = call->tensor[GLOBAL_NORM_CLIP_Y].data,
                                               .coefficient = call->workspace,
                                               .n = n,
                                               .first = (uint32_t)blocks,
                                               .type = type_of(call),
                                               .wide = wide(call) };
        blocks += own;
    }
    return status == TRINE_OK ? simt_launch(calls[0], &function, blocks, SIMT_THREADS, &p, sizeof p) : status;
}

static trine_status launch_list(trine_call *const *calls, int64_t count) {
    trine_status status = list_squares(calls, count);
    if (status == TRINE_OK) status = list_coefficient(calls, count);
    return status == TRINE_OK ? list_scale(calls, count) : status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, scaled_of(call) / SIMT_THREADS);
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, scaled_of(call));
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_N, CLIP_BLOCK);
    trine_kernel_edge(edges, GLOBAL_NORM_CLIP_DIM_G, SIMT_THREADS);
}

SIMT_KERNELS(global_norm_clip) = {
    { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges, .launch_list = launch_list }, { 0 }
};
