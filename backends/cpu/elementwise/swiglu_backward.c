/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu_backward on the CPU. */
#include "elementwise.h"
#include "backends/cpu/core/vec_math.h"

enum { DY, GATE, UP, DGATE, DUP };

INLINE void step(const run *r, trine_dtype T, span s) {
    const vf dy = span_load(r, DY, T, s), gate = span_load(r, GATE, T, s), up = span_load(r, UP, T, s);
    const vf sigmoid = vsigmoid(gate), slope = sigmoid * vfma(gate, vsigmoid(-gate), vset(1.0f));
    span_store(r, DGATE, T, s, slope * up * dy);
    s.stream = false; /* dgate and dup need not be aligned alike */
    span_store(r, DUP, T, s, gate * sigmoid * dy);
}

INLINE void body(const run *r, trine_dtype T) { EACH_SPAN(r, DGATE, T, step, r, T); }

static void row(const run *r) { FOR_TYPE(r->call->tensor[DY].dtype, body, r); }

static trine_status launch(const trine_call *call) { return walk_all(call, row); }

CPU_KERNELS(swiglu_backward) = { { CPU_NAME, NULL, NULL, launch, NULL }, { 0 } };
