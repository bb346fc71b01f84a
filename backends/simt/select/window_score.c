/* SPDX-License-Identifier: Apache-2.0 */
/* window_score on devices: the host side. */
#include <math.h>

#include "window_score.h"
#include "backends/simt/core/host.h"
#include "spec/places/window_score.h"

/* Queries that share a head of keys, heads of keys in all, and floats in the workspace. */
static int64_t lanes_of(const trine_call *call) {
    return call->dim[WINDOW_SCORE_DIM_W] * (call->dim[WINDOW_SCORE_DIM_H] / call->dim[WINDOW_SCORE_DIM_HK]);
}
static int64_t groups_of(const trine_call *call) {
    return call->dim[WINDOW_SCORE_DIM_B] * call->dim[WINDOW_SCORE_DIM_HK];
}
static int64_t states(const trine_call *call) { return 2 * groups_of(call) * lanes_of(call); }
static int64_t chunks_of(const trine_call *call) { return simt_blocks(call->dim[WINDOW_SCORE_DIM_S], SIMT_THREADS); }

static size_t workspace(const trine_call *call) {
    const trine_window_score_args *args = call->args;
    const int64_t *dim = call->dim,
                  raw = args->radius > 0 ? dim[WINDOW_SCORE_DIM_B] * dim[WINDOW_SCORE_DIM_O] * dim[WINDOW_SCORE_DIM_N]
                                         : 0;
    return (size_t)(states(call) * (1 + chunks_of(call)) + raw) * sizeof(float);
}

static window_score_params params_of(const trine_call *call) {
    const trine_window_score_args *args = call->args;
    const trine_tensor *q = &call->tensor[WINDOW_SCORE_Q], *k = &call->tensor[WINDOW_SCORE_K];
    const int64_t *dim = call->dim, h = dim[WINDOW_SCORE_DIM_H], hk = dim[WINDOW_SCORE_DIM_HK],
                  o = dim[WINDOW_SCORE_DIM_O], d = dim[WINDOW_SCORE_DIM_D];
    float *const state = call->workspace, *const part = state + states(call);
    return (window_score_params){
        .q = q->data,
        .k = k->data,
        .q_batch = q->stride[0],
        .q_row = q->stride[1],
        .q_head = q->stride[2],
        .k_batch = k->stride[0],
        .k_row = k->stride[1],
        .k_head = k->stride[2],
        .scores = simt_rows_of(call, WINDOW_SCORE_SCORES),
        .part = part,
        .state = state,
        .raw = part + states(call) * chunks_of(call),
        .w = dim[WINDOW_SCORE_DIM_W],
        .s = dim[WINDOW_SCORE_DIM_S],
        .d = d,
        .n = dim[WINDOW_SCORE_DIM_N],
        .hk = hk,
        .o = o,
        .heads = h / o,
        .outs = o / hk,
        .lanes = lanes_of(call),
        .chunks = chunks_of(call),
        .scale = args->scale != 0 ? args->scale : (float)(1 / sqrt((double)d)),
        .share = args->pooling == TRINE_POOL_MAX ? 0 : 1 / (float)(2 * args->radius + 1),
        .radius = args->radius,
        .wide = simt_aligned(call, WINDOW_SCORE_K) && d % SIMT_VECTOR == 0,
    };
}

static trine_status launch(const trine_call *call) {
    window_score_params p = params_of(call);
    const int64_t groups = groups_of(call), blocks = simt_blocks(p.n, SIMT_THREADS);
    simt_function function = { .step = "part", .type = { call->type[WINDOW_SCORE_TYPE_T] } };
    trine_status status = simt_launch(call, &function, groups * p.chunks, SIMT_THREADS, &p, sizeof p);
    p.items = groups * p.lanes;
    if (status == TRINE_OK)
        status = simt_launch(call, &(simt_function){ .step = "state" }, simt_blocks(p.items, SIMT_THREADS),
                             SIMT_THREADS, &p, sizeof p);
    function.step = "sum";
    if (status == TRINE_OK) status = simt_launch(call, &function, groups * blocks, SIMT_THREADS, &p, sizeof p);
    p.items = call->dim[WINDOW_SCORE_DIM_B] * p.o * p.n;
    if (status == TRINE_OK && p.radius > 0)
        status = simt_launch(call, &(simt_function){ .step = "pool" }, simt_blocks(p.items, SIMT_THREADS), SIMT_THREADS,
                             &p, sizeof p);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_S, SIMT_THREADS);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_N, SIMT_THREADS);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_W, WINDOW_ROWS);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_D, SIMT_VECTOR);
    trine_kernel_edge(edges, WINDOW_SCORE_DIM_D, WINDOW_COLUMNS);
}

SIMT_KERNELS(window_score) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
