/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all: the table and the reference. */
#include <string.h>

#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_all_to_all_args

static void reference(trine_ref *ref) {
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *y = trine_ref_value(ref, "y");
    for (int64_t r = 0; r < ranks; r++)
        for (int64_t i = 0; i < ranks; i++)
            memcpy(y + (r * ranks + i) * n, x + (i * ranks + r) * n, (size_t)n * sizeof *x);
}

const trine_spec trine_spec_all_to_all = {
    SPEC(all_to_all),
    .summary = "The rows that each rank has for a rank, for that rank",
    .formula = "y[r,i,j] = x[i,r,j]",
    .source = "MPI 4.1, section 6.8, MPI_Alltoall",
    .tensors = { TENSOR(x, IN, "T", "ranks ranks n"), TENSOR(y, OUT | EXACT, "T", "ranks ranks n") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = { "T=f32|bf16|f16|f64|i8|i16|i32|i64|u8|u32|e4m3|e5m2|e4m3fnuz|e5m2fnuz|e8m0" },
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "0",
    .exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 2 8 130 1000 5000 30000" },
    .cases = { "tokens, 2 ranks: T=bf16 ranks=2 n=8388608", "tokens: T=bf16 ranks=4 n=4194304",
               "tokens, f32: T=f32 ranks=4 n=1048576", "a few: T=bf16 ranks=4 n=4096" },
    .reference = reference,
};
