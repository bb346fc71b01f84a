/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric: the table and the reference. */
#include <trine/symmetric.h>

#include "spec/matmul/element.h"

#define ARGS trine_matmul_symmetric_args

/* Bound: that of matmul (spec/matmul/element.h) with a's transpose for b. Which operand is which does not matter to
 * it, so that it is that of both halves. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t g = trine_ref_dim(ref, "g"), m = trine_ref_dim(ref, "m"), k = trine_ref_dim(ref, "k");
    const trine_dtype in = trine_ref_type(ref, "T"), out = trine_ref_type(ref, "O");
    const trine_matmul_args as = { .alpha = args->alpha, .beta = args->beta };
    const double *a = trine_ref_value(ref, "a"), *c = trine_ref_value(ref, "c"), least = trine_smallest_normal(in);
    double *d = trine_ref_value(ref, "d"), *magnitude = trine_ref_magnitude(ref, "d"),
           *slack = trine_ref_slack(ref, "d");
    const bool below = in != TRINE_F64 && any_below(a, g * m * k, least);
    const factors f = factors_of(&as, NULL, NULL);
    for (int64_t at = 0; at < g * m * m; at++) {
        const int64_t batch = at / (m * m), i = at / m % m, j = at % m, to = (batch * m + j) * m + i;
        if (j > i) continue;
        const double *row = a + (batch * m + i) * k, *other = a + (batch * m + j) * k;
        dot s = below && in == TRINE_BF16 ? dot_careful(row, other, k, 1, 0x1p-126) : dot_of(row, other, k, 1);
        if (below) s.weight = dot_weight(row, other, k, 1, least, least);
        const result r = element(&as, s, f, k, c ? c + at : NULL, NULL, in, out);
        d[at] = d[to] = r.value;
        magnitude[at] = magnitude[to] = r.magnitude;
        slack[at] = slack[to] = r.slack;
    }
}

const trine_spec trine_spec_matmul_symmetric = {
    SPEC(matmul_symmetric),
    .summary = "Product of a matrix and its own transpose, batched, of which half is computed and all is written",
    .formula = "d[i,j] = d[j,i] = alpha sum_p a[i,p] a[j,p] + beta c[i,j], i >= j",
    .source = "Dongarra et al. 1990 (level 3 BLAS, syrk); Jordan et al. 2024 (Muon)",
    .tensors = { TENSOR(a, IN | TRANSPOSABLE, "T", "[g] m k"), TENSOR(c, IN | OPTIONAL, "O", "[g] m m"),
                 TENSOR(d, OUT, "O", "[g] m m", .terms = "k + 4") },
    .params = { PARAM(alpha, F32, .values = "1 0.5 -2 0", .fallback = 1, .doc = "factor of the product"),
                PARAM(beta, F32, .values = "1 0 -0.5 3", .fallback = 1, .doc = "factor of c") },
    .types = { "T=f32 O=f32", "T=f16 O=f16|f32", "T=bf16 O=bf16|f32", "T=f64 O=f64" },
    .require = { "c -> beta" },
    .alias = { "d=c" },
    .flops = "g*m*(m+1)*k",
    .integers_exact = true,
    .sizes = { "g: 1 1 1 2 3 0", "m: 1 0 2 3 5 7 8 13 16 17 33 64 65 97 130 200 700",
               "k: 1 0 2 3 5 8 17 31 64 129 257 600 1030 5000" },
    .cases = { "square 1024: T=f32 m=1024 k=1024", "square 2048: T=f32 m=2048 k=2048",
               "square 4096: T=f32 m=4096 k=4096", "square 1024 bf16: T=bf16 O=bf16 m=1024 k=1024",
               "square 2048 bf16: T=bf16 O=bf16 m=2048 k=2048", "square 4096 bf16: T=bf16 O=bf16 m=4096 k=4096",
               "square 2048 f16 with c: T=f16 O=f16 m=2048 k=2048 beta=1 +c", "square 1024 f64: T=f64 m=1024 k=1024",
               "llama3-8b gate: T=bf16 O=bf16 m=4096 k=14336", "llama3-8b key: T=bf16 O=bf16 m=1024 k=4096",
               "columns of llama3-8b down: T=bf16 O=bf16 m=4096 k=14336 a=transposed",
               "covariance: T=f32 m=256 k=16384 a=transposed" },
    .reference = reference,
};
