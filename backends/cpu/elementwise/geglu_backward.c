/* SPDX-License-Identifier: Apache-2.0 */
/* geglu_backward on the CPU. */
#include "elementwise.h"
#include "gelu.h"
#include "spec/places/geglu_backward.h"

INLINE void step(const run *r, int32_t form, trine_dtype T, span s) {
    const vf dy = span_load(r, GEGLU_BACKWARD_DY, T, s), gate = span_load(r, GEGLU_BACKWARD_GATE, T, s),
             up = span_load(r, GEGLU_BACKWARD_UP, T, s);
    vf y;
    const vf slope = vgelu_slope(form, gate, &y);
    span_store(r, GEGLU_BACKWARD_DGATE, T, s, gated_slope(slope, up, dy));
    s.stream = false; /* dgate and dup need not be aligned alike */
    span_store(r, GEGLU_BACKWARD_DUP, T, s, y * dy);
}

INLINE void body(const run *r, int32_t form, trine_dtype T) { EACH_SPAN(r, GEGLU_BACKWARD_DGATE, T, step, r, form, T); }

static void row(const run *r) {
    const trine_geglu_backward_args *args = r->call->args;
    FOR_GELU(args->form, r->call->tensor[GEGLU_BACKWARD_DY].dtype, body, r);
}

WALK_KERNELS(geglu_backward, walk_edges);
