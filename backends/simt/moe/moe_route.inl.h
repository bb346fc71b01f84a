/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route on devices: 32 threads have a token, each every 32nd of its experts. Scores are made by the operations that
 * spec/moe/moe_route.c prescribes, so that the choice is the CPU's; an expert is chosen by the largest key that is
 * left: its order and, turned over, its place.
 *
 * NOTES. Floor: logits once. */
#include "moe_route.h"
#include "moe_power.inl.h"

struct later_key {
    DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};

/* The largest key of a token's threads, each of which has `held` orders of places lane, lane + 32, ... */
template <int HELD> DEVICE uint64_t route_best(const uint32_t (&order)[HELD], int lane) {
    uint64_t best = 0;
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const uint64_t key = (uint64_t)order[j] << 32 | ~(uint32_t)(lane + j * ROUTE_LANES);
        if (order[j] != 0 && key > best) best = key;
    }
    return group_combine<ROUTE_LANES>(best, later_key());
}

/* What the two best scores of a group add up to, or its one. */
DEVICE uint32_t route_group_order(const float *score, int32_t n) {
    float best = score[0], second = 0;
    uint32_t best_order = route_order(best), second_order = 0;
    for (int32_t i = 1; i < n; i++) {
        const uint32_t order = route_order(score[i]);
        if (order > best_order)
            second = best, second_order = best_order, best = score[i], best_order = order;
        else if (order > second_order)
            second = score[i], second_order = order;
    }
    return route_order(n == 1 ? best : best + second);
}

/* Scores of all experts, and what they are made of; the sum, by which the latter are divided. */
template <int HELD>
DEVICE float route_scores(const route_params &p, const float (&x)[HELD], float (&power)[HELD], float (&score)[HELD]) {
    if (p.sigmoid) {
#pragma unroll
        for (int j = 0; j < HELD; j++) {
            const float e = pinned_power(-magnitude(x[j]));
            power[j] = score[j] = (x[j] < 0 ? e : 1.0f) / (1.0f + e);
        }
        return 1;
    }
    uint32_t top = 0;
#pragma unroll
    for (int j = 0; j < HELD; j++) top = later_order()(route_order(x[j]), top);
    top = group_combine<ROUTE_LANES>(top, later_order());
    const float origin = route_origin(top);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < HELD; j++) sum += power[j] = pinned_power(x[j] - origin);
    sum = group_sum<ROUTE_LANES>(sum);
#pragma unroll
    for (int j = 0; j < HELD; j++) score[j] = power[j] / sum;
    return sum;
}

/* Takes the order from experts whose group is not among the best. */
template <int HELD, int TOKENS>
DEVICE void route_leave(const route_params &p, const float (&score)[HELD], uint32_t (&order)[HELD], int lane) {
    SHARED float all[TOKENS][HELD * ROUTE_LANES];
    SHARED uint32_t kept[TOKENS][HELD * ROUTE_LANES];
    const int token = thread_index() / ROUTE_LANES;
    const int32_t size = (int32_t)p.group_size.by;
    uint32_t group[HELD];
#pragma unroll
    for (int j = 0; j < HELD; j++) all[token][lane + j * ROUTE_LANES] = score[j];
    sync_block();
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const int32_t g = lane + j * ROUTE_LANES, left = p.e - g * size;
        group[j] = g < p.groups ? route_group_order(&all[token][g * size], left < size ? left : size) : 0;
        kept[token][g] = 0;
    }
    for (int32_t i = 0; i < p.groups_kept && i < p.groups; i++) {
        const uint32_t best = ~(uint32_t)route_best(group, lane);
#pragma unroll
        for (int j = 0; j < HELD; j++)
            if (best == (uint32_t)(lane + j * ROUTE_LANES)) group[j] = 0, kept[token][best] = 1;
    }
    sync_block();
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const int32_t i = lane + j * ROUTE_LANES;
        if (i < p.e && !kept[token][quotient((uint32_t)i, p.group_size)]) order[j] = 0;
    }
}

/* The experts one by one, slot a by lane a % 32; their powers go to the weights, which are then divided. */
template <int HELD>
DEVICE void route_choose(const route_params &p, const float (&power)[HELD], uint32_t (&order)[HELD], float total,
                         int64_t token, int lane) {
    float *const weights = (float *)p.weights.data + token * p.weights.row;
    int32_t *const experts = (int32_t *)p.experts.data + token * p.experts.row;
    const bool there = token < p.tokens;
    float sum = 0;
    for (int32_t a = 0; a < p.k; a++) {
        const uint64_t key = route_best(order, lane);
        const int32_t best = key == 0 ? -1 : (int32_t)~(uint32_t)key;
        float mine = 0;
#pragma unroll
        for (int j = 0; j < HELD; j++)
            if (best == lane + j * ROUTE_LANES) order[j] = 0, mine = power[j];
        mine = group_sum<ROUTE_LANES>(mine);
        sum += mine;
        if (there && a % ROUTE_LANES == lane) experts[a] = best, weights[a] = mine;
    }
    const float by = p.renormalise ? sum : total;
    for (int32_t a = lane; there && a < p.k; a += ROUTE_LANES)
        weights[a] = experts[a] < 0 || by == 0 ? 0.0f : product(weights[a] / by, p.scale);
}

template <int HELD, int TOKENS> DEVICE void route(const route_params &p) {
    const int lane = thread_index() % ROUTE_LANES;
    const int64_t token = block_index() * TOKENS + thread_index() / ROUTE_LANES;
    const int64_t row = token < p.tokens ? token : p.tokens - 1; /* threads of no token go along */
    float x[HELD], power[HELD], score[HELD];
    uint32_t order[HELD];
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const int32_t i = lane + j * ROUTE_LANES;
        x[j] = i < p.e ? route_logit(p.logits.data, p.logit_type, row * p.logits.row + i) : -infinity();
    }
    const float total = route_scores<HELD>(p, x, power, score);
#pragma unroll
    for (int j = 0; j < HELD; j++) {
        const int32_t i = lane + j * ROUTE_LANES;
        if (i < p.e && p.scores.data && token < p.tokens) ((float *)p.scores.data + token * p.scores.row)[i] = score[j];
        if (i < p.e && p.bias) score[j] += p.bias[i];
        order[j] = i < p.e ? route_order(p.bias ? score[j] : x[j]) : 0;
    }
    if (p.groups) route_leave<HELD, TOKENS>(p, score, order, lane);
    route_choose<HELD>(p, power, order, total, token, lane);
}

ENTRY(moe_route_8, ROUTE_TOKENS *ROUTE_LANES, route_params) { route<ROUTE_FEW, ROUTE_TOKENS>(p); }
ENTRY(moe_route_32, ROUTE_TOKENS_MANY *ROUTE_LANES, route_params) { route<ROUTE_MANY, ROUTE_TOKENS_MANY>(p); }
