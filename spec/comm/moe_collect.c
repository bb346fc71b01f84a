/* SPDX-License-Identifier: Apache-2.0 */
/* moe_collect: the table and the reference. */
#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_moe_collect_args

/* Bound: a sum of k products in any order, fused or not, is off by at most k u sum |w x| (Jeannerod and Rump 2013).
 * Products below 2^-126 lose up to 2^-150 each. All ranks' rows are one line, as are their tokens. */
static void reference(trine_ref *ref) {
    const int64_t ranks = trine_ref_dim(ref, "ranks"), t = ranks * trine_ref_dim(ref, "t"), k = trine_ref_dim(ref, "k"),
                  p = ranks * trine_ref_dim(ref, "p"), n = trine_ref_dim(ref, "n");
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

const trine_spec trine_spec_moe_collect = {
    SPEC(moe_collect),
    .summary = "The weighted sum, for each token, of what its experts on all ranks made of it",
    .formula = "y[s,i,j] = sum over a of weights[s,i,a] x[r,q,j] with places[s,i,a] = r p + q, without those whose "
               "place is not one of x",
    .source = "Lepikhin et al. 2021 (GShard)",
    .tensors = { TENSOR(x, IN, "T", "ranks p n"), TENSOR(places, IN, "i32", "ranks t k", .fill = "slots ranks*p"),
                 TENSOR(weights, IN | OPTIONAL, "f32", "ranks t k"),
                 TENSOR(y, OUT, "O", "ranks t n", .terms = "k + 1") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = { "T=f32 O=f32", "T=bf16 O=bf16|f32", "T=f16 O=f16|f32" },
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "2*ranks*t*k*n",
    .integers_exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "p: 40 0 1 7 300", "n: 8 0 1 3 31 130 520", "t: 7 0 1 2 33 90", "k: 2 1 0 8" },
    .cases = { "mixtral, 2 ranks: T=bf16 O=bf16 ranks=2 p=4608 n=4096 t=2048 k=2 +weights",
               "qwen3: T=bf16 O=bf16 ranks=4 p=9216 n=2048 t=1024 k=8 +weights",
               "deepseek-v3 16 tokens: T=bf16 O=bf16 ranks=4 p=512 n=7168 t=16 k=8 +weights" },
    .reference = reference,
};
