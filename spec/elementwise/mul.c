/* SPDX-License-Identifier: Apache-2.0 */
/* mul: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_mul_args

/* Bound, with u = 2^-24: two products in any order, 2u of |y|; second order and the output's rounding of it within
 * 3u. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *a = trine_ref_value(ref, "a"), *b = trine_ref_value(ref, "b");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const double factor[] = { args->alpha, a[i], b[i] };
        y[i] = args->alpha * (a[i] * b[i]);
        if (isinf(y[i]) && product_vanishes(3, factor)) magnitude[i] = INFINITY;
        if (!isfinite(y[i])) continue;
        magnitude[i] = fabs(y[i]);
        slack[i] = product_slack(3, factor);
    }
}

const trine_spec trine_spec_mul = {
    SPEC(mul),
    .summary = "Product of two tensors, with broadcasting",
    .formula = "y = alpha a b",
    .source = "by definition",
    .tensors = { TENSOR(a, IN | BROADCAST, "A", SHAPE), TENSOR(b, IN | BROADCAST, "B", SHAPE),
                 TENSOR(y, OUT, "T", SHAPE, .terms = "3") },
    .params = { PARAM(alpha, F32, .values = "1 0 -0.3", .fallback = 1, .doc = "factor of the product") },
    .types = { "A=f32|bf16|f16 B=f32|bf16|f16 T=f32|bf16|f16" },
    .alias = { "y=a", "y=b" },
    .flops = "2*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .integers_exact = true,
    .cases = { "gate f32: A=f32 B=f32 T=f32 r=4096 n=4096", "gate: A=bf16 B=bf16 T=bf16 r=8192 n=4096",
               "in cache: A=f32 B=f32 T=f32 r=64 n=1024" },
    .reference = reference,
};
