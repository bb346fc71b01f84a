/* SPDX-License-Identifier: Apache-2.0 */
/* argsort: the table and the reference. */
#include <stdlib.h>

#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_argsort_args

typedef struct element {
    double x;
    int64_t at;
} element;

/* NaN is larger than any number, and of equals the first comes first. */
static int compare(const element *a, const element *b, bool descending) {
    const bool larger = isnan(a->x) ? !isnan(b->x) : a->x > b->x, less = isnan(b->x) ? !isnan(a->x) : a->x < b->x;
    if (larger != less) return larger == descending ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}
static int rising(const void *a, const void *b) { return compare(a, b, false); }
static int falling(const void *a, const void *b) { return compare(a, b, true); }

/* Elements are copied, and places are whole numbers: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *x = trine_ref_value(ref, "x");
    double *values = trine_ref_value(ref, "values"), *indices = trine_ref_value(ref, "indices");
    element *row = malloc(sizeof *row * (size_t)(n + 1));

    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = (element){ x[i * n + j], j };
        qsort(row, (size_t)n, sizeof *row, args->descending ? falling : rising);
        for (int64_t j = 0; j < n; j++) {
            indices[i * n + j] = (double)row[j].at;
            if (values) values[i * n + j] = row[j].x;
        }
    }
    free(row);
}

const trine_spec trine_spec_argsort = {
    SPEC(argsort),
    .summary = "The places of rows' elements in ascending or descending order",
    .formula = "values[i,j] = x[i,indices[i,j]], where indices[i] are the places of row i's elements from the smallest "
               "on (descending: from the largest on). NaN is larger than any number, -0 equals 0, and equal elements "
               "stay in their order",
    .source = "Knuth 1998, section 5.2.5",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(indices, OUT | EXACT, "I", "r n"),
                 TENSOR(values, OUT | OPTIONAL | EXACT, "T", "r n") },
    .params = { PARAM(descending, BOOL, .values = "0 1", .doc = "1: from the largest element on") },
    .types = { "T=f32|bf16|f16|i32|i64 I=i32|i64" },
    .flops = "r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 5 33", "n: 1 0 2 7 64 257 1000 4099 32000" },
    .cases = { "experts: T=f32 I=i32 r=8192 n=128 descending=1 +values",
               "vocabulary: T=bf16 I=i32 r=16 n=128256 +values", "one row: T=f32 I=i64 r=1 n=1048576 +values",
               "tokens: T=i32 I=i32 r=1 n=65536", "rows: T=f32 I=i32 r=1024 n=2048",
               "long keys: T=i64 I=i64 r=4 n=262144 +values" },
    .exact = true,
    .reference = reference,
};
