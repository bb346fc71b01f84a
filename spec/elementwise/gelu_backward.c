/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_backward: the table and the reference. */
#include <trine/elementwise.h>

#include "gelu.h"

#define ARGS trine_gelu_backward_args

/* Bound, with u = 2^-24: the derivative by 35u of gelu.h, and the product with dy. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *x = trine_ref_value(ref, "x");
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx");

    for (int64_t i = 0; i < count; i++) {
        const gelu_part slope = gelu_slope(args->form, x[i]);
        dx[i] = dy[i] * slope.value;
        /* Inf times a slope near 0 may have either sign, and times one flushed is NaN. */
        if (isinf(dx[i]) && isfinite(x[i]) && fabs(slope.value) <= 36 * 0x1p-24 * slope.size + slope.loss)
            magnitude[i] = INFINITY;
        if (!isfinite(dx[i])) continue;
        magnitude[i] = fabs(dy[i]) * slope.size;
        slack[i] = fabs(dy[i]) * slope.loss + TINY;
    }
}

const trine_spec trine_spec_gelu_backward = {
    SPEC(gelu_backward),
    .summary = "Gradient of gelu",
    .formula = "tanh: dx = dy (s + x s (1 - s) v'), s = (1 + tanh(v/2))/2, v = 2 sqrt(2/pi) (x + 0.044715 x^3); erf: "
               "dx = dy (F + x f), F = (1 + erf(x/sqrt 2))/2, "
               "f = exp(-x^2/2)/sqrt(2 pi)",
    .source = "Hendrycks and Gimpel 2016, section 2, differentiated",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(x, IN, "T", SHAPE), TENSOR(dx, OUT, "T", SHAPE, .terms = "36") },
    .params = { PARAM(form, ENUM, .values = "tanh erf", .doc = "TRINE_GELU_TANH or TRINE_GELU_ERF") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dx=dy", "dx=x" },
    .flops = "30*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .cases = { "gpt2-xl f32: T=f32 r=4096 n=6400", "gpt2-xl: T=bf16 r=8192 n=6400",
               "bert-large: T=bf16 r=8192 n=4096 form=erf", "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
