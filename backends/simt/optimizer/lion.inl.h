/* SPDX-License-Identifier: Apache-2.0 */
/* lion on devices: one pass over all the state. */
#include "lion.h"
#include "optimizer.inl.h"
#include "spec/places/lion.h"

DEVICE bool lion_skips(const lion_step &p) { return p.found_inf && *p.found_inf != 0; }

/* Each operation of what the sign is of is rounded. */
template <int N> DEVICE void lion_update(float (&param)[N], const float (&grad)[N], float (&m)[N], const lion_step &p) {
    const float scale = p.grad_scale ? *p.grad_scale : 1.0f, lr = p.told_lr ? *p.told_lr : p.lr,
                decay = product(lr, p.weight_decay);
#pragma unroll
    for (int k = 0; k < N; k++) {
        const float g = product(grad[k], scale);
        const float c = product(p.beta1, m[k]) + product(p.rest1, g);
        const float sign = c > 0 ? 1.0f : c < 0 ? -1.0f : c == 0 ? 0.0f : c;
        m[k] = fused(p.beta2, m[k], p.rest2 * g);
        param[k] = fused(-lr, sign, fused(-decay, param[k], param[k]));
    }
}

template <class T, class G, class S> struct lion_op {
    template <int N> static DEVICE void step(const lion_params &p, const unit &u) {
        float param[N], grad[N], m[N];
        const bool copies = p.walk.data[LION_COPY], skips = lion_skips(p.step);
        if (skips && !copies) return;
        unit_load<T>(param, p.walk, LION_PARAM, u);
        if (!skips) {
            unit_load<G>(grad, p.walk, LION_GRAD, u);
            unit_load<S>(m, p.walk, LION_M, u);
            lion_update(param, grad, m, p.step);
            unit_store<S>(m, p.walk, LION_M, u);
        }
        if (copies) optimizer_copy(param, p.walk, LION_COPY, p.copy_bf16, u);
        if (skips) return;
        by_chance_param<T>(param, p.step.chances, (uint64_t)u.index);
        unit_store<T>(param, p.walk, LION_PARAM, u);
    }
};

/* The same of many tensors. */
ENTRY(lion_list, SIMT_THREADS, lion_list_params) {
    constexpr int N = OPTIMIZER_LIST_VECTOR;
    const optimizer_item &item = p.list.item[list_place(p.list.item, p.list.count)];
    const lane l = optimizer_lane(item);
    if (l.at >= l.n) return;
    float param[N], grad[N], m[N];
    list_load(param, item.param, item.param_type, l);
    const bool skips = lion_skips(p.step);
    if (!skips) {
        list_load(grad, item.grad, item.grad_type, l);
        list_load(m, item.m, item.state_type, l);
        lion_update(param, grad, m, p.step);
        list_store(m, item.m, item.state_type, l);
    }
    if (item.copy) list_store(param, item.copy, item.copy_type, l);
    if (!skips) optimizer_list_param(param, item, p.step.chances, p.step.stochastic, l);
}

#define LION(T, G) WALK_3(lion, lion_params, T, G, f32) WALK_3(lion, lion_params, T, G, bf16)
LION(f32, f32)
LION(f32, bf16)
LION(f32, f16)
LION(bf16, f32)
LION(bf16, bf16)
LION(bf16, f16)
LION(f16, f32)
LION(f16, bf16)
LION(f16, f16)
