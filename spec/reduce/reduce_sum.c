/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum: the table and the reference. */
#include <trine/reduce.h>

#include "spec/norm/norm.h"

#define ARGS trine_reduce_sum_args

/* Bound: a sum of n terms that pass through at most sum_depth(n) additions each is off by sum_depth(n) u of the sum of
 * absolute values (norm.h). Sums of subnormals are exact; terms may be flushed to zero. */
static void sum(const double *x, int64_t count, int64_t stride, double *value, double *magnitude, double *slack) {
    double total = 0, total_abs = 0;
    for (int64_t i = 0; i < count; i++) {
        total += x[i * stride];
        total_abs += trine_finite_abs(x[i * stride]);
    }
    *value = total;
    if (total_abs > trine_largest(TRINE_F32))
        *magnitude = INFINITY;
    else if (isfinite(total))
        *magnitude = total_abs;
    *slack = fmin((double)(count + 1) * FLUSH, total_abs);
}

static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *rows = trine_ref_value(ref, "row_sums"), *columns = trine_ref_value(ref, "column_sums");
    if (rows)
        for (int64_t i = 0; i < r; i++)
            sum(x + i * n, n, 1, rows + i, trine_ref_magnitude(ref, "row_sums") + i,
                trine_ref_slack(ref, "row_sums") + i);
    if (columns)
        for (int64_t j = 0; j < n; j++)
            sum(x + j, r, n, columns + j, trine_ref_magnitude(ref, "column_sums") + j,
                trine_ref_slack(ref, "column_sums") + j);
}

const trine_spec trine_spec_reduce_sum = {
    SPEC(reduce_sum),
    .summary = "Sums of a matrix's rows, of its columns, or of both in one pass",
    .formula = "row_sums[i] = sum_j x[i,j]; column_sums[j] = sum_i x[i,j]",
    .source = "Higham 2002, section 4.2 (blocked sums)",
    .tensors = { TENSOR(x, IN | ANY_STRIDE, "T", "r n"),
                 TENSOR(row_sums, OUT | OPTIONAL, "S", "r", .terms = SUM_DEPTH(n)),
                 TENSOR(column_sums, OUT | OPTIONAL, "S", "n", .terms = SUM_DEPTH(r)) },
    .types = { "T=f32 S=f32", "T=bf16 S=bf16|f32", "T=f16 S=f16|f32" },
    .require = { "row_sums | column_sums" },
    .flops = "r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 7 64 257 3000", "n: 1 0 3 31 32 127 1000 4097 20011" },
    .cases = { "rows f32: T=f32 r=4096 n=4096 +row_sums", "columns f32: T=f32 r=4096 n=4096 +column_sums",
               "both f32: T=f32 r=4096 n=4096 +row_sums +column_sums",
               "bias gradient: T=bf16 S=f32 r=8192 n=4096 +column_sums", "one row: T=f32 r=1 n=33554432 +row_sums",
               "tall: T=f32 r=1048576 n=16 +column_sums" },
    .integers_exact = true,
    .reference = reference,
};
