/* SPDX-License-Identifier: Apache-2.0 */
/* add: the table and the reference. */
#include <trine/elementwise.h>

#include "elementwise.h"

#define ARGS trine_add_args

/* Bound, with u = 2^-24: each product by u, the sum by u: 2u of |alpha a| + |beta b|, second order and the output's
 * rounding of it within 3u. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t count = element_count(ref);
    const double *a = trine_ref_value(ref, "a"), *b = trine_ref_value(ref, "b");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t i = 0; i < count; i++) {
        const double first = args->alpha * a[i], second = args->beta * b[i];
        y[i] = first + second;
        magnitude[i] = trine_pair_magnitude(first, second);
        slack[i] = 2 * TINY;
    }
}

const trine_spec trine_spec_add = {
    SPEC(add),
    .summary = "Weighted sum of two tensors, with broadcasting",
    .formula = "y = alpha a + beta b",
    .source = "by definition",
    .tensors = { TENSOR(a, IN | BROADCAST, "A", SHAPE), TENSOR(b, IN | BROADCAST, "B", SHAPE),
                 TENSOR(y, OUT, "T", SHAPE, .terms = "3") },
    .params = { PARAM(alpha, F32, .values = "1 0 -0.3", .fallback = 1, .doc = "factor of a"),
                PARAM(beta, F32, .values = "1 0 2.5", .fallback = 1, .doc = "factor of b") },
    .types = { "A=f32|bf16|f16 B=f32|bf16|f16 T=f32|bf16|f16" },
    .alias = { "y=a", "y=b" },
    .flops = "3*p*q*r*n",
    .independent = "r",
    .sizes = SIZES,
    .integers_exact = true,
    .cases = { "residual f32: A=f32 B=f32 T=f32 r=4096 n=4096", "residual: A=bf16 B=bf16 T=bf16 r=8192 n=4096",
               "gradient: A=f32 B=bf16 T=f32 r=4096 n=4096", "in cache: A=f32 B=f32 T=f32 r=64 n=1024" },
    .reference = reference,
};
