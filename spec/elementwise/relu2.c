/* SPDX-License-Identifier: Apache-2.0 */
/* relu2: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_relu2_args

/* Bound, with u = 2^-24: one product by u, with the output's rounding of it within 2u of |y|. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const double h = x[i] < 0 ? 0 : x[i]; /* NaN stays */
        y[i] = h * h;
        if (!isfinite(y[i])) continue;
        magnitude[i] = y[i];
        slack[i] = TINY;
    }
}

const trine_spec trine_spec_relu2 = {
    SPEC(relu2),
    .summary = "Square of the rectified linear unit",
    .formula = "y = max(x, 0)^2",
    .source = "So et al. 2021, section 3",
    .tensors = { TENSOR(x, IN, "T", SHAPE), TENSOR(y, OUT, "T", SHAPE, .terms = "2") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "y=x" },
    .flops = "2*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .integers_exact = true,
    .cases = { "primer f32: T=f32 r=4096 n=4096", "nemotron-4-15b: T=bf16 r=2048 n=24576", "f16: T=f16 r=4096 n=4096",
               "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
