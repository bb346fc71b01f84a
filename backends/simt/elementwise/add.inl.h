/* SPDX-License-Identifier: Apache-2.0 */
/* add on devices. */
#include <trine/trine.h>

#include "backends/simt/core/walk.h"

using add_params = walk_call<trine_add_args>;

template <class A, class B, class T> struct add_op {
    template <int N> static DEVICE void step(const add_params &p, const unit &u) {
        float a[N], b[N];
        unit_load_broadcast<A>(a, p.walk, 0, u);
        unit_load_broadcast<B>(b, p.walk, 1, u);
#pragma unroll
        for (int k = 0; k < N; k++) a[k] = fused(p.args.alpha, a[k], p.args.beta * b[k]);
        unit_store<T>(a, p.walk, 2, u);
    }
};

EACH_FLOAT_3(WALK_3, add, add_params)
