/* SPDX-License-Identifier: Apache-2.0 */
/* gelu: the table and the reference. */
#include <trine/elementwise.h>

#include "gelu.h"

#define ARGS trine_gelu_args

/* Bound, with u = 2^-24: 12u of gelu.h; second order and the output's rounding of it within 14u. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const gelu_part part = gelu_of(args->form, x[i]);
        y[i] = part.value;
        if (!isfinite(y[i])) continue;
        magnitude[i] = part.size;
        slack[i] = part.loss;
    }
}

const trine_spec trine_spec_gelu = {
    SPEC(gelu),
    .summary = "Gaussian error linear unit",
    .formula = "tanh: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); erf: y = x/2 (1 + erf(x/sqrt 2))",
    .source = "Hendrycks and Gimpel 2016, section 2",
    .tensors = { TENSOR(x, IN, "T", SHAPE), TENSOR(y, OUT, "T", SHAPE, .terms = "14") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "y=x" },
    .flops = "20*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "gpt2-xl f32: T=f32 r=4096 n=6400", "gpt2-xl: T=bf16 r=8192 n=6400",
               "bert-large: T=bf16 r=8192 n=4096 form=erf", "bert-large f32: T=f32 r=4096 n=4096 form=erf",
               "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
