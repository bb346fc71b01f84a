/* SPDX-License-Identifier: Apache-2.0 */
/* geglu on the CPU. */
#include "elementwise.h"
#include "gelu.h"
#include "spec/places/geglu.h"

INLINE void step(const run *r, int32_t form, trine_dtype T, span s) {
    const vf gate = span_load(r, GEGLU_GATE, T, s), up = span_load(r, GEGLU_UP, T, s);
    span_store(r, GEGLU_Y, T, s, vgelu(form, gate) * up);
}

INLINE void body(const run *r, int32_t form, trine_dtype T) { EACH_SPAN(r, GEGLU_Y, T, step, r, form, T); }

static void row(const run *r) {
    const trine_geglu_args *args = r->call->args;
    FOR_GELU(args->form, r->call->tensor[GEGLU_Y].dtype, body, r);
}

WALK_KERNELS(geglu, walk_edges);
