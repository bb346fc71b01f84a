/* SPDX-License-Identifier: Apache-2.0 */
/* swiglu: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_swiglu_args

/* Bound, with u = 2^-24: sigmoid to 11u and two products, 13u of |y|;
 * second order and the output's rounding of it leave that within 14u. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *gate = trine_ref_value(ref, "gate"), *up = trine_ref_value(ref, "up");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const double s = sigmoid(gate[i]), factor[] = { gate[i], s, up[i] };
        y[i] = gate[i] * s * up[i];
        /* Inf times a flushed s is NaN */
        if (isinf(y[i]) && (s < 2 * FLUSH || product_vanishes(3, factor))) magnitude[i] = INFINITY;
        if (!isfinite(y[i])) continue;
        magnitude[i] = fabs(y[i]);
        slack[i] = product_slack(3, factor) + lost(s) * fabs(gate[i] * up[i]);
    }
}

const trine_spec trine_spec_swiglu = {
    SPEC(swiglu),
    .summary = "SwiGLU: one half times the SiLU of the other",
    .formula = "y = gate sigmoid(gate) up; sigmoid(x) = 1/(1 + exp(-x))",
    .source = "Shazeer 2020, eq. 6",
    .tensors = { TENSOR(gate, IN, "T", SHAPE), TENSOR(up, IN, "T", SHAPE), TENSOR(y, OUT, "T", SHAPE, .terms = "14") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "y=gate", "y=up" },
    .flops = "15*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "llama3-8b f32: T=f32 r=1024 n=14336", "llama3-8b: T=bf16 r=2048 n=14336",
               "llama3-8b f16: T=f16 r=2048 n=14336", "one token: T=bf16 r=1 n=14336", "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
