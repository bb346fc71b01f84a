/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather_matmul: the table and the reference. */
#include <string.h>

#include "products.h"

#define ARGS trine_all_gather_matmul_args

/* The bound is matmul's: every element is one product. */
static void reference(trine_ref *ref) {
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n");
    const products p = products_of(ref, m);
    double *d = trine_ref_value(ref, "d"), *magnitude = trine_ref_magnitude(ref, "d"),
           *slack = trine_ref_slack(ref, "d"), *gathered = trine_ref_value(ref, "gathered");
    const int64_t all = p.ranks * p.a_step;
    for (int64_t r = 0; gathered != NULL && r < p.ranks; r++)
        memcpy(gathered + r * all, p.a, (size_t)all * sizeof *gathered);
    for (int64_t at = 0; at < p.ranks * p.ranks * m * n; at++) {
        const int64_t r = at / n / m / p.ranks, s = at / n / m % p.ranks;
        const result one = product_of(&p, s, at / n % m, r, at % n, p.out);
        d[at] = one.value, magnitude[at] = one.magnitude, slack[at] = one.slack;
    }
}

const trine_spec trine_spec_all_gather_matmul = {
    SPEC(all_gather_matmul),
    .summary = "Matrix product of the rows of all ranks by this rank's matrix",
    .formula = "d[r,s,i,j] = sum_p a[s,i,p] b[r,p,j]; gathered[r,s,i,p] = a[s,i,p]",
    .source = "Korthikanti et al. 2022, section 4.2.2 (sequence parallelism's all-gather before a column-parallel "
              "layer); Chang et al. 2024 (Flux)",
    .tensors = { TENSOR(a, IN, "T", "ranks m k"), TENSOR(b, IN | TRANSPOSABLE, "T", "ranks k n"),
                 TENSOR(d, OUT, "O", "ranks ranks m n", .terms = "k + 4"),
                 TENSOR(gathered, OUT | OPTIONAL | EXACT, "T", "ranks ranks m k") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = PRODUCT_TYPES,
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "2*ranks*ranks*m*n*k",
    .integers_exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "m: 1 0 2 5 16 33", "n: 1 0 3 16 17 64 100 257", "k: 1 0 2 7 16 31 64 129 257" },
    .cases = { "llama3-8b gate, 2 ranks: T=bf16 O=bf16 ranks=2 m=256 n=7168 k=4096 b=transposed",
               "llama3-8b gate: T=bf16 O=bf16 ranks=4 m=128 n=3584 k=4096 b=transposed",
               "llama3-8b query: T=bf16 O=bf16 ranks=4 m=128 n=1024 k=4096 b=transposed +gathered",
               "gpt2 up: T=f32 ranks=2 m=256 n=1536 k=768" },
    .reference = reference,
};
