/* SPDX-License-Identifier: Apache-2.0 */
/* adamw on devices: one pass over all the state. */
#include "adamw.h"
#include "backends/simt/core/walk.h"
#include "spec/places/adamw.h"

template <class T, class G, class S> struct adamw_op {
    template <int N> static DEVICE void step(const adamw_params &p, const unit &u) {
        float param[N], grad[N], m[N], v[N];
        const float scale = p.grad_scale ? *p.grad_scale : 1.0f;
        unit_load<T>(param, p.walk, ADAMW_PARAM, u);
        unit_load<G>(grad, p.walk, ADAMW_GRAD, u);
        unit_load<S>(m, p.walk, ADAMW_M, u);
        unit_load<S>(v, p.walk, ADAMW_V, u);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float g = grad[k] * scale;
            m[k] = fused(p.beta1, m[k], p.rest1 * g);
            v[k] = fused(p.beta2, v[k], p.rest2 * (g * g));
            const float denominator = fused(square_root(v[k]), p.inverse_root, p.eps);
            param[k] = fused(-p.rate, m[k] / denominator, fused(-p.decay, param[k], param[k]));
        }
        unit_store<T>(param, p.walk, ADAMW_PARAM, u);
        unit_store<S>(m, p.walk, ADAMW_M, u);
        unit_store<S>(v, p.walk, ADAMW_V, u);
        if (!p.walk.data[ADAMW_COPY]) return;
        if (p.copy_bf16)
            unit_store<bf16>(param, p.walk, ADAMW_COPY, u);
        else
            unit_store<f16>(param, p.walk, ADAMW_COPY, u);
    }
};

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
