/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route_backward on devices: 32 threads have a token, each every 32nd of its experts, which looks for the slots
 * that name it. Powers are made anew wherever they are needed.
 *
 * NOTES. Floor: logits and dscores once, dlogits once. */
#include "moe_route_backward.h"
#include "moe_power.inl.h"

struct route_token {
    const route_backward_params &p;
    int64_t row;
    const int32_t *experts;
    const float *dweights, *dscores; /* dscores: null if absent */
    float origin, total;             /* softmax: the largest logit, and the sum of powers */
    int lane;

    DEVICE float logit(int32_t j) const { return route_logit(p.logits.data, p.type, row * p.logits.row + j); }
    /* What an expert's score is divided from, and for sigmoid what the score leaves of 1. */
    DEVICE float power(int32_t j) const {
        const float x = logit(j), e = pinned_power(p.sigmoid ? -magnitude(x) : x - origin);
        return p.sigmoid ? (x < 0 ? e : 1.0f) / (1.0f + e) : e;
    }
    DEVICE float rest(int32_t j) const {
        const float x = logit(j), e = pinned_power(-magnitude(x));
        return p.sigmoid ? (x < 0 ? 1.0f : e) / (1.0f + e) : 1.0f;
    }
    DEVICE int32_t named(int32_t slot) const {
        const int32_t id = experts[slot];
        return id >= 0 && id < p.e ? id : -1;
    }
    DEVICE float gradient(int32_t slot) const { return product(p.scale, dweights[slot]); }
    /* What is added up of the gradients of expert j's score. */
    DEVICE float score_gradient(int32_t j) const {
        float sum = dscores ? dscores[j] : 0;
        for (int32_t a = 0; !p.renormalise && a < p.k; a++)
            if (experts[a] == j) sum += gradient(a);
        return sum;
    }
    DEVICE void find_total() {
        uint32_t top = 0;
        for (int32_t j = lane; j < p.e; j += ROUTE_LANES) top = later_order()(route_order(logit(j)), top);
        origin = route_origin(group_combine<ROUTE_LANES>(top, later_order()));
        float sum = 0;
        for (int32_t j = lane; j < p.e; j += ROUTE_LANES) sum += power(j);
        total = group_sum<ROUTE_LANES>(sum);
    }
};

DEVICE void route_put(const route_backward_params &p, int64_t i, float x) {
    if (p.type == ROUTE_F32)
        store_one<f32>(p.dlogits.data, i, x);
    else if (p.type == ROUTE_BF16)
        store_one<bf16>(p.dlogits.data, i, x);
    else
        store_one<f16>(p.dlogits.data, i, x);
}

ENTRY(moe_route_backward, ROUTE_TOKENS *ROUTE_LANES, route_backward_params) {
    const int lane = thread_index() % ROUTE_LANES;
    const int64_t token = block_index() * ROUTE_TOKENS + thread_index() / ROUTE_LANES,
                  row = token < p.tokens ? token : p.tokens - 1; /* threads of no token go along */
    route_token at = { p,
                       row,
                       (const int32_t *)p.experts.data + row * p.experts.row,
                       (const float *)p.dweights.data + row * p.dweights.row,
                       p.dscores.data ? (const float *)p.dscores.data + row * p.dscores.row : nullptr,
                       0.0f,
                       1.0f,
                       lane };
    if (!p.sigmoid) at.find_total();
    const bool all = at.dscores || !p.renormalise;
    float mean = 0;
    for (int32_t j = lane; all && !p.sigmoid && j < p.e; j += ROUTE_LANES)
        mean += product(at.power(j) / at.total, at.score_gradient(j));
    mean = group_sum<ROUTE_LANES>(mean);
    float chosen = 0, chosen_mean = 0;
    for (int32_t a = lane; p.renormalise && a < p.k; a += ROUTE_LANES)
        if (at.named(a) >= 0) chosen += at.power(at.named(a));
    chosen = group_sum<ROUTE_LANES>(chosen);
    for (int32_t a = lane; p.renormalise && chosen != 0 && a < p.k; a += ROUTE_LANES)
        if (at.named(a) >= 0) chosen_mean += product(at.power(at.named(a)) / chosen, at.gradient(a));
    chosen_mean = group_sum<ROUTE_LANES>(chosen_mean);
    for (int32_t j = lane; token < p.tokens && j < p.e; j += ROUTE_LANES) {
        float x = all ? product(product(at.power(j) / at.total, at.rest(j)), at.score_gradient(j) - mean) : 0.0f;
        for (int32_t a = 0; p.renormalise && chosen != 0 && a < p.k; a++)
            if (at.experts[a] == j)
                x += product(product(at.power(j) / chosen, at.rest(j)), at.gradient(a) - chosen_mean);
        route_put(p, row * p.dlogits.row + j, x);
    }
}
