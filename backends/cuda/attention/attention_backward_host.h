/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of attention as the host sides of its kernels see it. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_HOST_H
#define TRINE_CUDA_ATTENTION_BACKWARD_HOST_H

#include "attention_sm90_host.h"

/* What a kernel by tensor cores has in a block: columns of q and k, those of them that it sums, keys and queries. */
typedef struct attention_backward_tile {
    int d, width, keys, queries;
} attention_backward_tile;

/* What that divides a call into, and where its parts of the workspace begin. */
typedef struct attention_backward_plan {
    attention_backward_tile tile;
    int64_t rows, queries, keys; /* tiles of queries of one head, and of all; tiles of keys of one head */
    int64_t parts, planes;
    int64_t begins, ends; /* blocks of the launches before and after */
    int64_t delta, dq, dkv, turns, spoilt, ticket, astray, bytes;
} attention_backward_plan;

/* Turns are counted for each tile of queries, or for each `turn` floats of their dq, if that is not 0. */
attention_backward_plan attention_backward_plan_of(const trine_call *call, attention_backward_tile tile, int turn);

/* The tensors, and what the plan says of them. */
attention_backward_params attention_backward_params_of(const trine_call *call, const attention_backward_plan *plan);

/* The parameters that the kernels in one pass have in common. Of a bunch's planes some blocks of each read the same
 * queries at nearly the same time. */
enum { ATTENTION_BACKWARD_BUNCH = 16 };
#define ATTENTION_BACKWARD_PASS(call_, plan) \
    .call = attention_backward_params_of(call_, plan), .lift = attention_backward_part(call_, 0), \
    .dq = attention_backward_part(call_, (plan)->dq), .dkv = attention_backward_part(call_, (plan)->dkv), \
    .turns = attention_backward_part(call_, (plan)->turns), .spoilt = attention_backward_part(call_, (plan)->spoilt), \
    .ticket = attention_backward_part(call_, (plan)->ticket), \
    .astray = attention_backward_part(call_, (plan)->astray), .planes = (int32_t)(plan)->planes, \
    .bunch = (plan)->planes < ATTENTION_BACKWARD_BUNCH ? (int32_t)(plan)->planes : ATTENTION_BACKWARD_BUNCH, \
    .parts = (int32_t)(plan)->parts, \
    .share = (int32_t)((call_)->dim[ATTENTION_DIM_H] / (call_)->dim[ATTENTION_DIM_HK] / (plan)->parts)

/* The workspace from a byte on. */
static inline void *attention_backward_part(const trine_call *call, int64_t from) {
    return (char *)call->workspace + from;
}

/* Of a tile: columns, and one or two tiles of queries and of keys. */
void attention_backward_edges(const attention_backward_tile *tile, trine_kernel_edges *edges);

/* NULL, or why it is too much. */
const char *attention_backward_refuse_plan(const attention_backward_plan *plan);

/* What comes behind all kernels: dsinks, from delta. */
trine_status attention_backward_launch_options(const trine_call *call, const attention_backward_params *p);

/* Why tensor cores cannot run the call; NULL if they can. */
const char *attention_backward_refuse_tiles(const trine_call *call);

const char *attention_backward_sm90_refuse(const trine_call *call);
size_t attention_backward_sm90_workspace(const trine_call *call);
trine_status attention_backward_sm90_launch(const trine_call *call);
void attention_backward_sm90_edges(const trine_call *call, trine_kernel_edges *edges);

#endif
