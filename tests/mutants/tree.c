/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of ensembles of trees and of the scores of their splits. */
#include "mutant.h"

#include <math.h>

/* What equals the threshold goes to the right. */
static void strict(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; k < D("n"); k++) V("thresholds")[k] = nextafterf((float)V("thresholds")[k], -INFINITY);
}

/* NaN goes to the right, whatever the rule. */
static void nan_right(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("rules") && k < D("n"); k++) V("rules")[k] = (double)((int)V("rules")[k] & ~1);
}

/* No test is of equality. */
static void never_equal(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("rules") && k < D("n"); k++) V("rules")[k] = (double)((int)V("rules")[k] & ~2);
}

static void exchanged(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t k = 0; V("children") && k < D("n"); k++) {
        const double left = V("children")[2 * k];
        V("children")[2 * k] = V("children")[2 * k + 1];
        V("children")[2 * k + 1] = left;
    }
}

/* A tree that goes astray adds nothing. */
static void nan_lost(trine_ref *ref) {
    for (int64_t i = 0; i < D("r") * D("o"); i++)
        if (isnan(V("y")[i])) V("y")[i] = 0;
}

/* The bin of a split goes to the right. */
static void bin_right(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; i < D("s") * D("f"); i++)
        if (V("bins")[i] >= 0 && V("bins")[i] + 1 < (double)D("b")) V("bins")[i]++;
}

/* A count of min_count is too few. */
static void too_few(trine_ref *ref, void *args) {
    (void)ref;
    ((trine_tree_split_score_args *)args)->min_count++;
}

static void none_refused(trine_ref *ref) {
    for (int64_t i = 0; i < D("m") * D("f") * D("b"); i++)
        if (isinf(V("scores")[i])) V("scores")[i] = 0;
}

/* Samples beyond the nodes are of the first one. */
static void astray_counts(trine_ref *ref, void *args) {
    (void)args;
    for (int64_t i = 0; V("nodes") && i < D("s"); i++)
        if (V("nodes")[i] < 0 || V("nodes")[i] >= (double)D("m")) V("nodes")[i] = 0;
}

const mutant mutants_tree[] = {
    { "tree_predict", "strict", "what equals the threshold goes to the right", .before = strict },
    { "tree_predict", "nan_right", "NaN goes to the right", .before = nan_right, .dims = "r=1 f=1 t=10 n=30",
      .cases = 2000 },
    { "tree_predict", "never_equal", "tests of equality are comparisons", .before = never_equal },
    { "tree_predict", "exchanged", "left and right are exchanged", .before = exchanged },
    { "tree_predict", "nan_lost", "a tree that goes astray adds nothing", .after = nan_lost },
    { "tree_predict", "ignores_base", "sums begin with 0", .without = "base" },
    { "tree_predict", "ignores_targets", "leaves are added from the first output on", .without = "targets" },
    { "tree_split_score", "bin_right", "the bin of a split goes to the right", .before = bin_right },
    { "tree_split_score", "too_few", "min_count samples are too few", .before = too_few },
    { "tree_split_score", "none_refused", "splits of too few samples have a score", .after = none_refused },
    { "tree_split_score", "astray_counts", "samples of no node are of the first", .before = astray_counts },
    { "tree_split_score", "ignores_hessians", "weights are 1", .without = "hessians" },
    { "tree_split_score", "ignores_categorical", "no feature is categorical", .without = "categorical" },
    { "tree_split_score", "ignores_weights", "features weigh the same", .without = "feature_weights" },
    { "tree_split_score", "ignores_gain", "the node's score stays", .param = "gain", .value = 0 },
    { "tree_split_score", "ignores_missing_left", "samples without a bin go right", .param = "missing_left",
      .value = 0 },
    { "tree_split_score", "ignores_cosine", "the score is l2", .param = "score", .value = 0 },
    { "tree_split_score", "ignores_regularization", "nothing is added to weights", .param = "regularization",
      .value = 0 },
    { 0 },
};
