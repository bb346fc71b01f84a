/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of products by digits. */
#include <math.h>

#include <trine/exact.h>

#include "mutant.h"

static void one_slice_less(trine_ref *ref, void *args) {
    trine_int_matmul_exact_args *a = args;
    (void)ref;
    a->slices = a->slices > 1 ? a->slices - 1 : 1;
}

/* The product of doubles. */
static void doubles(trine_ref *ref) {
    const int64_t m = D("m"), n = D("n"), k = D("k");
    for (int64_t at = 0; at < D("g") * m * n; at++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += V("a")[at / n * k + p] * V("b")[at / (m * n) * k * n + p * n + at % n];
        V("d")[at] = sum;
    }
}

/* NaN and Inf are taken for zeros. */
static void numbers_alone(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("g") * D("m") * D("k"); i++)
        if (!isfinite(V("a")[i])) V("a")[i] = 0;
}

const mutant mutants_exact[] = {
    { "int_matmul_exact", "ignores_slices", "there are always 8 digits", .param = "slices", .value = 8 },
    { "int_matmul_exact", "one_slice_less", "the last digit is lost", .before = one_slice_less },
    { "int_matmul_exact", "doubles", "doubles are multiplied and added", .after = doubles },
    { "int_matmul_exact", "numbers_alone", "Inf is taken for 0", .before = numbers_alone },
    { 0 },
};
