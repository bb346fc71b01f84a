/* SPDX-License-Identifier: Apache-2.0 */
/* gelu on devices. */
#include "gelu.h"
#include "backends/simt/core/walk.h"
#include "spec/places/gelu.h"

using gelu_params = walk_call<trine_gelu_args>;

template <class T> struct gelu_op {
    template <int N> static DEVICE void step(const gelu_params &p, const unit &u) {
        float x[N];
        unit_load<T>(x, p.walk, GELU_X, u);
        gelu_each<N>(p.args.form, [&](int k, auto form) { x[k] = form.template value<T>(x[k]); });
        unit_store<T>(x, p.walk, GELU_Y, u);
    }
};

EACH_FLOAT_1(WALK_1, gelu, gelu_params)
