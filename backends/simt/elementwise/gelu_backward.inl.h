/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_backward on devices. */
#include <trine/trine.h>

#include "backends/simt/core/math.h"
#include "backends/simt/core/walk.h"
#include "spec/places/gelu_backward.h"

using gelu_backward_params = walk_call<trine_gelu_backward_args>;

DEVICE float gelu_tanh_slope(float x) {
    const float bounded = x > 20 ? 20 : x < -20 ? -20 : x; /* there s(1-s) is 0 already; x^2 must not become Inf */
    const logistic s = gelu_logistic(bounded);
    return fused(s.of * s.of_minus * fused(bounded * bounded, 0.214064449f, 1.59576912f), x, s.of);
}

DEVICE float gelu_erf_slope(float x) {
    const normal f = normal_of(x);
    return fused(x, f.pdf, f.cdf);
}

template <class T> struct gelu_backward_op {
    template <int N> static DEVICE void step(const gelu_backward_params &p, const unit &u) {
        float dy[N], x[N];
        unit_load<T>(dy, p.walk, GELU_BACKWARD_DY, u);
        unit_load<T>(x, p.walk, GELU_BACKWARD_X, u);
        if (p.args.form == TRINE_GELU_TANH) {
#pragma unroll
            for (int k = 0; k < N; k++) dy[k] *= gelu_tanh_slope(x[k]);
        } else {
#pragma unroll
            for (int k = 0; k < N; k++) dy[k] *= gelu_erf_slope(x[k]);
        }
        unit_store<T>(dy, p.walk, GELU_BACKWARD_DX, u);
    }
};

EACH_FLOAT_1(WALK_1, gelu_backward, gelu_backward_params)
