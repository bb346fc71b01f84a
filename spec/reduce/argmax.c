/* SPDX-License-Identifier: Apache-2.0 */
/* argmax: the table and the reference. */
#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_argmax_args

/* Does b come before a, if it stands behind it? NaN is larger than any number. */
static bool before(double a, double b, bool smallest) {
    if (isnan(a) || isnan(b)) return isnan(a) != isnan(b) && isnan(b) != smallest;
    return smallest ? b < a : b > a;
}

/* An element is copied, and a place is a whole number: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *indices = trine_ref_value(ref, "indices"), *values = trine_ref_value(ref, "values");

    for (int64_t i = 0; i < r; i++) {
        int64_t best = 0;
        for (int64_t j = 1; j < n; j++)
            if (before(x[i * n + best], x[i * n + j], args->smallest)) best = j;
        indices[i] = (double)best;
        if (values) values[i] = x[i * n + best];
    }
}

const trine_spec trine_spec_argmax = {
    SPEC(argmax),
    .summary = "The place of each row's largest element",
    .formula = "indices[i] is the place of the largest element of row i (smallest: of the smallest), and values[i] = "
               "x[i,indices[i]]. NaN is larger than any number, -0 equals 0, and of equal elements it is the one with "
               "the smallest index",
    .source = "by definition",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(indices, OUT | EXACT, "I", "r"),
                 TENSOR(values, OUT | OPTIONAL | EXACT, "T", "r") },
    .params = { PARAM(smallest, BOOL, .values = "0 1", .doc = "1: the smallest elements") },
    .types = { "T=f32|bf16|f16 I=i32|i64" },
    .require = { "n >= 1" },
    .flops = "r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 5 33 300", "n: 1 2 7 64 257 1000 4099 32000 100003" },
    .cases = { "greedy: T=bf16 I=i32 r=64 n=128256", "one token: T=bf16 I=i32 r=1 n=128256 +values",
               "experts: T=f32 I=i32 r=8192 n=128", "training: T=f32 I=i64 r=4096 n=32000",
               "one row: T=f32 I=i64 r=1 n=16777216 +values" },
    .exact = true,
    .reference = reference,
};
