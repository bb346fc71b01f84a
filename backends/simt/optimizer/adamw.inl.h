/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on devices: one pass over all the state. */
#include "adamw.h"
#include "backends/simt/core/list.inl.h"
#include "backends/simt/core/walk.h"
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
            put_copy<N>(param, p, u);
            return;
        }
        unit_load<T>(param, p.walk, ADAMW_PARAM, u);
        unit_load<G>(grad, p.walk, ADAMW_GRAD, u);
        unit_load<S>(m, p.walk, ADAMW_M, u);
        unit_load<S>(v, p.walk, ADAMW_V, u);
        adamw_update(param, grad, m, v, p.step);
        unit_store<T>(param, p.walk, ADAMW_PARAM, u);
        unit_store<S>(m, p.walk, ADAMW_M, u);
        unit_store<S>(v, p.walk, ADAMW_V, u);
        if (p.walk.data[ADAMW_COPY]) put_copy<N>(param, p, u);
    }
    template <int N> static DEVICE void put_copy(const float (&param)[N], const adamw_params &p, const unit &u) {
        if (p.copy_bf16)
            unit_store<bf16>(param, p.walk, ADAMW_COPY, u);
        else
            unit_store<f16>(param, p.walk, ADAMW_COPY, u);
    }
};

/* The same of many tensors. */
DEVICE void adamw_list_step(const adamw_list_params &p) {
    constexpr int N = ADAMW_LIST_VECTOR;
    const adamw_item &item = p.item[list_place(p.item, p.count)];
    const uint64_t addresses =
        (uint64_t)item.param | (uint64_t)item.grad | (uint64_t)item.m | (uint64_t)item.v | (uint64_t)item.copy;
    const int64_t block = block_index() - item.first;
    const lane l = { (block * SIMT_THREADS + thread_index()) * N, item.n, addresses % 16 == 0 };
    if (l.at >= l.n) return;
    float param[N], grad[N], m[N], v[N];
    list_load(param, item.param, item.param_type, l);
    if (!adamw_skips(p.step)) {
        list_load(grad, item.grad, item.grad_type, l);
        list_load(m, item.m, item.state_type, l);
        list_load(v, item.v, item.state_type, l);
        adamw_update(param, grad, m, v, p.step);
        list_store(param, item.param, item.param_type, l);
        list_store(m, item.m, item.state_type, l);
        list_store(v, item.v, item.state_type, l);
    }
    if (item.copy) list_store(param, item.copy, item.copy_type, l);
}
ENTRY(adamw_list, SIMT_THREADS, adamw_list_params) { adamw_list_step(p); }

/* 1 - e^x for -1/4 < x <= 0, to the last bits of itself: 15 terms of its series. */
DEVICE double adamw_rest_of_small(double x) {
    double sum = 1;
#pragma unroll
    for (int i = 15; i > 1; i--) sum = 1 + x * (1.0 / i) * sum;
    return -x * sum;
}
/* And for any x <= 0, to 2^-42: e^x is the 256th power of e^(x/256); below 2^-66 it does not count. */
DEVICE double adamw_rest(double x) {
    if (x > -0.25) return adamw_rest_of_small(x);
    if (x < -46) return 1;
    double power = 1 - adamw_rest_of_small(x / 256);
#pragma unroll
    for (int i = 0; i < 8; i++) power *= power;
    return 1 - power;
}

/* A number of a step that only the host could refuse makes NaN. */
ENTRY(adamw_told, ADAMW_TOLD_THREADS, adamw_told_params) {
    if (thread_index() != 0) return;
    const double lr = p.lr ? *p.lr : p.lr_here;
    const int64_t step = p.step ? *p.step : p.step_here;
    const float rate = (float)(lr / adamw_rest((double)step * p.log1)); /* 1 - beta^t without cancellation */
    *p.scalars = { (float)(lr * p.weight_decay), step < 1 ? not_a_number() : rate,
                   (float)(1 / square_root(adamw_rest((double)step * p.log2))) };
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
