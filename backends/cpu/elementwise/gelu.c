/* SPDX-License-Identifier: Apache-2.0 */
/* gelu on the CPU. */
#include "elementwise.h"
#include "gelu.h"
#include "spec/places/gelu.h"

INLINE void step(const run *r, int32_t form, trine_dtype T, span s) {
    const vf x = span_load(r, GELU_X, T, s);
    span_store(r, GELU_Y, T, s, form == TRINE_GELU_TANH ? vgelu_tanh(x) : vgelu_erf(x));
}

INLINE void body(const run *r, int32_t form, trine_dtype T) { EACH_SPAN(r, GELU_Y, T, step, r, form, T); }

static void row(const run *r) {
    if (((const trine_gelu_args *)r->call->args)->form == TRINE_GELU_TANH)
        FOR_TYPE(r->call->tensor[GELU_Y].dtype, body, r, TRINE_GELU_TANH);
    else
        FOR_TYPE(r->call->tensor[GELU_Y].dtype, body, r, TRINE_GELU_ERF);
}

static trine_status launch(const trine_call *call) { return walk_all(call, row); }

CPU_KERNELS(gelu) = { { CPU_NAME, NULL, NULL, launch, .edges = walk_edges }, { 0 } };
