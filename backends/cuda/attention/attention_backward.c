/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CUDA devices: the host side. */
#include "attention_backward_host.h"

#include <assert.h>
#include <stdio.h>

#include <trine/ops.h>

/* All but delta, tiles and columns. */
static attention_backward_params tensors_of(const trine_call *call) {
    const trine_attention_backward_args *args = call->args;
    const attention_problem at = attention_problem_of(call, (attention_asked)ATTENTION_ASKED(args, ATTENTION_BACKWARD));
    const trine_tensor *dbias = &call->tensor[ATTENTION_BACKWARD_DBIAS];
    const bool wants_bias = simt_present(call, ATTENTION_BACKWARD_DBIAS);
    return (attention_backward_params){
        .at = at,
        .dout = attention_tokens_of(call, ATTENTION_BACKWARD_DOUT),
        .q = attention_tokens_of(call, ATTENTION_BACKWARD_Q),
        .k = attention_tokens_of(call, ATTENTION_BACKWARD_K),
        .v = attention_tokens_of(call, ATTENTION_BACKWARD_V),
        .o = attention_tokens_of(call, ATTENTION_BACKWARD_O),
        .lse = attention_statistic_of(call, ATTENTION_BACKWARD_LSE),
        .dq = attention_tokens_of(call, ATTENTION_BACKWARD_DQ),
        .dk = attention_tokens_of(call, ATTENTION_BACKWARD_DK),
        .dv = attention_tokens_of(call, ATTENTION_BACKWARD_DV),
        .dbias = wants_bias ? dbias->data : NULL,
        .dsinks = simt_present(call, ATTENTION_BACKWARD_DSINKS) ? call->tensor[ATTENTION_BACKWARD_DSINKS].data : NULL,
        .dbias_batch = wants_bias ? dbias->stride[0] : 0,
        .dbias_head = wants_bias ? dbias->stride[1] : 0,
        .dbias_query = wants_bias ? dbias->stride[2] : 0,
        .bend = at.softcap > 0 ? at.scale / at.softcap : 0,
        .spread = (float)((at.softcap > 0 ? at.softcap : at.scale) * 0x1.71547652b82fep0),
        .wide = simt_aligned(call, ATTENTION_BACKWARD_DOUT) && simt_aligned(call, ATTENTION_BACKWARD_Q) &&
                simt_aligned(call, ATTENTION_BACKWARD_K) && simt_aligned(call, ATTENTION_BACKWARD_V) &&
                simt_aligned(call, ATTENTION_BACKWARD_DQ) && simt_aligned(call, ATTENTION_BACKWARD_DK) &&
                simt_aligned(call, ATTENTION_BACKWARD_DV)
    };
}

static size_t workspace(const trine_call *call) {
    return (size_t)(call->dim[ATTENTION_DIM_B] * call->dim[ATTENTION_DIM_H] * call->dim[ATTENTION_DIM_SQ]) *
           sizeof(float);
}

static const char *options_of(const attention_problem *at) {
    return attention_refuse_options(at) != NULL ? "options_" : "";
}

/* `step`: "queries" or "keys", of which there are `tokens` in each of `heads`. */
static trine_status launch_step(const trine_call *call, attention_backward_params *p, const char *step, int64_t tokens,
                                int64_t heads) {
    const int width = attention_refuse_options(&p->at) ? ATTENTION_WIDE : attention_width(p->at.d);
    p->tiles = (int32_t)simt_blocks(tokens, ATTENTION_SIDE), p->columns = (int32_t)simt_blocks(p->at.d, width);
    cuda_launch launch = { .blocks = (int64_t)p->tiles * p->columns * heads * p->at.b,
                           .threads = ATTENTION_THREADS,
                           .alone = true,
                           .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_%s_%s%s_%d", step, options_of(&p->at),
             trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), width);
    return cuda_launch_function(call, &launch);
}

static trine_status launch_plain(const trine_call *call, const attention_backward_params *p, const char *step,
                                 int64_t blocks) {
    cuda_launch launch = { .blocks = blocks, .threads = ATTENTION_THREADS, .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_%s_%s", step,
             trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype));
    return cuda_launch_function(call, &launch);
}

/* Before the kernels that have a bias. */
static trine_status launch_clear(const trine_call *call, const attention_backward_params *p) {
    return p->dbias == NULL || p->at.sk == 0
               ? TRINE_OK
               : launch_plain(call, p, "clear_bias", (int64_t)p->at.b * p->at.h * p->at.sq);
}

