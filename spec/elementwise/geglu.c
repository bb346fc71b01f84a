/* SPDX-License-Identifier: Apache-2.0 */
/* geglu: the table and the reference. */
#include <trine/elementwise.h>

#include "gelu.h"

#define ARGS trine_geglu_args

/* Bound, with u = 2^-24: gelu by 12u of gelu.h, and the product with up, 13u; second order and the output's rounding of
 * it within 14u. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *gate = trine_ref_value(ref, "gate"), *up = trine_ref_value(ref, "up");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const gelu_part g = gelu_of(args->form, gate[i]);
        y[i] = g.value * up[i];
        /* Inf times a gelu flushed to zero is NaN. */
        if (isinf(y[i]) && isfinite(gate[i]) && fabs(g.value) <= g.loss) magnitude[i] = INFINITY;
        if (!isfinite(y[i])) continue;
        magnitude[i] = g.size * fabs(up[i]);
        slack[i] = g.loss * fabs(up[i]) + TINY;
    }
}

const trine_spec trine_spec_geglu = {
    SPEC(geglu),
    .summary = "GeGLU: one half times the GELU of the other",
    .formula = "y = gelu(gate) up; tanh: gelu(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); "
               "erf: gelu(x) = x/2 (1 + erf(x/sqrt 2))",
    .source = "Shazeer 2020, eq. 6",
    .tensors = { TENSOR(gate, IN, "T", SHAPE), TENSOR(up, IN, "T", SHAPE), TENSOR(y, OUT, "T", SHAPE, .terms = "14") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "y=gate", "y=up" },
    .flops = "21*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "gemma-7b f32: T=f32 r=1024 n=24576", "gemma-7b: T=bf16 r=2048 n=24576",
               "t5-v1.1-xxl f16: T=f16 r=4096 n=10240", "modernbert-large: T=bf16 r=8192 n=2624 form=erf",
               "modernbert-large f32: T=f32 r=8192 n=2624 form=erf", "one token: T=bf16 r=1 n=24576",
               "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
