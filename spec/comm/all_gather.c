/* SPDX-License-Identifier: Apache-2.0 */
/* all_gather: the table and the reference. */
#include <string.h>

#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_all_gather_args

static void reference(trine_ref *ref) {
    const int64_t ranks = trine_ref_dim(ref, "ranks"), n = trine_ref_dim(ref, "n");
    for (int64_t r = 0; r < ranks; r++)
        memcpy(trine_ref_value(ref, "y") + r * ranks * n, trine_ref_value(ref, "x"),
               (size_t)(ranks * n) * sizeof(double));
}

const trine_spec trine_spec_all_gather = {
    SPEC(all_gather),
    .summary = "The elements of each rank, for every rank",
    .formula = "y[r,i,j] = x[i,j] for every rank r",
    .source = "MPI 4.1, section 6.7, MPI_Allgather",
    .tensors = { TENSOR(x, IN, "T", "ranks n"), TENSOR(y, OUT | EXACT, "T", "ranks ranks n") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = { "T=f32|bf16|f16|f64|i8|i16|i32|i64|u8|u32|e4m3|e5m2|e4m3fnuz|e5m2fnuz|e8m0" },
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "0",
    .exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "n: 31 0 1 2 8 130 1000 5000 30000" },
    .cases = { "parameters, 2 ranks: T=f32 ranks=2 n=8388608", "parameters: T=f32 ranks=4 n=4194304",
               "parameters, bf16: T=bf16 ranks=4 n=4194304", "activations: T=bf16 ranks=4 n=32768",
               "numbers: T=i64 ranks=4 n=1" },
    .reference = reference,
};
