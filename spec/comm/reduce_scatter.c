/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_scatter: the table and the reference. */
#include "reduced.h"

#define ARGS trine_reduce_scatter_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y");
    for (int64_t k = 0; k < ranks * n; k++) {
        const reduced mine = reduce_ranks(x + k, ranks, ranks * n, args->kind, trine_ref_type(ref, "T"));
        y[k] = mine.value, magnitude[k] = mine.magnitude;
    }
}

const trine_spec trine_spec_reduce_scatter = {
    SPEC(reduce_scatter),
    .summary = "The sum or the largest of what all ranks have for a rank, for that rank",
    .formula = "y[r,j] = ((x[0,r,j] + x[1,r,j]) + x[2,r,j]) + ..., or max over i of x[i,r,j]",
    .source = "MPI 4.1, section 6.10.1, MPI_Reduce_scatter_block",
    .tensors = { TENSOR(x, IN, "T", "ranks ranks n"), TENSOR(y, OUT, "T", "ranks n", .terms = "ranks") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(kind, ENUM, .values = "sum max", .doc = "TRINE_RANKS_*: what is made of the elements") },
    .types = { "T=f32|bf16|f16|f64" },
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "ranks*ranks*n",
    .integers_exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 2 8 130 1000 5000 30000" },
    .cases = { "gradients, 2 ranks: T=f32 ranks=2 n=8388608", "gradients: T=f32 ranks=4 n=4194304",
               "gradients, bf16: T=bf16 ranks=4 n=4194304", "activations: T=bf16 ranks=4 n=32768",
               "largest: T=f32 ranks=4 n=262144 kind=max" },
    .reference = reference,
};
