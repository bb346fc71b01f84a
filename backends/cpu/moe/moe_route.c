/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route on the CPU: a token's scores by the operations that spec/moe/moe_route.c prescribes, then its experts one
 * by one, each the largest that is left. */
#include "backends/cpu/core/cpu.h"
#include "moe_power.h"
#include "spec/places/moe_route.h"

typedef struct route {
    const trine_moe_route_args *args;
    const float *bias; /* NULL: none */
    int64_t e, padded, k;
} route;

/* A token's memory: what scores are made of, scores with the bias, the order of experts and of groups. */
typedef struct token {
    float *power, *score;
    int32_t *order, *group;
} token;

/* Larger for larger x: those of -0 and 0 are equal, and NaN's is the largest; INT32_MIN is nobody's. */
INLINE vi order_of(vf x) {
    const vi bits = visel(x == vzero(), viset(0), (vi)x), order = visel(bits < 0, bits ^ INT32_MAX, bits);
    return visel(x != x, viset(INT32_MAX), order);
}

/* The scores, and what makes them of `power`. */
INLINE float score_softmax(const route *a, const token *to, const void *row, trine_dtype T) {
    const vf origin = vset(origin_of(row, a->e, T));
    vf sum[LANES / VL] = { 0 };
    for (int64_t i = 0; i < a->padded; i += LANES)
        for (int v = 0; v < LANES / VL; v++) {
            const vf p = power(row_vector(row, T, i + v * VL, a->e, -INFINITY) - origin);
            vstore(to->power, TRINE_F32, i + v * VL, p);
            sum[v] += p;
        }
    const float total = total_of(sum);
    for (int64_t i = 0; i < a->padded; i += VL) vstore(to->score, TRINE_F32, i, vload(to->power, TRINE_F32, i) / total);
    return total;
}

INLINE float score_sigmoid(const route *a, const token *to, const void *row, trine_dtype T) {
    for (int64_t i = 0; i < a->padded; i += VL) {
        const vf x = row_vector(row, T, i, a->e, -INFINITY), p = power(-vabs(x));
        const vf s = vsel(x < vzero(), p, vset(1)) / (1.0f + p);
        vstore(to->power, TRINE_F32, i, s);
        vstore(to->score, TRINE_F32, i, s);
    }
    return 1;
}

/* The place of the largest of n, a multiple of VL, the first of equals, which is taken off; -1: none is left. */
INLINE int64_t take(int32_t *order, int64_t n) {
    vi most = viset(INT32_MIN);
    for (int64_t i = 0; i < n; i += VL) {
        const vi x = *(const vi_any *)(order + i);
        most = visel(x > most, x, most);
    }
    int32_t best = INT32_MIN;
    for (int i = 0; i < VL; i++) best = most[i] > best ? most[i] : best;
    if (best == INT32_MIN) return -1;
    int64_t at = 0;
    while (!vany(*(const vi_any *)(order + at) == best)) at += VL;
    while (order[at] != best) at++;
    order[at] = INT32_MIN;
    return at;
}

/* The float of an order, -0 being 0. */
INLINE float of_order(int32_t order) {
    const int32_t bits = order < 0 ? order ^ INT32_MAX : order;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Of a group's orders that of what its two best add up to, or its one. */
INLINE int32_t group_order(const int32_t *order, int64_t n) {
    vi first = viset(INT32_MIN), second = first;
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        const vi x = *(const vi_any *)(order + i), less = visel(x > first, first, x);
        second = visel(less > second, less, second);
        first = visel(x > first, x, first);
    }
    int32_t best = INT32_MIN, next = INT32_MIN, all[2 * VL];
    memcpy(all, &first, sizeof first);
    memcpy(all + VL, &second, sizeof second);
    for (int j = 0; j < 2 * VL + (int)(n - i); j++) {
        const int32_t x = j < 2 * VL ? all[j] : order[i + j - 2 * VL], less = x > best ? best : x;
        next = less > next ? less : next;
        best = x > best ? x : best;
    }
    return order_of(vset(n == 1 ? of_order(best) : of_order(best) + of_order(next)))[0];
}

/* The orders of groups, by those of their experts; 0 for the best, INT32_MIN for the others. */
INLINE void choose_groups(const route *a, const token *to, int64_t size) {
    const int64_t count = (a->e + size - 1) / size, padded = cpu_round_up(count, VL);
    for (int64_t g = 0; g < padded; g++)
        to->group[g] =
            g < count ? group_order(to->order + g * size, a->e - g * size < size ? a->e - g * size : size) : INT32_MIN;
    for (int64_t i = 0; i < a->args->groups_kept && i < count; i++) take(to->group, padded);
    for (int64_t g = 0; g < count; g++) to->group[g] = to->group[g] == INT32_MIN ? 0 : INT32_MIN;
}

