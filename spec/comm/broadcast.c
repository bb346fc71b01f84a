/* SPDX-License-Identifier: Apache-2.0 */
/* broadcast: the table and the reference. */
#include <string.h>

#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_broadcast_args

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x") + args->root * n;
    for (int64_t r = 0; r < ranks; r++) memcpy(trine_ref_value(ref, "y") + r * n, x, (size_t)n * sizeof *x);
}

const trine_spec trine_spec_broadcast = {
    SPEC(broadcast),
    .summary = "The elements of one rank, for every rank",
    .formula = "y[r,j] = x[root,j] for every rank r",
    .source = "MPI 4.1, section 6.4, MPI_Bcast",
    .tensors = { TENSOR(x, IN, "T", "ranks n"), TENSOR(y, OUT | EXACT, "T", "ranks n") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group"),
                PARAM(root, I32, .values = "0 1 2 5", .min = 0, .below = "ranks",
                      .doc = "the rank whose elements all get, less than ranks") },
    .types = { "T=f32|bf16|f16|f64|i8|i16|i32|i64|u8|u32|e4m3|e5m2|e4m3fnuz|e5m2fnuz|e8m0" },
    .require = { "ranks > 0", "ranks <= 64" },
    .alias = { "y=x" },
    .flops = "0",
    .exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 2 8 130 1000 5000 70000" },
    .cases = { "parameters, 2 ranks: T=f32 ranks=2 n=16777216", "parameters: T=f32 ranks=4 n=16777216",
               "parameters, bf16: T=bf16 ranks=4 n=16777216", "tokens: T=i64 ranks=4 n=4096 root=2" },
    .reference = reference,
};