trine_status attention_backward_launch_options(const trine_call *call, const attention_backward_params *p) {
    return p->dsinks == NULL ? TRINE_OK : launch_plain(call, p, "sinks", p->at.h);
}

static trine_status launch_simt(const trine_call *call) {
    attention_backward_params p = tensors_of(call);
    p.delta = (attention_tensor){ call->workspace, (int64_t)p.at.h * p.at.sq, 1, p.at.sq };
    trine_status status =
        launch_plain(call, &p, "delta", simt_blocks((int64_t)p.at.b * p.at.sq * p.at.h, ATTENTION_THREADS / 32));
    if (status == TRINE_OK) status = launch_clear(call, &p);
    if (status == TRINE_OK) status = launch_step(call, &p, "queries", p.at.sq, p.at.h);
    if (status == TRINE_OK) status = launch_step(call, &p, "keys", p.at.sk, p.at.h / p.at.group);
    return status == TRINE_OK ? attention_backward_launch_options(call, &p) : status;
}

/* ----------------------------------------------------------------------------------------------------- tensor cores */

static int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/* Heads of a group are divided where blocks would be too few for the device otherwise. The number of batches does not
 * count: sums must not depend on it. */
attention_backward_plan attention_backward_plan_of(const trine_call *call, attention_backward_tile tile, int turn) {
    const int64_t *dim = call->dim, h = dim[ATTENTION_DIM_H];
    attention_backward_plan p = { .tile = tile };
    enum { VECTOR = 8 }; /* elements of a row that a thread of the launch before has */
    p.rows = simt_blocks(dim[ATTENTION_DIM_SQ], tile.queries), p.queries = dim[ATTENTION_DIM_B] * h * p.rows,
    p.keys = simt_blocks(dim[ATTENTION_DIM_SK], tile.keys);
    p.parts = p.keys * dim[ATTENTION_DIM_HK] < 2 * simt_units(call) ? h / dim[ATTENTION_DIM_HK] : 1;
    p.planes = dim[ATTENTION_DIM_B] * dim[ATTENTION_DIM_HK] * p.parts * (tile.d / tile.width);
    const int64_t floats = p.queries * tile.queries * tile.d;
    p.begins = simt_blocks(floats / VECTOR + 1, ATTENTION_BACKWARD_ENDS),
    p.ends = p.queries + dim[ATTENTION_DIM_B] * dim[ATTENTION_DIM_HK] * p.keys;
    p.delta = aligned(p.queries * tile.queries * 4), p.dq = 2 * p.delta, p.dkv = p.dq + floats * 4;
    p.turns = p.dkv + (p.parts > 1 ? p.planes * p.keys * 2 * tile.keys * tile.width * 4 : 0);
    p.spoilt = p.turns + (turn ? floats / turn : p.queries) * 4;
    p.ticket = p.spoilt + p.planes * p.keys * 4, p.astray = p.ticket + 4, p.bytes = p.astray + 4;
    return p;
}

attention_backward_params attention_backward_params_of(const trine_call *call, const attention_backward_plan *plan) {
    attention_backward_params p = tensors_of(call);
    const int64_t row = plan->rows * plan->tile.queries;
    p.tiles = (int32_t)plan->rows, p.columns = (int32_t)plan->keys;
    p.delta = (attention_tensor){ attention_backward_part(call, plan->delta), p.at.h * row, 1, row };
    p.wide = p.wide && simt_aligned(call, ATTENTION_BACKWARD_O);
    return p;
}

const char *attention_backward_refuse_plan(const attention_backward_plan *p) {
    return p->queries > INT32_MAX / 2 || p->planes * p->keys > INT32_MAX / 2 ? "more tiles than are counted in 32 bits"
                                                                             : NULL;
}

typedef struct tile {
    const char *name;
    attention_backward_tile of;
    int threads, shared;
} tile;
#define TILE(name, D, KEYS, QUERIES, STAGES, WARPS) \
    { #name, { D, D, KEYS, QUERIES }, 32 * (WARPS), ATTENTION_BACKWARD_MMA_BYTES(D, KEYS, QUERIES, STAGES) },
static const tile mma[] = { ATTENTION_BACKWARD_MMA_TILES(TILE) }, slim[] = { ATTENTION_BACKWARD_SLIM_TILES(TILE) };

enum { TILES = sizeof mma / sizeof mma[0] };
static_assert(sizeof mma == sizeof slim, "as many tiles of little memory");

void attention_backward_edges(const attention_backward_tile *tile, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ATTENTION_DIM_D, tile->d);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, tile->queries);
    trine_kernel_edge(edges, ATTENTION_DIM_SQ, 2 * tile->queries);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, tile->keys);
    trine_kernel_edge(edges, ATTENTION_DIM_SK, 2 * tile->keys);
}