/* The orders of all experts by their scores, bias included, or by their logits. */
INLINE void rank_by(const route *a, const token *to, const void *row, bool scores, trine_dtype T) {
    for (int64_t i = 0; i < a->padded; i += VL) {
        vf key = scores ? vload(to->score, TRINE_F32, i) : row_vector(row, T, i, a->e, 0);
        if (scores && a->bias) key += row_vector(a->bias, TRINE_F32, i, a->e, 0);
        const vi absent = viota() >= viset((int)(a->e - i < VL ? a->e - i : VL));
        *(vi_any *)(to->order + i) = visel(absent, viset(INT32_MIN), order_of(key));
    }
}

INLINE void rank(const route *a, const token *to, const void *row, trine_dtype T) {
    const int64_t groups = a->args->groups_kept > 0 ? a->args->groups : 0,
                  size = groups > 1 ? (a->e + groups - 1) / groups : a->e;
    const bool by_scores = a->bias != NULL;
    if (groups > 1) {
        rank_by(a, to, row, true, T);
        choose_groups(a, to, size);
    }
    if (groups <= 1 || !by_scores) rank_by(a, to, row, by_scores, T);
    for (int64_t g = 0; groups > 1 && g * size < a->e; g++)
        for (int64_t i = g * size; to->group[g] == INT32_MIN && i < a->e && i < (g + 1) * size; i++)
            to->order[i] = INT32_MIN;
}

INLINE void route_token(const route *a, const token *to, const void *row, float *weights, int32_t *experts,
                        float *scores, trine_dtype T) {
    const float total =
        a->args->gate == TRINE_GATE_SOFTMAX ? score_softmax(a, to, row, T) : score_sigmoid(a, to, row, T);
    for (int64_t i = 0; scores && i < a->e; i += VL)
        put_vector(scores, TRINE_F32, i, a->e, vload(to->score, TRINE_F32, i));
    rank(a, to, row, T);
    float sum = 0;
    for (int64_t j = 0; j < a->k; j++) {
        const int64_t at = take(to->order, a->padded);
        experts[j] = (int32_t)at;
        weights[j] = at < 0 ? 0 : to->power[at];
        sum += weights[j];
    }
    const float by = a->args->renormalise ? sum : total, scale = a->args->scale;
    for (int64_t j = 0; j < a->k; j++) weights[j] = experts[j] < 0 || by == 0 ? 0 : weights[j] / by * scale;
}

static int64_t memory_of(const trine_call *call) {
    return 4 * cpu_round_up(call->dim[MOE_ROUTE_DIM_E], LANES) * (int64_t)sizeof(float);
}

static void *row_of(const trine_call *call, int tensor, int64_t i) {
    const trine_tensor *t = &call->tensor[tensor];
    return call->present >> tensor & 1 ? (char *)t->data + i * t->stride[0] * (int64_t)trine_dtype_size(t->dtype)
                                       : NULL;
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t e = call->dim[MOE_ROUTE_DIM_E];
    const route a = { .args = call->args,
                      .bias = row_of(call, MOE_ROUTE_BIAS, 0),
                      .e = e,
                      .padded = cpu_round_up(e, LANES),
                      .k = call->dim[MOE_ROUTE_DIM_K] };
    float *memory = (float *)(void *)((char *)call->workspace + thread * memory_of(call));
    const token to = { memory, memory + a.padded, (int32_t *)(void *)(memory + 2 * a.padded),
                       (int32_t *)(void *)(memory + 3 * a.padded) };
    for (int64_t i = first; i < last; i++)
        FOR_TYPE(call->type[MOE_ROUTE_TYPE_T], route_token, &a, &to, row_of(call, MOE_ROUTE_LOGITS, i),
                 row_of(call, MOE_ROUTE_WEIGHTS, i), row_of(call, MOE_ROUTE_EXPERTS, i),
                 row_of(call, MOE_ROUTE_SCORES, i));
}

/* A token costs about as many bytes as this. */
static int64_t token_bytes(const trine_call *call) {
    return call->dim[MOE_ROUTE_DIM_E] * (32 + 2 * call->dim[MOE_ROUTE_DIM_K]);
}
static int team_of(const trine_call *call) {
    const int64_t t = call->dim[MOE_ROUTE_DIM_T];
    return cpu_team(call, t, t * token_bytes(call));
}

static const char *refuse(const trine_call *call) {
    return call->dim[MOE_ROUTE_DIM_E] > INT32_MAX ? "more than 2^31 - 1 experts" : NULL;
}

static size_t workspace(const trine_call *call) { return (size_t)(team_of(call) * memory_of(call)); }

static trine_status launch(const trine_call *call) {
    cpu_shares(call, team_of(call), call->dim[MOE_ROUTE_DIM_T], rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MOE_ROUTE_DIM_E, VL);
    trine_kernel_edge(edges, MOE_ROUTE_DIM_E, LANES);
    cpu_team_edge(edges, MOE_ROUTE_DIM_T, token_bytes(call));
}

CPU_KERNELS(moe_route) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
