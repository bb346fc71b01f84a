/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu on devices. */
#include <trine/elementwise.h>

#include "backends/simt/core/math.h"
#include "backends/simt/core/walk.h"
#include "spec/places/swiglu.h"

using swiglu_params = walk_call<trine_swiglu_args>;

template <class T> struct swiglu_op {
    template <int N> static DEVICE void step(const swiglu_params &p, const unit &u) {
        float gate[N], up[N];
        unit_load<T>(gate, p.walk, SWIGLU_GATE, u);
        unit_load<T>(up, p.walk, SWIGLU_UP, u);
#pragma unroll
        for (int k = 0; k < N; k++) up[k] = gate[k] * sigmoid(gate[k]) * up[k];
        unit_store<T>(up, p.walk, SWIGLU_Y, u);
    }
};

EACH_FLOAT_1(WALK_1, swiglu, swiglu_params)
