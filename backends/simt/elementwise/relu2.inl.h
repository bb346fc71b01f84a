/* SPDX-License-Identifier: Apache-2.0 */
/* relu2 on devices. */
#include <trine/elementwise.h>

#include "backends/simt/core/walk.h"
#include "spec/places/relu2.h"

using relu2_params = walk_call<trine_relu2_args>;

template <class T> struct relu2_op {
    template <int N> static DEVICE void step(const relu2_params &p, const unit &u) {
        float x[N];
        unit_load<T>(x, p.walk, RELU2_X, u);
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = not_negative(x[k]) * not_negative(x[k]);
        unit_store<T>(x, p.walk, RELU2_Y, u);
    }
};

EACH_FLOAT_1(WALK_1, relu2, relu2_params)
