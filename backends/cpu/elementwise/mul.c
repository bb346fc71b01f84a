/* SPDX-License-Identifier: Apache-2.0 */
/* mul on the CPU. */
#include "elementwise.h"
#include "spec/places/mul.h"

INLINE void step(const run *r, float alpha, trine_dtype ta, trine_dtype tb, trine_dtype ty, span s) {
    span_store(r, MUL_Y, ty, s, span_load_any(r, MUL_A, ta, s) * span_load_any(r, MUL_B, tb, s) * alpha);
}

INLINE void mixed(const run *r, float alpha, trine_dtype ta, trine_dtype tb, trine_dtype ty) {
    EACH_SPAN(r, MUL_Y, ty, step, r, alpha, ta, tb, ty);
}

INLINE void same(const run *r, float alpha, trine_dtype T) { mixed(r, alpha, T, T, T); }

static void row(const run *r) {
    const float alpha = ((const trine_mul_args *)r->call->args)->alpha;
    const trine_tensor *t = r->call->tensor;
    if (t[MUL_A].dtype == t[MUL_Y].dtype && t[MUL_B].dtype == t[MUL_Y].dtype)
        FOR_TYPE(t[MUL_Y].dtype, same, r, alpha);
    else
        mixed(r, alpha, t[MUL_A].dtype, t[MUL_B].dtype, t[MUL_Y].dtype);
}

WALK_KERNELS(mul, walk_edges);
