/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_backward on the CPU. */
#include "elementwise.h"
#include "gelu.h"
#include "spec/places/gelu_backward.h"

INLINE void step(const run *r, int32_t form, trine_dtype T, span s) {
    const vf x = span_load(r, GELU_BACKWARD_X, T, s);
    span_store(r, GELU_BACKWARD_DX, T, s,
               span_load(r, GELU_BACKWARD_DY, T, s) *
                   (form == TRINE_GELU_TANH ? vgelu_tanh_slope(x) : vgelu_erf_slope(x)));
}

INLINE void body(const run *r, int32_t form, trine_dtype T) { EACH_SPAN(r, GELU_BACKWARD_DX, T, step, r, form, T); }

static void row(const run *r) {
    if (((const trine_gelu_backward_args *)r->call->args)->form == TRINE_GELU_TANH)
        FOR_TYPE(r->call->tensor[GELU_BACKWARD_DX].dtype, body, r, TRINE_GELU_TANH);
    else
        FOR_TYPE(r->call->tensor[GELU_BACKWARD_DX].dtype, body, r, TRINE_GELU_ERF);
}

static trine_status launch(const trine_call *call) { return walk_all(call, row); }

CPU_KERNELS(gelu_backward) = { { CPU_NAME, NULL, NULL, launch, .edges = walk_edges }, { 0 } };
