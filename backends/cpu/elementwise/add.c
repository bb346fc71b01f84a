/* SPDX-License-Identifier: Apache-2.0 */
/* add on the CPU. */
#include "elementwise.h"
#include "spec/places/add.h"

INLINE void step(const run *r, const trine_add_args *args, trine_dtype ta, trine_dtype tb, trine_dtype ty, span s) {
    const vf a = span_load_any(r, ADD_A, ta, s), b = span_load_any(r, ADD_B, tb, s);
    span_store(r, ADD_Y, ty, s, vfma(vset(args->alpha), a, args->beta * b));
}

INLINE void mixed(const run *r, const trine_add_args *args, trine_dtype ta, trine_dtype tb, trine_dtype ty) {
    EACH_SPAN(r, ADD_Y, ty, step, r, args, ta, tb, ty);
}

INLINE void same(const run *r, const trine_add_args *args, trine_dtype T) { mixed(r, args, T, T, T); }

static void row(const run *r) {
    const trine_add_args *args = r->call->args;
    const trine_tensor *t = r->call->tensor;
    if (t[ADD_A].dtype == t[ADD_Y].dtype && t[ADD_B].dtype == t[ADD_Y].dtype)
        FOR_TYPE(t[ADD_Y].dtype, same, r, args);
    else
        mixed(r, args, t[ADD_A].dtype, t[ADD_B].dtype, t[ADD_Y].dtype);
}

WALK_KERNELS(add, walk_edges);
