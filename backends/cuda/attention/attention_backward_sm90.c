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
#define TILE(D, QUERIES) \
    { { D, ATTENTION_BACKWARD_WIDTH(D), ATTENTION_BACKWARD_KEYS, QUERIES }, ATTENTION_BACKWARD_SM90_BYTES(D, QUERIES) },
static const tile tiles[] = { ATTENTION_BACKWARD_SM90_TILES(TILE) };

/* The first that has the call's columns. */
static const tile *tile_of(const trine_call *call) {
    const tile *t = tiles;
    while (t->of.d < call->dim[ATTENTION_DIM_D]) t++;
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
    const attention_backward_params params = attention_backward_params_of(call, &p);
    const char *const options = attention_refuse_options(&params.at);
    if (options != NULL) return options;
    return attention_sm90_refuse_tensors(call, 1u << ATTENTION_BACKWARD_DOUT | 1u << ATTENTION_BACKWARD_Q |
                                                   1u << ATTENTION_BACKWARD_K | 1u << ATTENTION_BACKWARD_V);
}

size_t attention_backward_sm90_workspace(const trine_call *call) { return (size_t)plan_of(call).bytes; }

static trine_status launch_end(const trine_call *call, const attention_backward_sm90_params *p, int d,
                               const char *which, int64_t blocks) {
    cuda_launch launch = { .part = CUDA_HOPPER, .blocks = blocks, .threads = ATTENTION_BACKWARD_ENDS, .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_sm90_%s_%s_%d", which,
             trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), d);
    return cuda_launch_function(call, &launch);
}

trine_status attention_backward_sm90_launch(const trine_call *call) {
    const cuda_device *d = call->device;
    const attention_backward_plan plan = plan_of(call);
    attention_backward_sm90_params p = { ATTENTION_BACKWARD_PASS(call, &plan) };
    cuda_scope scope;
    trine_status status = cuda_enter(d, &scope);
    if (status != TRINE_OK) return status;
    const int queries = plan.tile.queries, keys = ATTENTION_BACKWARD_KEYS;
    const struct {
        int tensor, rows;
        tensor_map *map;
    } maps[] = { { ATTENTION_BACKWARD_DOUT, queries, &p.dout_map },
                 { ATTENTION_BACKWARD_Q, queries, &p.q_map },
                 { ATTENTION_BACKWARD_K, keys, &p.k_map },
                 { ATTENTION_BACKWARD_V, keys, &p.v_map } };
    for (int i = 0; i < 4 && status == TRINE_OK; i++)
        status = attention_sm90_encode(call, maps[i].tensor, maps[i].rows, maps[i].map, &p.moved[i]);
    cuda_leave(d, scope);
    const int64_t tasks = plan.planes * plan.keys;
    cuda_launch launch = { .part = CUDA_HOPPER,
                           .blocks = tasks < simt_units(call) ? tasks : simt_units(call),
                           .threads = ATTENTION_BACKWARD_THREADS,
                           .shared = tile_of(call)->bytes,
                           .alone = true,
                           .params = &p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_sm90_%s%s_%d", p.call.bend != 0 ? "bent_" : "",
             trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), plan.tile.d);
    if (status == TRINE_OK) status = launch_end(call, &p, plan.tile.d, "begin", plan.begins);
    if (status == TRINE_OK) status = cuda_launch_function(call, &launch);
    if (status == TRINE_OK) status = launch_end(call, &p, plan.tile.d, "end", plan.ends);
    return status == TRINE_OK ? attention_backward_launch_options(call, &p.call) : status;
}

void attention_backward_sm90_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) attention_backward_edges(&tiles[i].of, edges);
}
