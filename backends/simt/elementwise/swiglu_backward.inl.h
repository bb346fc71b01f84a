/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_backward on devices. */
#include <trine/elementwise.h>

#include "gated.h"
#include "backends/simt/core/walk.h"
#include "spec/places/swiglu_backward.h"

using swiglu_backward_params = walk_call<trine_swiglu_backward_args>;

template <class T> struct swiglu_backward_op {
    template <int N> static DEVICE void step(const swiglu_backward_params &p, const unit &u) {
        float dy[N], gate[N], up[N];
        unit_load<T>(dy, p.walk, SWIGLU_BACKWARD_DY, u);
        unit_load<T>(gate, p.walk, SWIGLU_BACKWARD_GATE, u);
        unit_load<T>(up, p.walk, SWIGLU_BACKWARD_UP, u);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const logistic s = logistic_of(gate[k]);
            up[k] = gated_slope(s.of * fused(gate[k], s.of_minus, 1.0f), up[k], dy[k]);
            gate[k] = gate[k] * s.of * dy[k];
        }
        unit_store<T>(up, p.walk, SWIGLU_BACKWARD_DGATE, u);
        unit_store<T>(gate, p.walk, SWIGLU_BACKWARD_DUP, u);
    }
};

EACH_FLOAT_1(WALK_1, swiglu_backward, swiglu_backward_params)
