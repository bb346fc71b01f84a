/* SPDX-License-Identifier: Apache-2.0 */
/* relu2_backward on the CPU. */
#include "elementwise.h"
#include "spec/places/relu2_backward.h"

INLINE void step(const run *r, trine_dtype T, span s) {
    const vf h = vmax(vzero(), span_load(r, RELU2_BACKWARD_X, T, s)); /* NaN stays */
    const vf half = h * span_load(r, RELU2_BACKWARD_DY, T, s);        /* 2 h may overflow where dx does not */
    span_store(r, RELU2_BACKWARD_DX, T, s, half + half);
}

INLINE void body(const run *r, trine_dtype T) { EACH_SPAN(r, RELU2_BACKWARD_DX, T, step, r, T); }

static void row(const run *r) { FOR_TYPE(r->call->tensor[RELU2_BACKWARD_DX].dtype, body, r); }

WALK_KERNELS(relu2_backward, walk_edges);
