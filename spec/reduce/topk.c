/* SPDX-License-Identifier: Apache-2.0 */
/* topk: the table and the reference. */
#include <stdlib.h>

#include <trine/reduce.h>

#include "spec/spec.h"

#define ARGS trine_topk_args

typedef struct candidate {
    double x;
    int64_t at;
} candidate;

/* In the order of the result: NaN is larger than any number, and of equals the first comes first. */
static int compare(const candidate *a, const candidate *b, bool smallest) {
    const bool larger = isnan(a->x) ? !isnan(b->x) : a->x > b->x, less = isnan(b->x) ? !isnan(a->x) : a->x < b->x;
    if (larger != less) return larger != smallest ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}
static int descending(const void *a, const void *b) { return compare(a, b, false); }
static int ascending(const void *a, const void *b) { return compare(a, b, true); }

/* Elements are copied, and places are whole numbers: exact. */
static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n"), k = trine_ref_dim(ref, "k");
    const double *x = trine_ref_value(ref, "x");
    double *values = trine_ref_value(ref, "values"), *indices = trine_ref_value(ref, "indices");
    candidate *row = malloc(sizeof *row * (size_t)(n + 1));

    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < n; j++) row[j] = (candidate){ x[i * n + j], j };
        qsort(row, (size_t)n, sizeof *row, args->smallest ? ascending : descending);
        for (int64_t j = 0; j < k; j++) {
            if (values) values[i * k + j] = row[j].x;
            if (indices) indices[i * k + j] = (double)row[j].at;
        }
    }
    free(row);
}

const trine_spec trine_spec_topk = {
    SPEC(topk),
    .summary = "The largest elements of rows, in order, and their places",
    .formula =
        "values[i,j] = x[i,indices[i,j]], where indices[i] are the places of the k largest elements of row i, from "
        "the largest on (smallest: of the k smallest, from the smallest on). NaN is larger than any number, -0 "
        "equals 0, and of equal elements the one with the smaller index comes first",
    .source = "by definition",
    .tensors = { TENSOR(x, IN, "T", "r n"), TENSOR(values, OUT | OPTIONAL | EXACT, "T", "r k"),
                 TENSOR(indices, OUT | OPTIONAL | EXACT, "I", "r k") },
    .params = { PARAM(smallest, BOOL, .values = "0 1", .doc = "1: the smallest elements, in ascending order") },
    .types = { "T=f32|bf16|f16 I=i32|i64" },
    .require = { "values | indices", "k <= n" },
    .flops = "r*n",
    .independent = "r",
    .sizes = { "r: 1 0 2 5 33", "n: 1 2 7 64 257 1000 4099 32000", "k: 1 0 2 5 8 50 64 257 1000" },
    .cases = { "experts: T=f32 I=i32 r=8192 n=128 k=8 +values +indices",
               "sampling: T=bf16 I=i32 r=16 n=128256 k=50 +values +indices",
               "keys: T=f32 I=i32 r=64 n=65536 k=2048 +indices",
               "one row: T=f32 I=i64 r=1 n=1048576 k=64 +values +indices",
               "whole rows: T=f32 I=i32 r=1024 n=1024 k=1024 +values +indices" },
    .exact = true,
    .reference = reference,
};
