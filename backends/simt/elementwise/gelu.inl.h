/* SPDX-License-Identifier: Apache-2.0 */
/* gelu on devices: neither form goes through 1 + tanh or 1 + erf, so that the far tails are right too. */
#include <trine/trine.h>

#include "backends/simt/core/math.h"
#include "backends/simt/core/walk.h"
#include "spec/places/gelu.h"

using gelu_params = walk_call<trine_gelu_args>;

template <class T> struct gelu_op {
    template <int N> static DEVICE void step(const gelu_params &p, const unit &u) {
        float x[N];
        unit_load<T>(x, p.walk, GELU_X, u);
        if (p.args.form == TRINE_GELU_TANH) {
#pragma unroll
            for (int k = 0; k < N; k++) x[k] *= gelu_logistic(x[k]).of;
        } else {
#pragma unroll
            for (int k = 0; k < N; k++) x[k] = normal_gate<T>(x[k]);
        }
        unit_store<T>(x, p.walk, GELU_Y, u);
    }
};

EACH_FLOAT_1(WALK_1, gelu, gelu_params)
