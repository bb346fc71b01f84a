/* SPDX-License-Identifier: Apache-2.0 */
/* max_plus_matmul: the table and the reference. */
#include <trine/dynamic.h>

#include "spec/plan.h"

#define ARGS trine_max_plus_matmul_args

/* Two numbers' sum as the type has it: sums of floats are exact in f64, or rounded to f32 as they would be at once. */
static double sum_as(double a, double b, trine_dtype type) {
    if (type == TRINE_F64) return a + b;
    if (type == TRINE_F32) return (double)((float)a + (float)b);
    return (double)(int32_t)(uint32_t)((int64_t)a + (int64_t)b);
}

/* What no number is less than, or with `minimum` larger. */
static double farthest(trine_dtype type, bool minimum) {
    if (type == TRINE_I32) return minimum ? INT32_MAX : INT32_MIN;
    return minimum ? INFINITY : -INFINITY;
}

/* Exact: each sum is rounded once, if at all, and one of them is chosen. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t m = trine_ref_dim(ref, "m"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const trine_dtype type = trine_ref_type(ref, "T");
    const double *a = trine_ref_value(ref, "a"), *b = trine_ref_value(ref, "b"), *c = trine_ref_value(ref, "c");
    double *d = trine_ref_value(ref, "d"), *indices = trine_ref_value(ref, "indices");
    for (int64_t at = 0; at < trine_ref_dim(ref, "g") * m * n; at++) {
        const double *row = a + at / n * k, *column = b + at / (m * n) * k * n + at % n;
        double best = c ? c[at] : farthest(type, args->minimum);
        int64_t index = -1;
        for (int64_t p = 0; p < k; p++) {
            const double sum = sum_as(row[p], column[p * n], type);
            if (!(args->minimum ? sum < best : sum > best) && !(isnan(sum) && !isnan(best))) continue;
            best = sum;
            index = p;
        }
        d[at] = best;
        if (indices) indices[at] = (double)index;
    }
}

const trine_spec trine_spec_max_plus_matmul = {
    SPEC(max_plus_matmul),
    .summary = "Matrix product of largest, or smallest, sums: tropical",
    .formula =
        "d = max(c, max_p a[i,p] + b[p,j]); indices is the p, -1 where d is c or nothing; with minimum min for max",
    .source = "Butkovic 2010; Floyd 1962, Warshall 1962",
    .tensors = { TENSOR(a, IN | TRANSPOSABLE, "T", "[g] m k"), TENSOR(b, IN | TRANSPOSABLE, "T", "[g] k n"),
                 TENSOR(c, IN | OPTIONAL, "T", "[g] m n"), TENSOR(d, OUT | EXACT, "T", "[g] m n"),
                 TENSOR(indices, OUT | OPTIONAL | EXACT, "i64", "[g] m n") },
    .params = { PARAM(minimum, BOOL, .values = "0 1", .doc = "the smallest sum") },
    .types = { "T=f32|f64|i32" },
    .alias = { "d=c" },
    .flops = "2*g*m*n*k",
    .independent = "g",
    .sizes = { "g: 1 0 2 3", "m: 1 0 2 7 33 64 70", "n: 1 0 3 8 31 64 65 130 200", "k: 1 0 2 5 8 31 64 300" },
    .exact = true,
    .cases = { "graph f32: T=f32 m=1024 n=1024 k=1024", "graph i32: T=i32 m=1024 n=1024 k=1024 +c minimum=1",
               "ways: T=f32 m=512 n=512 k=512 +c +indices minimum=1", "batch: T=i32 g=64 m=128 n=128 k=128" },
    .reference = reference,
};
