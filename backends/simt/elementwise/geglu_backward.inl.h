/* SPDX-License-Identifier: Apache-2.0 */
/* geglu_backward on devices. */
#include "gated.h"
#include "gelu.h"
#include "backends/simt/core/walk.h"
#include "spec/places/geglu_backward.h"

using geglu_backward_params = walk_call<trine_geglu_backward_args>;

template <class T> struct geglu_backward_op {
    template <int N> static DEVICE void step(const geglu_backward_params &p, const unit &u) {
        float dy[N], gate[N], up[N];
        unit_load<T>(dy, p.walk, GEGLU_BACKWARD_DY, u);
        unit_load<T>(gate, p.walk, GEGLU_BACKWARD_GATE, u);
        unit_load<T>(up, p.walk, GEGLU_BACKWARD_UP, u);
        gelu_each<N>(p.args.form, [&](int k, auto form) {
            const gelu_pair g = form.with_slope(gate[k]);
            up[k] = gated_slope(g.slope, up[k], dy[k]);
            gate[k] = g.y * dy[k];
        });
        unit_store<T>(up, p.walk, GEGLU_BACKWARD_DGATE, u);
        unit_store<T>(gate, p.walk, GEGLU_BACKWARD_DUP, u);
    }
};

EACH_FLOAT_1(WALK_1, geglu_backward, geglu_backward_params)
