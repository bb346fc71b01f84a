/* SPDX-License-Identifier: Apache-2.0 */
/* sgd on devices: one pass over all the state. */
#include "sgd.h"
#include "optimizer.inl.h"
#include "spec/places/sgd.h"

template <class T, class G, class S> struct sgd_op {
    template <int N> static DEVICE void skip(const sgd_params &p, const unit &u) {
        float x[N] = {};
        if (p.walk.data[SGD_UPDATE]) unit_store<f32>(x, p.walk, SGD_UPDATE, u);
        if (!p.walk.data[SGD_COPY]) return;
        unit_load<T>(x, p.walk, SGD_PARAM, u);
        optimizer_copy(x, p.walk, SGD_COPY, p.copy_bf16, u);
    }

    /* What the step is along; the moment is replaced. */
    template <int N> static DEVICE void update(float (&g)[N], const sgd_params &p, const unit &u) {
        const float scale = p.grad_scale ? *p.grad_scale : 1.0f;
        float m[N];
        unit_load<G>(g, p.walk, SGD_GRAD, u);
#pragma unroll
        for (int k = 0; k < N; k++) g[k] = g[k] * scale;
        if (!p.walk.data[SGD_MOMENT]) return;
        unit_load<S>(m, p.walk, SGD_MOMENT, u);
#pragma unroll
        for (int k = 0; k < N; k++) {
            m[k] = fused(p.momentum, m[k], p.part * g[k]);
            g[k] = p.nesterov ? fused(p.momentum, m[k], p.part * g[k]) : m[k];
        }
        unit_store<S>(m, p.walk, SGD_MOMENT, u);
    }

    template <int N> static DEVICE void step(const sgd_params &p, const unit &u) {
        if (p.found_inf && *p.found_inf != 0) {
            skip<N>(p, u);
            return;
        }
        float x[N], along[N];
        update(along, p, u);
        if (p.walk.data[SGD_UPDATE]) unit_store<f32>(along, p.walk, SGD_UPDATE, u);
        if (!p.walk.data[SGD_PARAM]) return;
        const float lr = p.told_lr ? *p.told_lr : p.lr, decay = product(lr, p.weight_decay),
                    rate = product(lr, p.scale);
        unit_load<T>(x, p.walk, SGD_PARAM, u);
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = fused(-rate, along[k], fused(-decay, x[k], x[k]));
        if (p.walk.data[SGD_COPY]) optimizer_copy(x, p.walk, SGD_COPY, p.copy_bf16, u);
        by_chance_param<T>(x, p.chances, (uint64_t)u.index);
        unit_store<T>(x, p.walk, SGD_PARAM, u);
    }
};

#define SGD(T, G) WALK_3(sgd, sgd_params, T, G, f32) WALK_3(sgd, sgd_params, T, G, bf16)
SGD(f32, f32)
SGD(f32, bf16)
SGD(f32, f16)
SGD(bf16, f32)
SGD(bf16, bf16)
SGD(bf16, f16)
SGD(f16, f32)
SGD(f16, bf16)
SGD(f16, f16)
