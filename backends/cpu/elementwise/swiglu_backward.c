/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_backward on the CPU. */
#include "elementwise.h"
#include "backends/cpu/core/vec_math.h"
#include "spec/places/swiglu_backward.h"

INLINE void step(const run *r, trine_dtype T, span s) {
    const vf dy = span_load(r, SWIGLU_BACKWARD_DY, T, s), gate = span_load(r, SWIGLU_BACKWARD_GATE, T, s),
             up = span_load(r, SWIGLU_BACKWARD_UP, T, s);
    const vf sigmoid = vsigmoid(gate), slope = sigmoid * vfma(gate, vsigmoid(-gate), vset(1.0f));
    span_store(r, SWIGLU_BACKWARD_DGATE, T, s, gated_slope(slope, up, dy));
    s.stream = false; /* dgate and dup need not be aligned alike */
    span_store(r, SWIGLU_BACKWARD_DUP, T, s, gate * sigmoid * dy);
}

INLINE void body(const run *r, trine_dtype T) { EACH_SPAN(r, SWIGLU_BACKWARD_DGATE, T, step, r, T); }

static void row(const run *r) { FOR_TYPE(r->call->tensor[SWIGLU_BACKWARD_DY].dtype, body, r); }

WALK_KERNELS(swiglu_backward, walk_edges);
