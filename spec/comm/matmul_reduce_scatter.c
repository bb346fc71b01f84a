/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_reduce_scatter: the table and the reference. */
#include "products.h"

#define ARGS trine_matmul_reduce_scatter_args

static void reference(trine_ref *ref) {
    const int64_t rows = trine_ref_dim(ref, "ranks") * trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n");
    const products p = products_of(ref, rows);
    double *d = trine_ref_value(ref, "d"), *magnitude = trine_ref_magnitude(ref, "d"),
           *slack = trine_ref_slack(ref, "d");
    for (int64_t at = 0; at < rows * n; at++) {
        const result sum = sum_of_products(&p, at / n, at % n);
        d[at] = sum.value, magnitude[at] = sum.magnitude, slack[at] = sum.slack;
    }
}

const trine_spec trine_spec_matmul_reduce_scatter = {
    SPEC(matmul_reduce_scatter),
    .summary = "The sum of all ranks' matrix products, a part of its rows for each rank",
    .formula = "d[r,i,j] = sum over s of sum_p a[s,r,i,p] b[s,p,j]",
    .source = "Korthikanti et al. 2022, section 4.2.2 (sequence parallelism's reduce-scatter after a row-parallel "
              "layer); Chang et al. 2024 (Flux)",
    .tensors = { TENSOR(a, IN | TRANSPOSABLE, "T", "ranks ranks m k"), TENSOR(b, IN | TRANSPOSABLE, "T", "ranks k n"),
                 TENSOR(d, OUT, "O", "ranks m n", .terms = "k + 4 + ranks") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = PRODUCT_TYPES,
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "2*ranks*ranks*m*n*k",
    .integers_exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "m: 1 0 2 5 16 33", "n: 1 0 3 16 17 64 100 257", "k: 1 0 2 7 16 31 64 129 257" },
    .cases = { "llama3-8b attention out, 2 ranks: T=bf16 O=bf16 ranks=2 m=256 n=4096 k=2048",
               "llama3-8b attention out: T=bf16 O=bf16 ranks=4 m=128 n=4096 k=1024",
               "llama3-8b down: T=bf16 O=bf16 ranks=4 m=128 n=4096 k=3584 b=transposed",
               "gpt2 down: T=f32 ranks=2 m=256 n=768 k=1536" },
    .reference = reference,
};