/* The first of a list that has the call's columns. */
static const tile *tile_of(const trine_call *call, const tile *list) {
    while (list->of.d < call->dim[ATTENTION_DIM_D]) list++;
    return list;
}

static attention_backward_plan plan_of(const trine_call *call, const tile *list) {
    return attention_backward_plan_of(call, tile_of(call, list)->of, 0);
}

static const char *refuse_tile(const trine_call *call, const tile *list) {
    const char *const reason = attention_backward_refuse_tiles(call);
    if (reason != NULL) return reason;
    const attention_backward_plan p = plan_of(call, list);
    const attention_backward_params params = tensors_of(call);
    if (list == mma && attention_refuse_options(&params.at) != NULL) return attention_refuse_options(&params.at);
    if (tile_of(call, list)->shared > ((const cuda_device *)call->device)->shared)
        return "a block cannot have as much shared memory";
    return attention_backward_refuse_plan(&p);
}

static trine_status launch_part(const trine_call *call, const attention_backward_mma_params *p, const tile *tile,
                                const char *step, int64_t blocks, bool is_main) {
    const char *const options = is_main ? options_of(&p->call.at) : "";
    cuda_launch launch = { .blocks = blocks, .threads = ATTENTION_BACKWARD_ENDS, .params = p };
    if (is_main) launch.threads = tile->threads, launch.shared = tile->shared, launch.alone = true;
    snprintf(launch.name, sizeof launch.name, "attention_backward_%s_%s%s%s_%d", tile->name, step, options,
             trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), tile->of.d);
    return cuda_launch_function(call, &launch);
}

static trine_status launch_tile(const trine_call *call, const tile *list) {
    enum { RISING = 32 }; /* tiles of keys up to which a causal mask wants the other order */
    const tile *const tile = tile_of(call, list);
    const attention_backward_plan plan = plan_of(call, list);
    attention_backward_mma_params p = { ATTENTION_BACKWARD_PASS(call, &plan) };
    p.rises = p.call.at.causal && plan.keys <= RISING;
    trine_status status = launch_part(call, &p, tile, "begin_", plan.begins, false);
    if (status == TRINE_OK) status = launch_clear(call, &p.call);
    if (status == TRINE_OK) status = launch_part(call, &p, tile, "", plan.planes * plan.keys, true);
    if (status == TRINE_OK) status = launch_part(call, &p, tile, "end_", plan.ends, false);
    return status == TRINE_OK ? attention_backward_launch_options(call, &p.call) : status;
}

const char *attention_backward_refuse_tiles(const trine_call *call) {
    const trine_attention_backward_args *args = call->args;
    return attention_refuse_tiles(call, args->scale, args->softcap);
}

#define TILES(name) \
    static const char *refuse_##name(const trine_call *call) { return refuse_tile(call, name); } \
    static size_t workspace_##name(const trine_call *call) { return (size_t)plan_of(call, name).bytes; } \
    static trine_status launch_##name(const trine_call *call) { return launch_tile(call, name); } \
    static void edges_##name(const trine_call *call, trine_kernel_edges *edges) { \
        (void)call; \
        for (int i = 0; i < TILES; i++) attention_backward_edges(&name[i].of, edges); \
    }
TILES(mma)
TILES(slim)

SIMT_KERNELS(attention_backward) = { { .name = SIMT_NAME "_sm90",
                                       .refuse = attention_backward_sm90_refuse,
                                       .workspace = attention_backward_sm90_workspace,
                                       .launch = attention_backward_sm90_launch,
                                       .edges = attention_backward_sm90_edges },
                                     { .name = SIMT_NAME "_mma",
                                       .refuse = refuse_mma,
                                       .workspace = workspace_mma,
                                       .launch = launch_mma,
                                       .edges = edges_mma },
                                     { .name = SIMT_NAME "_mma_slim",
                                       .refuse = refuse_slim,
                                       .workspace = workspace_slim,
                                       .launch = launch_slim,
                                       .edges = edges_slim },
                                     { .name = SIMT_NAME,
                                       .refuse = attention_refuse,
                                       .workspace = workspace,
                                       .launch = launch_simt,
                                       .edges = attention_edges_simt },
                                     { 0 } };
