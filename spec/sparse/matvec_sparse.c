/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_sparse: the table and the reference. */
#include <trine/sparse.h>

#include "spec/spec.h"

#define ARGS trine_matvec_sparse_args

/* Bound, with u = 2^-24: a sum of n products in any order, fused or not, is off by at most n u sum |h w| (Jeannerod and
 * Rump 2013), which the output's rounding multiplies by 1 + u(T). Products below 2^-126 lose up to 2^-150 each. */
static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const double *h = trine_ref_value(ref, "h"), *w = trine_ref_value(ref, "w");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y"),
           *slack = trine_ref_slack(ref, "y");
    const double growth = 1 + trine_unit_roundoff(trine_ref_type(ref, "T"));

    for (int64_t at = 0; at < r * k; at++) {
        long double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const double factor = h[at / k * n + j];
            if (factor == 0) continue;
            const long double term = (long double)factor * w[j * k + at % k];
            sum += term;
            magnitude[at] += trine_finite_abs((double)term);
            slack[at] += 0x1p-150;
        }
        y[at] = (double)sum;
        magnitude[at] *= growth;
        if (!(magnitude[at] < trine_largest(TRINE_F32))) magnitude[at] = INFINITY, slack[at] = 0;
    }
}

const trine_spec trine_spec_matvec_sparse = {
    SPEC(matvec_sparse),
    .summary = "A product of few rows, many of whose elements are 0, that reads the rows of a matrix which it needs",
    .formula = "y[i,l] = sum of h[i,j] w[j,l] over the j where h[i,j] is not 0",
    .source = "Lee et al. 2024 (CATS), section 4",
    .tensors = { TENSOR(h, IN, "T", "r n", .fill = "sparse"), TENSOR(w, IN, "T", "n k"),
                 TENSOR(y, OUT, "T", "r k", .terms = "n + 1") },
    .types = { "T=f32|bf16|f16" },
    .flops = "2*r*n*k",
    .independent = "r",
    .sizes = { "r: 1 0 2 3 4 5 9 40", "n: 64 0 1 7 33 256 300 1025 2056", "k: 17 0 1 8 64 255 700" },
    .integers_exact = true,
    .cases = { "llama2-7b down: T=bf16 r=1 n=11008 k=4096", "mistral-7b down: T=bf16 r=1 n=14336 k=4096",
               "mistral-7b down, 4 tokens: T=bf16 r=4 n=14336 k=4096", "llama2-7b down f32: T=f32 r=1 n=11008 k=4096" },
    .reference = reference,
};
