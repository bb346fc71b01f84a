/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on devices: one pass over all the state. */
#include "adamw.h"
#include "adamw_told.inl.h"
#include "optimizer.inl.h"
#include "spec/places/adamw.h"

DEVICE bool adamw_skips(const adamw_step &p) { return p.found_inf && *p.found_inf != 0; }

template <int N>
DEVICE void adamw_update(float (&param)[N], const float (&grad)[N], float (&m)[N], float (&v)[N], const adamw_step &p) {
    const float scale = p.grad_scale ? *p.grad_scale : 1.0f;
    const adamw_scalars s = p.told ? *p.told : p.scalars;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const float g = grad[k] * scale;
        m[k] = fused(p.beta1, m[k], p.rest1 * g);
        v[k] = fused(p.beta2, v[k], p.rest2 * (g * g));
        const float denominator = fused(square_root(v[k]), s.inverse_root, p.eps);
        param[k] = fused(-s.rate, m[k] / denominator, fused(-s.decay, param[k], param[k]));
    }
}

template <class T, class G, class S> struct adamw_op {
    template <int N> static DEVICE void step(const adamw_params &p, const unit &u) {
        float param[N], grad[N], m[N], v[N];
        if (adamw_skips(p.step)) {
            if (!p.walk.data[ADAMW_COPY]) return;
            unit_load<T>(param, p.walk, ADAMW_PARAM, u);
            optimizer_copy(param, p.walk, ADAMW_COPY, p.copy_bf16, u);
            return;
        }
        unit_load<T>(param, p.walk, ADAMW_PARAM, u);
        unit_load<G>(grad, p.walk, ADAMW_GRAD, u);
        unit_load<S>(m, p.walk, ADAMW_M, u);
        unit_load<S>(v, p.walk, ADAMW_V, u);
        adamw_update(param, grad, m, v, p.step);
        unit_store<S>(m, p.walk, ADAMW_M, u);
        unit_store<S>(v, p.walk, ADAMW_V, u);
        if (p.walk.data[ADAMW_COPY]) optimizer_copy(param, p.walk, ADAMW_COPY, p.copy_bf16, u);
        by_chance_param<T>(param, p.step.chances, (uint64_t)u.index);
        unit_store<T>(param, p.walk, ADAMW_PARAM, u);
    }
};

/* The same of many tensors. */
DEVICE void adamw_list_step(const adamw_list_params &p) {
    constexpr int N = OPTIMIZER_LIST_VECTOR;
    const optimizer_item &item = p.list.item[list_place(p.list.item, p.list.count)];
    const lane l = optimizer_lane(item);
    if (l.at >= l.n) return;
    float param[N], grad[N], m[N], v[N];
    list_load(param, item.param, item.param_type, l);
    const bool skips = adamw_skips(p.step);
    if (!skips) {
        list_load(grad, item.grad, item.grad_type, l);
        list_load(m, item.m, item.state_type, l);
        list_load(v, item.v, item.state_type, l);
        adamw_update(param, grad, m, v, p.step);
        list_store(m, item.m, item.state_type, l);
        list_store(v, item.v, item.state_type, l);
    }
    if (item.copy) list_store(param, item.copy, item.copy_type, l);
    if (!skips) optimizer_list_param(param, item, p.step.chances, p.step.stochastic, l);
}
ENTRY(adamw_list, SIMT_THREADS, adamw_list_params) { adamw_list_step(p); }

ENTRY(adamw_told, ADAMW_TOLD_THREADS, adamw_told_params) {
    if (thread_index() == 0) *p.scalars = adamw_scalars_told(p);
}

#define ADAMW(T, G) WALK_3(adamw, adamw_params, T, G, f32) WALK_3(adamw, adamw_params, T, G, bf16)
ADAMW(f32, f32)
ADAMW(f32, bf16)
ADAMW(f32, f16)
ADAMW(bf16, f32)
ADAMW(bf16, bf16)
ADAMW(bf16, f16)
ADAMW(f16, f32)
ADAMW(f16, bf16)
ADAMW(f16, f16)
