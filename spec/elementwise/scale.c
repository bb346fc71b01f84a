/* SPDX-License-Identifier: Apache-2.0 */
/* scale: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_scale_args

/* Bound, with u = 2^-24: the product by u, the sum by u: 2u of |alpha x| + |shift|, second order and the output's
 * rounding of it within 3u. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const double product = args->alpha * x[i], size = fabs(product) + fabs(args->shift);
        y[i] = product + args->shift;
        if (!isfinite(y[i])) continue;
        magnitude[i] = size > LARGEST ? INFINITY : size;
        slack[i] = TINY;
    }
}

const trine_spec trine_spec_scale = {
    SPEC(scale),
    .summary = "Scaling and shifting, with broadcasting and conversion",
    .formula = "y = alpha x + shift",
    .source = "by definition",
    .tensors = { TENSOR(x, IN | BROADCAST, "X", SHAPE), TENSOR(y, OUT, "T", SHAPE, .terms = "3") },
    .params = { PARAM(alpha, F32, .values = "1 0 -0.3", .fallback = 1, .doc = "factor of x"),
                PARAM(shift, F32, .values = "0 1 -0.7", .doc = "added to the product") },
    .types = { "X=f32|bf16|f16 T=f32|bf16|f16" },
    .alias = { "y=x" },
    .flops = "2*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .integers_exact = true,
    .cases = { "f32: X=f32 T=f32 r=4096 n=4096", "bf16: X=bf16 T=bf16 r=8192 n=4096",
               "bf16 to f32: X=bf16 T=f32 r=4096 n=4096", "in cache: X=f32 T=f32 r=64 n=1024" },
    .reference = reference,
};
