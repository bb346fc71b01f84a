/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_all_reduce: the table and the reference. */
#include "products.h"

#define ARGS trine_matmul_all_reduce_args

static void reference(trine_ref *ref) {
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n");
    const products p = products_of(ref, m);
    double *d = trine_ref_value(ref, "d"), *magnitude = trine_ref_magnitude(ref, "d"),
           *slack = trine_ref_slack(ref, "d");
    for (int64_t at = 0; at < m * n; at++) {
        const result sum = sum_of_products(&p, at / n, at % n);
        for (int64_t r = 0; r < p.ranks; r++) {
            const int64_t own = r * m * n + at;
            d[own] = sum.value, magnitude[own] = sum.magnitude, slack[own] = sum.slack;
        }
    }
}

const trine_spec trine_spec_matmul_all_reduce = {
    SPEC(matmul_all_reduce),
    .summary = "The sum of all ranks' matrix products, for every rank",
    .formula = "d[r,i,j] = sum over s of sum_p a[s,i,p] b[s,p,j], for every rank r",
    .source = "Shoeybi et al. 2019, section 3 (the function g after a row-parallel layer)",
    .tensors = { TENSOR(a, IN | TRANSPOSABLE, "T", "ranks m k"), TENSOR(b, IN | TRANSPOSABLE, "T", "ranks k n"),
                 TENSOR(d, OUT, "O", "ranks m n", .terms = "k + 4 + ranks") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = PRODUCT_TYPES,
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "2*ranks*m*n*k",
    .integers_exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "m: 1 0 2 5 16 33", "n: 1 0 3 16 17 64 100 257", "k: 1 0 2 7 16 31 64 129 257" },
    .cases = { "llama3-8b attention out, 2 ranks: T=bf16 O=bf16 ranks=2 m=512 n=4096 k=2048",
               "llama3-8b attention out: T=bf16 O=bf16 ranks=4 m=512 n=4096 k=1024",
               "llama3-8b down: T=bf16 O=bf16 ranks=4 m=512 n=4096 k=3584 b=transposed",
               "decode 1: T=bf16 O=bf16 ranks=4 m=1 n=4096 k=3584 b=transposed",
               "gpt2 down: T=f32 ranks=2 m=512 n=768 k=1536" },
    .reference = reference,
};
