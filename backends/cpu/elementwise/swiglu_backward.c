/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_backward on the CPU. */
#include "elementwise.h"
#include "backends/cpu/core/vec_math.h"
#include "spec/places/swiglu_backward.h"

/* sigmoid(x), and sigmoid(-x), by one exponential and one division. Errors below 3 ulp. */
INLINE vf both_sigmoids(vf x, vf *other_out) {
    const vf e = vexp(-vabs(x)), larger = 1.0f / (1.0f + e), smaller = e * larger;
    *other_out = vsel(x < vzero(), larger, smaller);
    return vsel(x < vzero(), smaller, larger);
}

INLINE void step(const run *r, trine_dtype T, span s) {
    const vf dy = span_load(r, SWIGLU_BACKWARD_DY, T, s), gate = span_load(r, SWIGLU_BACKWARD_GATE, T, s),
             up = span_load(r, SWIGLU_BACKWARD_UP, T, s);
    vf other;
    const vf sigmoid = both_sigmoids(gate, &other), slope = sigmoid * vfma(gate, other, vset(1.0f));
    span_store(r, SWIGLU_BACKWARD_DGATE, T, s, gated_slope(slope, up, dy));
    s.stream = false; /* dgate and dup need not be aligned alike */
    span_store(r, SWIGLU_BACKWARD_DUP, T, s, gate * sigmoid * dy);
}

INLINE void body(const run *r, trine_dtype T) { EACH_SPAN(r, SWIGLU_BACKWARD_DGATE, T, step, r, T); }

static void row(const run *r) { FOR_TYPE(r->call->tensor[SWIGLU_BACKWARD_DY].dtype, body, r); }

WALK_KERNELS(swiglu_backward, walk_edges);
