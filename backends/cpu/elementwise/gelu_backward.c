/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_backward on the CPU. */
#include "elementwise.h"
#include "gelu.h"
#include "spec/places/gelu_backward.h"

INLINE void step(const run *r, int32_t form, trine_dtype T, span s) {
    const vf dy = span_load(r, GELU_BACKWARD_DY, T, s), x = span_load(r, GELU_BACKWARD_X, T, s);
    vf y;
    span_store(r, GELU_BACKWARD_DX, T, s, dy * vgelu_slope(form, x, &y));
}

INLINE void body(const run *r, int32_t form, trine_dtype T) { EACH_SPAN(r, GELU_BACKWARD_DX, T, step, r, form, T); }

static void row(const run *r) {
    const trine_gelu_backward_args *args = r->call->args;
    FOR_GELU(args->form, r->call->tensor[GELU_BACKWARD_DX].dtype, body, r);
}

WALK_KERNELS(gelu_backward, walk_edges);
