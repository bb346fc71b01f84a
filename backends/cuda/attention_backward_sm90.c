/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on sm_90a: the host side. */
#include "attention_backward_sm90.h"

#include <stdio.h>

#include <trine/ops.h>

#include "attention_backward_host.h"

typedef struct tile {
    attention_backward_tile of;
    int bytes;
} tile;
#define TILE(D, QUERIES) { { D, ATTENTION_BACKWARD_WIDTH(D), ATTENTION_BACKWARD_KEYS, QUERIES }, ATTENTION_BACKWARD_SM90_BYTES(D, QUERIES) },
static const tile tiles[] = { ATTENTION_BACKWARD_SM90_TILES(TILE) };

/* The first that has the call's columns. */
static const tile *tile_of(const trine_call *call) {
    const tile *t = tiles;
    while (t->of.d < call->dim[ATTENTION_D]) t++;
    return t;
}

static attention_backward_plan plan_of(const trine_call *call) {
    enum { TURN = 64 * 64 };
    return attention_backward_plan_of(call, tile_of(call)->of, TURN);
}

const char *attention_backward_sm90_refuse(const trine_call *call) {
    const char *const reason = attention_backward_refuse_tiles(call);
    if (reason != NULL) return reason;
    const attention_backward_plan p = plan_of(call);
    const char *const much = attention_backward_refuse_plan(&p);
    if (much != NULL) return much;
    return attention_sm90_refuse_tensors(call,
                                         1u << ATTENTION_BACKWARD_DOUT | 1u << ATTENTION_BACKWARD_Q | 1u << ATTENTION_BACKWARD_K | 1u << ATTENTION_BACKWARD_V);
}

size_t attention_backward_sm90_workspace(const trine_call *call) { return (size_t)plan_of(call).bytes; }

static attention_backward_sm90_params params_of(const trine_call *call, const attention_backward_plan *plan) {
    enum { BUNCH = 16 }; /* planes, a dozen blocks of each of which read the same queries at nearly the same time */
    attention_backward_sm90_params p = { .call = attention_backward_params_of(call) };
    char *const at = call->workspace;
    const int64_t row = plan->rows * plan->tile.queries;
    p.call.tiles = (int32_t)plan->rows, p.call.columns = (int32_t)plan->keys;
    p.call.delta = (attention_tensor){ at + plan->delta, p.call.at.h * row, 1, row };
    p.call.wide = p.call.wide && simt_aligned(call, ATTENTION_BACKWARD_O);
    p.parts = (int32_t)plan->parts, p.share = (int32_t)(p.call.at.group / plan->parts);
    p.planes = (int32_t)plan->planes, p.bunch = p.planes < BUNCH ? p.planes : BUNCH;
    p.lift = (float *)(void *)at, p.dq = (float *)(void *)(at + plan->dq), p.dkv = (float *)(void *)(at + plan->dkv);
    p.turns = (int32_t *)(void *)(at + plan->counts), p.spoilt = p.turns + plan->turns;
    p.ticket = p.spoilt + p.planes * plan->keys, p.astray = p.ticket + 1;
    return p;
}

static trine_status launch_end(const trine_call *call, const attention_backward_sm90_params *p, int d, const char *which, int64_t blocks) {
    cuda_launch launch = { .part = CUDA_HOPPER, .blocks = blocks, .threads = ATTENTION_BACKWARD_ENDS, .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_sm90_%s_%s_%d", which, trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), d);
    return cuda_launch_function(call, &launch);
}

trine_status attention_backward_sm90_launch(const trine_call *call) {
    const cuda_device *d = call->device;
    const tile *const tile = tile_of(call);
    const attention_backward_plan plan = plan_of(call);
    attention_backward_sm90_params p = params_of(call, &plan);
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    tensor_map *const maps[] = { &p.dout_map, &p.q_map, &p.k_map, &p.v_map };
    for (int i = 0; i < 4 && status == TRINE_OK; i++)
        status = attention_sm90_encode(call, ATTENTION_BACKWARD_DOUT + i, i < 2 ? plan.tile.queries : ATTENTION_BACKWARD_KEYS, maps[i], &p.moved[i]);
    cuda_leave(d, scope);
    const int64_t tasks = p.planes * plan.keys, groups = p.call.at.b * (p.call.at.h / p.call.at.group);
    cuda_launch launch = { .part = CUDA_HOPPER,
                           .blocks = tasks < d->units ? tasks : d->units,
                           .threads = ATTENTION_BACKWARD_THREADS,
                           .shared = tile->bytes,
                           .alone = true,
                           .params = &p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_sm90_%s%s_%d", p.call.bend != 0 ? "bent_" : "",
             trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), plan.tile.d);
    if (status == TRINE_OK)
        status = launch_end(call, &p, tile->of.d, "begin", simt_blocks(plan.queries * plan.tile.queries * plan.tile.d / 8 + 1, ATTENTION_BACKWARD_ENDS));
    if (status == TRINE_OK) status = cuda_launch_function(call, &launch);
    if (status == TRINE_OK) status = launch_end(call, &p, tile->of.d, "end", plan.queries + groups * plan.keys);
    return status;
}
