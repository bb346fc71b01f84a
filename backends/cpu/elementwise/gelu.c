/* SPDX-License-Identifier: Apache-2.0 */
/* gelu on the CPU. */
#include "elementwise.h"
#include "gelu.h"
#include "spec/places/gelu.h"

INLINE void step(const run *r, int32_t form, trine_dtype T, span s) {
    span_store(r, GELU_Y, T, s, vgelu(form, span_load(r, GELU_X, T, s)));
}

INLINE void body(const run *r, int32_t form, trine_dtype T) { EACH_SPAN(r, GELU_Y, T, step, r, form, T); }

static void row(const run *r) {
    const trine_gelu_args *args = r->call->args;
    FOR_GELU(args->form, r->call->tensor[GELU_Y].dtype, body, r);
}

WALK_KERNELS(gelu, walk_edges);
