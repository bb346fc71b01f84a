/* SPDX-License-Identifier: Apache-2.0 */
/* attention_backward on CUDA devices: the host side. */
#include "attention_backward_host.h"

#include <stdio.h>

#include <trine/ops.h>

attention_backward_params attention_backward_params_of(const trine_call *call) {
    const trine_attention_backward_args *args = call->args;
    const attention_problem at =
        attention_problem_of(call, ATTENTION_BACKWARD_CU_Q, (attention_options){ args->scale, args->softcap, args->causal, args->window });
    return (attention_backward_params){ .at = at,
                                        .dout = attention_tokens_of(call, ATTENTION_BACKWARD_DOUT),
                                        .q = attention_tokens_of(call, ATTENTION_BACKWARD_Q),
                                        .k = attention_tokens_of(call, ATTENTION_BACKWARD_K),
                                        .v = attention_tokens_of(call, ATTENTION_BACKWARD_V),
                                        .o = attention_tokens_of(call, ATTENTION_BACKWARD_O),
                                        .lse = attention_statistic_of(call, ATTENTION_BACKWARD_LSE),
                                        .dq = attention_tokens_of(call, ATTENTION_BACKWARD_DQ),
                                        .dk = attention_tokens_of(call, ATTENTION_BACKWARD_DK),
                                        .dv = attention_tokens_of(call, ATTENTION_BACKWARD_DV),
                                        .bend = at.softcap > 0 ? at.scale / at.softcap : 0,
                                        .spread = (float)((at.softcap > 0 ? at.softcap : at.scale) * 0x1.71547652b82fep0),
                                        .wide = simt_aligned(call, ATTENTION_BACKWARD_DOUT) && simt_aligned(call, ATTENTION_BACKWARD_Q) &&
                                                simt_aligned(call, ATTENTION_BACKWARD_K) && simt_aligned(call, ATTENTION_BACKWARD_V) &&
                                                simt_aligned(call, ATTENTION_BACKWARD_DQ) && simt_aligned(call, ATTENTION_BACKWARD_DK) &&
                                                simt_aligned(call, ATTENTION_BACKWARD_DV) };
}

static attention_backward_params params_of(const trine_call *call) {
    attention_backward_params p = attention_backward_params_of(call);
    p.delta = (attention_tensor){ call->workspace, (int64_t)p.at.h * p.at.sq, 1, p.at.sq };
    return p;
}

static size_t workspace(const trine_call *call) { return (size_t)(call->dim[ATTENTION_B] * call->dim[ATTENTION_H] * call->dim[ATTENTION_SQ]) * sizeof(float); }

/* `step`: "queries" or "keys", of which there are `tokens` in each of `heads`. */
static trine_status launch_step(const trine_call *call, attention_backward_params *p, const char *step, int64_t tokens, int64_t heads) {
    const int width = p->at.d <= 64 ? 64 : 128;
    p->tiles = (int32_t)simt_blocks(tokens, ATTENTION_SIDE), p->columns = (int32_t)simt_blocks(p->at.d, width);
    cuda_launch launch = { .blocks = (int64_t)p->tiles * p->columns * heads * p->at.b, .threads = ATTENTION_THREADS, .alone = true, .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_%s_%s_%d", step, trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), width);
    return cuda_launch_function(call, &launch);
}

static trine_status launch_delta(const trine_call *call, const attention_backward_params *p) {
    const int64_t rows = (int64_t)p->at.b * p->at.sq * p->at.h;
    cuda_launch launch = { .blocks = simt_blocks(rows, ATTENTION_THREADS / 32), .threads = ATTENTION_THREADS, .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_delta_%s", trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype));
    return cuda_launch_function(call, &launch);
}

static trine_status launch_simt(const trine_call *call) {
    attention_backward_params p = params_of(call);
    trine_status status = launch_delta(call, &p);
    if (status == TRINE_OK) status = launch_step(call, &p, "queries", p.at.sq, p.at.h);
    if (status == TRINE_OK) status = launch_step(call, &p, "keys", p.at.sk, p.at.h / p.at.group);
    return status;
}

/* --------------------------------------------------------------------------------------------------------------- tensor cores */

typedef struct tile {
    int d, keys, queries, columns;
} tile;

static trine_status launch_mma_step(const trine_call *call, attention_backward_params *p, const char *step, int64_t tokens, int64_t heads, int lanes,
                                    const tile *t, int columns) {
    p->tiles = (int32_t)simt_blocks(tokens, ATTENTION_SIDE), p->columns = columns;
    cuda_launch launch = { .blocks = (int64_t)p->tiles * p->columns * heads * p->at.b,
                           .threads = ATTENTION_MMA_THREADS,
                           .shared = ATTENTION_MMA_BACKWARD_BYTES(t->d, lanes),
                           .alone = true,
                           .params = p };
    snprintf(launch.name, sizeof launch.name, "attention_backward_mma_%s_%s_%d", step, trine_dtype_name(call->tensor[ATTENTION_BACKWARD_Q].dtype), t->d);
    return cuda_launch_function(call, &launch);
}

static trine_status launch_mma(const trine_call *call) {
    static const tile tiles[] = { { 64, 64, 64, 64 }, { 128, 64, 32, 128 }, { 256, 32, 32, 128 } };
    attention_backward_params p = params_of(call);
    const tile *t = tiles;
    while (t->d < p.at.d) t++;
    trine_status status = launch_delta(call, &p);
    if (status == TRINE_OK) status = launch_mma_step(call, &p, "queries", p.at.sq, p.at.h, t->keys, t, 1);
    if (status == TRINE_OK) status = launch_mma_step(call, &p, "keys", p.at.sk, p.at.h / p.at.group, t->queries, t, t->d / t->columns);
    return status;
}

const char *attention_backward_refuse_tiles(const trine_call *call) {
    const trine_attention_backward_args *args = call->args;
    return attention_refuse_tiles(call, args->scale, args->softcap);
}

SIMT_KERNELS(attention_backward) = { { .name = SIMT_NAME "_sm90",
                                       .refuse = attention_backward_sm90_refuse,
                                       .workspace = attention_backward_sm90_workspace,
                                       .launch = attention_backward_sm90_launch },
                                     { .name = SIMT_NAME "_mma", .refuse = attention_backward_refuse_tiles, .workspace = workspace, .launch = launch_mma },
                                     { .name = SIMT_NAME, .refuse = attention_refuse, .workspace = workspace, .launch = launch_simt },
                                     { 0 } };
