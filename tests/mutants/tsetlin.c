/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of Tsetlin machines. */
#include "mutant.h"

/* The last literal of an example is not looked at. */
static void last_true(trine_ref *ref, void *args) {
    const int64_t w = D("w");
    (void)args;
    for (int64_t i = 1; w > 0 && i <= D("e"); i++) V("literals")[i * w - 1] = 255;
}

/* The highest bit is the first. */
static void turned(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("e") * D("w"); i++) {
        const int byte = (int)V("literals")[i];
        int other = 0;
        for (int k = 0; k < 8; k++) other |= (byte >> k & 1) << (7 - k);
        V("literals")[i] = other;
    }
}

/* Votes are held one lower than they may be. */
static void low_threshold(trine_ref *ref, void *args) {
    trine_tm_clauses_args *const a = args;
    (void)ref;
    if (a->threshold > 1) a->threshold--;
}

/* Labels beyond the classes are of the first one. */
static void astray_learns(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("e"); i++)
        if (V("labels")[i] < 0 || V("labels")[i] >= (double)D("c")) V("labels")[i] = 0;
}

const mutant mutants_tsetlin[] = {
    { "tm_clauses", "ignores_weights", "clauses have one vote each", .without = "weights" },
    { "tm_clauses", "ignores_empty", "clauses that include nothing are false", .param = "empty", .value = 0 },
    { "tm_clauses", "ignores_threshold", "votes are not held", .param = "threshold", .value = 0 },
    { "tm_clauses", "low_threshold", "votes are held one too low", .before = low_threshold },
    { "tm_clauses", "last_true", "the last literals are taken for true", .before = last_true },
    { "tm_update", "turned", "the highest bit of a byte is the first", .before = turned },
    { "tm_update", "ignores_boost", "true literals are not always strengthened", .param = "boost", .value = 0 },
    { "tm_update", "ignores_depth", "automata have all states of their type", .param = "depth", .value = 0 },
    { "tm_update", "ignores_offset", "each call has the same numbers", .param = "offset", .value = 0 },
    { "tm_update", "ignores_seed", "each seed gives the same numbers", .param = "seed", .value = 0 },
    { "tm_update", "ignores_specificity", "s is 2", .param = "specificity", .value = 2 },
    { "tm_update", "astray_learns", "examples of no class are of the first", .before = astray_learns },
    { 0 },
};
