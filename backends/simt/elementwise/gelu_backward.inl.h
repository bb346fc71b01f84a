/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_backward on devices. */
#include "gelu.h"
#include "backends/simt/core/walk.h"
#include "spec/places/gelu_backward.h"

using gelu_backward_params = walk_call<trine_gelu_backward_args>;

template <class T> struct gelu_backward_op {
    template <int N> static DEVICE void step(const gelu_backward_params &p, const unit &u) {
        float dy[N], x[N];
        unit_load<T>(dy, p.walk, GELU_BACKWARD_DY, u);
        unit_load<T>(x, p.walk, GELU_BACKWARD_X, u);
        gelu_each<N>(p.args.form, [&](int k, auto form) { dy[k] *= form.with_slope(x[k]).slope; });
        unit_store<T>(dy, p.walk, GELU_BACKWARD_DX, u);
    }
};

EACH_FLOAT_1(WALK_1, gelu_backward, gelu_backward_params)
