/* SPDX-License-Identifier: Apache-2.0 */
/* mul on devices. */
#include <trine/elementwise.h>

#include "backends/simt/core/walk.h"
#include "spec/places/mul.h"

using mul_params = walk_call<trine_mul_args>;

template <class A, class B, class T> struct mul_op {
    template <int N> static DEVICE void step(const mul_params &p, const unit &u) {
        float a[N], b[N];
        unit_load_broadcast<A>(a, p.walk, MUL_A, u);
        unit_load_broadcast<B>(b, p.walk, MUL_B, u);
#pragma unroll
        for (int k = 0; k < N; k++) a[k] = p.args.alpha * (a[k] * b[k]);
        unit_store<T>(a, p.walk, MUL_Y, u);
    }
};

WALK_TYPES_3(MUL, A, B, T)
EACH_FLOAT_3(WALK_3, mul, mul_params)
