/* SPDX-License-Identifier: Apache-2.0 */
/* relu2 on the CPU. */
#include "elementwise.h"
#include "spec/places/relu2.h"

INLINE void step(const run *r, trine_dtype T, span s) {
    const vf h = vmax(vzero(), span_load(r, RELU2_X, T, s)); /* NaN stays */
    span_store(r, RELU2_Y, T, s, h * h);
}

INLINE void body(const run *r, trine_dtype T) { EACH_SPAN(r, RELU2_Y, T, step, r, T); }

static void row(const run *r) { FOR_TYPE(r->call->tensor[RELU2_Y].dtype, body, r); }

WALK_KERNELS(relu2, walk_edges);
