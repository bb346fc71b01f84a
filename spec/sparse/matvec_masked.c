/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_masked: the table and the reference. */
#include <trine/sparse.h>

#include "spec/matmul/product.h"

#define ARGS trine_matvec_masked_args

/* Bound, with u = 2^-24: a sum of k products in any order, fused or not, is off by at most k u sum |x w| (Jeannerod and
 * Rump 2013); the product with the gate is a rounding more, and the output's rounding multiplies the whole by less than
 * 1 + u k / (k + 2). Products below 2^-126 lose up to 2^-150 each. Where the sum of |x w| is beyond the largest f32, or
 * times the gate, partial results may be infinite. */
#define TINY 0x1p-150
static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const double *x = trine_ref_value(ref, "x"), *w = trine_ref_value(ref, "w"), *gate = trine_ref_value(ref, "gate");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const double largest = trine_largest(TRINE_F32), growth = 1 + trine_unit_roundoff(trine_ref_type(ref, "T"));

    for (int64_t at = 0; at < r * n; at++) {
        y[at] = 0;
        if (gate[at] == 0) continue;
        const dot s = dot_of(x + at / n * k, w + at % n * k, k, 1);
        const double factor = trine_finite_abs(gate[at]);
        y[at] = (double)(gate[at] * s.sum);
        magnitude[at] = factor * s.scale * growth;
        slack[at] = ((double)k * factor + 1) * TINY;
        if (!(s.scale < largest && magnitude[at] < largest)) magnitude[at] = INFINITY, slack[at] = 0;
        /* a sum that vanishes beside an infinite gate */
        if (isinf(gate[at]) && fabs((double)s.sum) <= (double)(k + 1) * (0x1p-24 * s.scale + TINY))
            magnitude[at] = INFINITY;
    }
}

const trine_spec trine_spec_matvec_masked = {
    SPEC(matvec_masked),
    .summary = "A product of few rows times a gate, computed where the gate is open",
    .formula = "y[i,j] = gate[i,j] sum_l x[i,l] w[j,l] where gate[i,j] is not 0, else 0",
    .source = "Lee et al. 2024 (CATS), section 4",
    .tensors = { TENSOR(x, IN, "T", "r k"), TENSOR(w, IN, "T", "n k"), TENSOR(gate, IN, "T", "r n", .fill = "sparse"),
                 TENSOR(y, OUT, "T", "r n", .terms = "k + 2") },
    .types = { "T=f32|bf16|f16" },
    .alias = { "y=gate" },
    .flops = "2*r*n*k",
    .independent = "r",
    .sizes = { "r: 1 0 2 3 4 5 9 40", "k: 64 0 1 7 8 33 256 300 1024 2056", "n: 17 0 1 2 8 64 255 700" },
    .integers_exact = true,
    .cases = { "llama2-7b up: T=bf16 r=1 k=4096 n=11008", "mistral-7b up: T=bf16 r=1 k=4096 n=14336",
               "mistral-7b up, 4 tokens: T=bf16 r=4 k=4096 n=14336", "llama2-7b up f32: T=f32 r=1 k=4096 n=11008" },
    .reference = reference,
};
