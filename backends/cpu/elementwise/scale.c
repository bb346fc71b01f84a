/* SPDX-License-Identifier: Apache-2.0 */
/* scale on the CPU. */
#include "elementwise.h"
#include "spec/places/scale.h"

INLINE void step(const run *r, const trine_scale_args *args, trine_dtype tx, trine_dtype ty, span s) {
    span_store(r, SCALE_Y, ty, s, vfma(vset(args->alpha), span_load_any(r, SCALE_X, tx, s), vset(args->shift)));
}

INLINE void mixed(const run *r, const trine_scale_args *args, trine_dtype tx, trine_dtype ty) {
    EACH_SPAN(r, SCALE_Y, ty, step, r, args, tx, ty);
}

INLINE void same(const run *r, const trine_scale_args *args, trine_dtype T) { mixed(r, args, T, T); }

static void row(const run *r) {
    const trine_scale_args *args = r->call->args;
    const trine_tensor *t = r->call->tensor;
    if (t[SCALE_X].dtype == t[SCALE_Y].dtype)
        FOR_TYPE(t[SCALE_Y].dtype, same, r, args);
    else
        mixed(r, args, t[SCALE_X].dtype, t[SCALE_Y].dtype);
}

WALK_KERNELS(scale, walk_edges);
