/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce: the table and the reference. */
#include "reduced.h"

#define ARGS trine_all_reduce_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y"), *magnitude = trine_ref_magnitude(ref, "y");
    for (int64_t j = 0; j < n; j++) {
        const reduced all = reduce_ranks(x + j, ranks, n, args->kind, trine_ref_type(ref, "T"));
        for (int64_t r = 0; r < ranks; r++) y[r * n + j] = all.value, magnitude[r * n + j] = all.magnitude;
    }
}

const trine_spec trine_spec_all_reduce = {
    SPEC(all_reduce),
    .summary = "The sum or the largest of all ranks' elements, for every rank",
    .formula = "y[r,j] = ((x[0,j] + x[1,j]) + x[2,j]) + ..., or max over i of x[i,j], for every rank r",
    .source = "MPI 4.1, section 6.9.6, MPI_Allreduce",
    .tensors = { TENSOR(x, IN, "T", "ranks n"), TENSOR(y, OUT, "T", "ranks n", .terms = "ranks") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(kind, ENUM, .values = "sum max", .doc = "TRINE_RANKS_*: what is made of the elements") },
    .types = { "T=f32|bf16|f16|f64" },
    .require = { "ranks > 0", "ranks <= 64" },
    .alias = { "y=x" },
    .flops = "ranks*n",
    .integers_exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 2 8 130 1000 5000 70000" },
    .cases = { "gradients, 2 ranks: T=f32 ranks=2 n=16777216", "gradients: T=f32 ranks=4 n=16777216",
               "gradients, bf16: T=bf16 ranks=4 n=16777216", "activations: T=bf16 ranks=4 n=131072",
               "a scalar: T=f32 ranks=4 n=1", "largest: T=f32 ranks=4 n=1048576 kind=max" },
    .reference = reference,
};
