/* SPDX-License-Identifier: Apache-2.0 */
/* add on devices. */
#include <trine/elementwise.h>

#include "backends/simt/core/walk.h"
#include "spec/places/add.h"

using add_params = walk_call<trine_add_args>;

template <class A, class B, class T> struct add_op {
    template <int N> static DEVICE void step(const add_params &p, const unit &u) {
        float a[N], b[N];
        unit_load_broadcast<A>(a, p.walk, ADD_A, u);
        unit_load_broadcast<B>(b, p.walk, ADD_B, u);
#pragma unroll
        for (int k = 0; k < N; k++) a[k] = fused(p.args.alpha, a[k], p.args.beta * b[k]);
        unit_store<T>(a, p.walk, ADD_Y, u);
    }
};

WALK_TYPES_3(ADD, A, B, T)
EACH_FLOAT_3(WALK_3, add, add_params)
