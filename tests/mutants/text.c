/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of scores of texts. */
#include "mutant.h"

#include <math.h>

/* A sentence goes to the end of its row. */
static void longer(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("lengths") && i < D("s"); i++) V("lengths")[i] = (double)D("l");
}

/* The first reference alone is seen. */
static void first_reference(trine_ref *ref, void *args) {
    (void)args;
    const int64_t r = D("r"), m = D("m");
    for (int64_t i = 0; i < D("s") * r * m; i++) V("references")[i] = V("references")[i / m / r * r * m + i % m];
}

/* Of lengths the longest is the closest. */
static void longest(trine_ref *ref) {
    const int64_t r = D("r");
    for (int64_t i = 0; r > 0 && i < D("s"); i++) {
        double most = V("reference_lengths") ? 0 : (double)D("m");
        for (int64_t k = 0; V("reference_lengths") && k < r; k++)
            most = fmax(most, fmin(V("reference_lengths")[i * r + k], (double)D("m")));
        V("closest")[i] = most;
    }
}

/* A sentence of n tokens has no n-gram. */
static void one_less(trine_ref *ref) {
    for (int64_t i = 0; i < D("s") * D("k"); i++) V("totals")[i] = fmax(0, V("totals")[i] - 1);
}

static void no_penalty(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("s"); i++) V("closest")[i] = 0;
}

const mutant mutants_text[] = {
    { "ngram_counts", "longer", "rows are sentences", .before = longer },
    { "ngram_counts", "first_reference", "all references are the first", .before = first_reference },
    { "ngram_counts", "longest", "the longest reference is taken for the closest", .after = longest },
    { "ngram_counts", "one_less", "a sentence of n tokens has no n-gram", .after = one_less },
    { "bleu", "no_penalty", "short sentences are as good", .before = no_penalty },
    { "bleu", "ignores_smoothing", "nothing is smoothed", .param = "smoothing", .value = 0 },
    { "bleu", "ignores_missing", "short sentences score 0", .param = "missing", .value = 0 },
    { "bleu", "ignores_amount", "the amount is 1", .param = "amount", .value = 1 },
    { 0 },
};
