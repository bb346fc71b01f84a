/* SPDX-License-Identifier: Apache-2.0 */
/* all_to_all_v: the table and the reference. */
#include <string.h>

#include <trine/comm.h>

#include "spec/spec.h"

#define ARGS trine_all_to_all_v_args

/* Rows that rank `from` sends to rank `to`, and where they begin in its x. */
static int64_t rows_of(const double *counts, int64_t ranks, int64_t m, int64_t from, int64_t to, int64_t *first_out) {
    int64_t first = 0, count = 0;
    for (int64_t i = 0; i <= to; i++) {
        const double wanted = counts[from * ranks + i];
        first += count;
        count = wanted <= 0 ? 0 : wanted < (double)(m - first) ? (int64_t)wanted : m - first;
    }
    *first_out = first;
    return count;
}

static void reference(trine_ref *ref) {
    const int64_t ranks = trine_ref_dim(ref, "ranks"), m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"),
                  capacity = trine_ref_dim(ref, "capacity");
    const double *x = trine_ref_value(ref, "x"), *counts = trine_ref_value(ref, "counts");
    double *received = trine_ref_value(ref, "received");
    for (int64_t r = 0; r < ranks; r++) {
        double *y = trine_ref_value(ref, "y") + r * capacity * n;
        int64_t at = 0;
        memset(y, 0, (size_t)(capacity * n) * sizeof *y);
        for (int64_t i = 0; i < ranks; i++) {
            int64_t first;
            const int64_t count = rows_of(counts, ranks, m, i, r, &first),
                          fit = count < capacity - at ? count : capacity - at;
            if (received) received[r * ranks + i] = (double)count;
            memcpy(y + at * n, x + (i * m + first) * n, (size_t)(fit * n) * sizeof *y);
            at += fit;
        }
    }
}

const trine_spec trine_spec_all_to_all_v = {
    SPEC(all_to_all_v),
    .summary = "As many rows as each rank has for a rank, for that rank",
    .formula = "received[q,i] = counts[i,q]; y[q, sum_{k<i} received[q,k] + l, j] = x[i, sum_{k<q} counts[i,k] + l, j] "
               "for l < received[q,i], and 0 in the rows after these",
    .source = "MPI 4.1, section 6.8, MPI_Alltoallv",
    .tensors = { TENSOR(x, IN, "T", "ranks m n"), TENSOR(counts, IN, "I", "ranks ranks", .fill = "slots 2*m/ranks+2"),
                 TENSOR(y, OUT | EXACT, "T", "ranks capacity n"),
                 TENSOR(received, OUT | OPTIONAL | EXACT, "I", "ranks ranks") },
    .params = { PARAM(comm, COMM, .doc = "this rank's part of the group") },
    .types = { "T=f32|bf16|f16|f64|i8|i16|i32|i64|u8|u32|e4m3|e5m2|e4m3fnuz|e5m2fnuz|e8m0 I=i32|i64" },
    .require = { "ranks > 0", "ranks <= 64" },
    .flops = "0",
    .exact = true,
    .sizes = { "ranks: 2 1 3 4 8", "m: 31 0 1 8 130", "capacity: 40 0 1 8 150", "n: 7 0 1 16 130 1000 5000" },
    .cases = { "tokens, 2 ranks: T=bf16 I=i32 ranks=2 m=2048 capacity=3072 n=4096 +received",
               "tokens: T=bf16 I=i32 ranks=4 m=2048 capacity=3072 n=4096 +received",
               "tokens of 8 bits: T=e4m3 I=i32 ranks=4 m=2048 capacity=3072 n=7168 +received",
               "a few: T=bf16 I=i32 ranks=4 m=16 capacity=64 n=4096 +received" },
    .reference = reference,
};
