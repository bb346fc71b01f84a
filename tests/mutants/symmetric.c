/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of products that are symmetric. */
#include "mutant.h"

/* Of c what is above the diagonal counts. */
static void upper_c(trine_ref *ref, void *args) {
    const int64_t m = D("m");
    (void)args;
    for (int64_t at = 0; V("c") && at < D("g") * m * m; at++) {
        const int64_t i = at / m % m, j = at % m;
        if (j < i) V("c")[at] = V("c")[at + (j - i) * m + i - j];
    }
}

/* What is above the diagonal is not written. */
static void half_written(trine_ref *ref) {
    const int64_t m = D("m");
    for (int64_t at = 0; at < D("g") * m * m; at++)
        if (at % m > at / m % m) V("d")[at] = 0;
}

static void last_lost(trine_ref *ref, void *args) {
    const int64_t k = D("k");
    (void)args;
    for (int64_t i = 1; k > 0 && i <= D("g") * D("m"); i++) V("a")[i * k - 1] = 0;
}

const mutant mutants_symmetric[] = {
    { "matmul_symmetric", "upper_c", "the upper half of c counts", .before = upper_c },
    { "matmul_symmetric", "half_written", "the upper half of d is not written", .after = half_written },
    { "matmul_symmetric", "last_lost", "the last product of a sum is lost", .before = last_lost },
    { "matmul_symmetric", "ignores_alpha", "alpha is 1", .param = "alpha", .value = 1 },
    { 0 },
};
