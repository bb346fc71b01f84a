/* SPDX-License-Identifier: Apache-2.0 */
/* relu2_backward on devices. */
#include <trine/elementwise.h>

#include "backends/simt/core/walk.h"
#include "spec/places/relu2_backward.h"

using relu2_backward_params = walk_call<trine_relu2_backward_args>;

template <class T> struct relu2_backward_op {
    template <int N> static DEVICE void step(const relu2_backward_params &p, const unit &u) {
        float dy[N], x[N];
        unit_load<T>(dy, p.walk, RELU2_BACKWARD_DY, u);
        unit_load<T>(x, p.walk, RELU2_BACKWARD_X, u);
#pragma unroll
        for (int k = 0; k < N; k++) {
            dy[k] *= not_negative(x[k]);
            dy[k] += dy[k]; /* 2 max(x, 0) may overflow where dx does not */
        }
        unit_store<T>(dy, p.walk, RELU2_BACKWARD_DX, u);
    }
};

EACH_FLOAT_1(WALK_1, relu2_backward, relu2_backward_params)
