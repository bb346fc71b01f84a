/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine: the table and the reference. */
#include <trine/moe.h>

#include "spec/spec.h"

#define ARGS trine_moe_combine_args

/* Bound: a sum of k products in any order, fused or not, is off by at most k u sum |w x| (Jeannerod and Rump 2013).
 * Products below 2^-126 lose up to 2^-150 each. */
static void reference(trine_ref *ref) {
    const int64_t t = trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"), p = trine_ref_dim(ref, "p"),
                  n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x"), *places = trine_ref_value(ref, "places"),
                 *weights = trine_ref_value(ref, "weights");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    for (int64_t at = 0; at < t * n; at++) {
        const int64_t first = at / n * k;
        long double sum = 0;
        for (int64_t a = first; a < first + k; a++) {
            if (places[a] < 0 || places[a] >= (double)p) continue;
            const long double term = (long double)(weights ? weights[a] : 1) * x[(int64_t)places[a] * n + at % n];
            sum += term;
            magnitude[at] += trine_finite_abs((double)term);
            slack[at] += 0x1p-150;
        }
        y[at] = (double)sum;
    }
}

const trine_spec trine_spec_moe_combine = {
    SPEC(moe_combine),
    .summary = "The weighted sum, for each token, of what its experts made of it",
    .formula = "y[i,j] = sum over a of weights[i,a] x[places[i,a],j], without those whose place is not one of x",
    .source = "Shazeer et al. 2017",
    .tensors = { TENSOR(x, IN, "T", "p n"), TENSOR(places, IN, "i32", "t k", .fill = "places p"),
                 TENSOR(weights, IN | OPTIONAL, "f32", "t k"), TENSOR(y, OUT, "O", "t n", .terms = "k + 1") },
    .types = { "T=f32 O=f32", "T=bf16 O=bf16|f32", "T=f16 O=f16|f32" },
    .flops = "2*t*k*n",
    .integers_exact = true,
    .sizes = { "p: 1 0 2 7 33 300", "n: 1 0 3 8 31 64 257 1030", "t: 1 0 2 33 200", "k: 1 2 0 8" },
    .cases = { "mixtral: T=bf16 O=bf16 p=8192 n=4096 t=4096 k=2 +weights",
               "qwen3: T=bf16 O=bf16 p=32768 n=2048 t=4096 k=8 +weights",
               "deepseek-v3 16 tokens: T=bf16 O=bf16 p=128 n=7168 t=16 k=8 +weights" },
    .reference = reference,
};
