/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu on the CPU. */
#include "elementwise.h"
#include "backends/cpu/core/vec_math.h"
#include "spec/places/swiglu.h"

INLINE void step(const run *r, trine_dtype T, span s) {
    const vf gate = span_load(r, SWIGLU_GATE, T, s), up = span_load(r, SWIGLU_UP, T, s);
    span_store(r, SWIGLU_Y, T, s, gate * vsigmoid(gate) * up);
}

INLINE void body(const run *r, trine_dtype T) { EACH_SPAN(r, SWIGLU_Y, T, step, r, T); }

static void row(const run *r) { FOR_TYPE(r->call->tensor[SWIGLU_Y].dtype, body, r); }

WALK_KERNELS(swiglu, walk_edges);
