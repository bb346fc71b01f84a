/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route_backward on the CPU: a token's scores as moe_route makes them, then the part of all of them, and that of
 * weights which are made to sum to 1, slot by slot. */
#include "backends/cpu/core/cpu.h"
#include "moe_power.h"
#include "spec/places/moe_route_backward.h"

typedef struct route {
    const trine_moe_route_backward_args *args;
    int64_t e, padded, k;
} route;

/* A token's rows, and memory for all experts: powers; 1 - s of sigmoids; what is added up of the gradients of scores,
 * and becomes that of the logits. */
typedef struct token {
    const void *logits;
    const float *dweights, *dscores;
    const int32_t *experts;
    float *power, *rest, *sum;
} token;

INLINE float score(const route *a, const token *at, trine_dtype T) {
    const bool softmax = a->args->gate == TRINE_GATE_SOFTMAX;
    const vf origin = vset(softmax ? origin_of(at->logits, a->e, T) : 0);
    vf sum[LANES / VL] = { 0 };
    for (int64_t i = 0; i < a->padded; i += LANES)
        for (int v = 0; v < LANES / VL; v++) {
            const vf x = row_vector(at->logits, T, i + v * VL, a->e, -INFINITY),
                     p = power(softmax ? x - origin : -vabs(x));
            const vf one = vset(1), below = softmax ? p : vsel(x < vzero(), p, one) / (1.0f + p);
            vstore(at->power, TRINE_F32, i + v * VL, below);
            vstore(at->rest, TRINE_F32, i + v * VL, softmax ? one : vsel(x < vzero(), one, p) / (1.0f + p));
            sum[v] += p;
        }
    return softmax ? total_of(sum) : 1;
}

/* The expert that a slot names; -1: none. */
static int64_t named(const route *a, const token *at, int64_t slot) {
    const int64_t id = at->experts[slot];
    return id >= 0 && id < a->e ? id : -1;
}

INLINE void all_scores(const route *a, const token *at, float total) {
    for (int64_t i = 0; i < a->padded; i += VL)
        vstore(at->sum, TRINE_F32, i, at->dscores ? row_vector(at->dscores, TRINE_F32, i, a->e, 0) : vzero());
    for (int64_t j = 0; !a->args->renormalise && j < a->k; j++)
        if (named(a, at, j) >= 0) at->sum[named(a, at, j)] += a->args->scale * at->dweights[j];
    vf mean[LANES / VL] = { 0 };
    const bool softmax = a->args->gate == TRINE_GATE_SOFTMAX;
    for (int64_t i = 0; softmax && i < a->padded; i += LANES)
        for (int v = 0; v < LANES / VL; v++) {
            const int64_t j = i + v * VL;
            const vi there = viota() < viset((int)(a->e - j < VL ? a->e - j : VL));
            const vf s = vload(at->power, TRINE_F32, j) / total;
            mean[v] += vsel(there, vproduct(s, vload(at->sum, TRINE_F32, j)), vzero());
        }
    const float by = softmax ? total_of(mean) : 0;
    for (int64_t i = 0; i < a->padded; i += VL) {
        const vf s = vload(at->power, TRINE_F32, i) / total * vload(at->rest, TRINE_F32, i);
        vstore(at->sum, TRINE_F32, i, s * (vload(at->sum, TRINE_F32, i) - by));
    }
}

static void chosen_weights(const route *a, const token *at) {
    const float scale = a->args->scale;
    float total = 0, mean = 0;
    for (int64_t j = 0; j < a->k; j++)
        if (named(a, at, j) >= 0) total += at->power[named(a, at, j)];
    if (total == 0) return;
    for (int64_t j = 0; j < a->k; j++)
        if (named(a, at, j) >= 0) mean += at->power[named(a, at, j)] / total * (scale * at->dweights[j]);
    for (int64_t j = 0; j < a->k; j++) {
        const int64_t id = named(a, at, j);
        if (id >= 0) at->sum[id] += at->power[id] / total * at->rest[id] * (scale * at->dweights[j] - mean);
    }
}

INLINE void route_token(const route *a, const token *at, void *dlogits, trine_dtype T) {
    const float total = score(a, at, T);
    if (at->dscores || !a->args->renormalise)
        all_scores(a, at, total);
    else
        memset(at->sum, 0, (size_t)a->padded * sizeof(float));
    if (a->args->renormalise) chosen_weights(a, at);
    for (int64_t i = 0; i < a->e; i += VL) put_vector(dlogits, T, i, a->e, vload(at->sum, TRINE_F32, i));
}

static int64_t memory_of(const trine_call *call) {
    return 3 * cpu_round_up(call->dim[MOE_ROUTE_BACKWARD_DIM_E], LANES) * (int64_t)sizeof(float);
}

static void *row_of(const trine_call *call, int tensor, int64_t i) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? (char *)t->data + i * t->stride[0] * (int64_t)trine_dtype_size(t->dtype) : NULL;
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t e = call->dim[MOE_ROUTE_BACKWARD_DIM_E];
    const route a = {
        .args = call->args, .e = e, .padded = cpu_round_up(e, LANES), .k = call->dim[MOE_ROUTE_BACKWARD_DIM_K]
    };
    float *memory = (float *)(void *)((char *)call->workspace + thread * memory_of(call));
    for (int64_t i = first; i < last; i++) {
        const token at = { .logits = row_of(call, MOE_ROUTE_BACKWARD_LOGITS, i),
                           .dweights = row_of(call, MOE_ROUTE_BACKWARD_DWEIGHTS, i),
                           .dscores = row_of(call, MOE_ROUTE_BACKWARD_DSCORES, i),
                           .experts = row_of(call, MOE_ROUTE_BACKWARD_EXPERTS, i),
                           .power = memory,
                           .rest = memory + a.padded,
                           .sum = memory + 2 * a.padded };
        FOR_TYPE(call->type[MOE_ROUTE_BACKWARD_TYPE_T], route_token, &a, &at,
                 row_of(call, MOE_ROUTE_BACKWARD_DLOGITS, i));
    }
}

/* A token costs about as many bytes as this. */
static int64_t token_bytes(const trine_call *call) {
    return call->dim[MOE_ROUTE_BACKWARD_DIM_E] * 32 + call->dim[MOE_ROUTE_BACKWARD_DIM_K] * 16;
}
static int team_of(const trine_call *call) {
    const int64_t t = call->dim[MOE_ROUTE_BACKWARD_DIM_T];
    return cpu_team(call, t, t * token_bytes(call));
}

static const char *refuse(const trine_call *call) {
    return call->dim[MOE_ROUTE_BACKWARD_DIM_E] > INT32_MAX ? "more than 2^31 - 1 experts" : NULL;
}

static size_t workspace(const trine_call *call) { return (size_t)(team_of(call) * memory_of(call)); }

static trine_status launch(const trine_call *call) {
    cpu_shares(call, team_of(call), call->dim[MOE_ROUTE_BACKWARD_DIM_T], rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MOE_ROUTE_BACKWARD_DIM_E, VL);
    trine_kernel_edge(edges, MOE_ROUTE_BACKWARD_DIM_E, LANES);
    cpu_team_edge(edges, MOE_ROUTE_BACKWARD_DIM_T, token_bytes(call));
}

CPU_KERNELS(moe_route_backward) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
