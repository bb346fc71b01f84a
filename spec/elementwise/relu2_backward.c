/* SPDX-License-Identifier: Apache-2.0 */
/* relu2_backward: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_relu2_backward_args

/* Bound, with u = 2^-24: max(x, 0) dy by u and its double exactly, with the output's rounding of it within 2u of |dx|.
 * Doubling first might overflow where dx does not; a subnormal product's rounding is doubled. */
static void reference(trine_ref *ref) {
    const int64_t count = element_count(ref);
    const double *dy = trine_ref_value(ref, "dy"), *x = trine_ref_value(ref, "x");
    double *dx = trine_ref_value(ref, "dx"), *magnitude = trine_ref_magnitude(ref, "dx"),
           *slack = trine_ref_slack(ref, "dx");

    for (int64_t i = 0; i < count; i++) {
        const double h = x[i] < 0 ? 0 : x[i]; /* NaN stays */
        dx[i] = 2 * (h * dy[i]);
        if (!isfinite(dx[i])) continue;
        magnitude[i] = fabs(dx[i]);
        slack[i] = 2 * TINY;
    }
}

const trine_spec trine_spec_relu2_backward = {
    SPEC(relu2_backward),
    .summary = "Gradient of relu2",
    .formula = "dx = 2 max(x, 0) dy",
    .source = "So et al. 2021, section 3, differentiated",
    .tensors = { TENSOR(dy, IN, "T", SHAPE), TENSOR(x, IN, "T", SHAPE), TENSOR(dx, OUT, "T", SHAPE, .terms = "2") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "dx=dy", "dx=x" },
    .flops = "3*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .integers_exact = true,
    .cases = { "primer f32: T=f32 r=4096 n=4096", "nemotron-4-15b: T=bf16 r=2048 n=24576", "f16: T=f16 r=4096 n=4096",
               "in cache: T=f32 r=64 n=1024" },
    .reference = reference,
};
