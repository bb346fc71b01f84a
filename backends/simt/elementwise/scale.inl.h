/* SPDX-License-Identifier: Apache-2.0 */
/* scale on devices. */
#include <trine/elementwise.h>

#include "backends/simt/core/walk.h"
#include "spec/places/scale.h"

using scale_params = walk_call<trine_scale_args>;

template <class X, class T> struct scale_op {
    template <int N> static DEVICE void step(const scale_params &p, const unit &u) {
        float x[N];
        unit_load_broadcast<X>(x, p.walk, SCALE_X, u);
#pragma unroll
        for (int k = 0; k < N; k++) x[k] = fused(p.args.alpha, x[k], p.args.shift);
        unit_store<T>(x, p.walk, SCALE_Y, u);
    }
};

WALK_TYPES_2(SCALE, X, T)
EACH_FLOAT_2(WALK_ASKING_2, scale, scale_params)
