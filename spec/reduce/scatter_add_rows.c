/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_add_rows: the table and the reference. */
#include <stdlib.h>

#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_scatter_add_rows_args

/* Bound, with u = 2^-24: a row of y is the sum of the k rows of x whose index names it, and of itself unless
 * `overwrite`: at most k additions in f32, in the order of i, each of at most u of the terms' absolute values so far
 * (Higham 2002, section 4.2), and a product by u in each term where there is a weight, which a fused one leaves out.
 * The magnitude is k times the terms' sum, and once more with weights, which the output's rounding and the second order
 * (k u < 1/4) leave within 2u. Additions of f32 do not underflow; a product that does is off by TINY at most. */
#define TINY 0x1p-150
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t p = trine_ref_dim(ref, "p"), m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *index = trine_ref_value(ref, "index"),
                 *weight = trine_ref_value(ref, "weight");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");

    for (int64_t k = 0; k < m * n; k++) {
        if (args->overwrite) y[k] = 0;
        magnitude[k] = trine_finite_abs(y[k]);
    }
    int64_t *times = calloc((size_t)m + 1, sizeof *times);
    if (times == NULL) abort();
    for (int64_t i = 0; i < p; i++) {
        if (!(index[i] >= 0 && index[i] < (double)m)) continue;
        const int64_t row = (int64_t)index[i];
        times[row]++;
        for (int64_t j = 0; j < n; j++) {
            const double term = x[i * n + j] * (weight ? weight[i] : 1);
            y[row * n + j] += term;
            magnitude[row * n + j] += trine_finite_abs(term);
            if (weight && term != 0) slack[row * n + j] += TINY;
        }
    }
    for (int64_t k = 0; k < m * n; k++) {
        if (magnitude[k] > trine_largest(TRINE_F32))
            magnitude[k] = INFINITY;
        else
            magnitude[k] *= isfinite(y[k]) ? (double)(times[k / n] + (weight && times[k / n] > 0)) : 0;
    }
    free(times);
}

const trine_spec trine_spec_scatter_add_rows = {
    SPEC(scatter_add_rows),
    .summary = "Adds rows to those of a matrix that an index names, deterministic",
    .formula = "y[k,j] = what it held, or 0 if overwrite, + sum over i with index[i] = k, ascending, of x[i,j] "
               "weight[i]; a row whose index is not in [0, m) is left out",
    .source = "by definition",
    .tensors = { TENSOR(x, IN, "T", "p n"), TENSOR(index, IN, "I", "p", .fill = "places m"),
                 TENSOR(weight, IN | OPTIONAL, "f32", "p"), TENSOR(y, IN | OUT, "W", "m n", .terms = "2") },
    .params = { PARAM(overwrite, BOOL, .values = "0 1", .doc = "1: what y holds is not added to") },
    .types = { "T=f32|bf16|f16 W=f32 I=i32|i64", "T=bf16 W=bf16 I=i32|i64", "T=f16 W=f16 I=i32|i64" },
    .flops = "2*p*n",
    .independent = "n",
    .sizes = { "p: 31 0 1 2 500 3000", "m: 17 0 1 2 1000", "n: 7 0 1 64 255 600" },
    .integers_exact = true,
    .cases = { "experts to tokens: T=bf16 W=bf16 I=i32 p=65536 m=8192 n=4096 overwrite=1 +weight",
               "experts to tokens, f32: T=bf16 W=f32 I=i32 p=65536 m=8192 n=4096 +weight",
               "gradient of gather_rows: T=bf16 W=bf16 I=i32 p=16384 m=65536 n=1024 overwrite=1",
               "few rows: T=f32 W=f32 I=i32 p=65536 m=8 n=1024" },
    .reference = reference,
};
