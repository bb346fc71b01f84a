/* SPDX-License-Identifier: Apache-2.0 */
/* tree_predict: the table and the reference. */
#include <trine/tree.h>

#include "spec/spec.h"

#define ARGS trine_tree_predict_args

enum { MOST_LEVELS = 31 };

/* Exact: comparisons, and additions in f32 in an order that is given. */

static bool goes_left(const trine_ref *ref, double x, int64_t node) {
    const double threshold = trine_ref_value(ref, "thresholds")[node], *rules = trine_ref_value(ref, "rules");
    const int rule = rules ? (int)rules[node] : 0;
    if (isnan(x)) return rule & TRINE_TREE_NAN_LEFT;
    return rule & TRINE_TREE_EQUAL ? x == threshold : x <= threshold;
}

/* The leaf, not yet held against how many there are, or -1. */
static double free_leaf(const trine_ref *ref, const double *x, double root) {
    const double *features = trine_ref_value(ref, "features"), *children = trine_ref_value(ref, "children");
    const int64_t n = trine_ref_dim(ref, "n"), f = trine_ref_dim(ref, "f");
    double before = -1;
    for (double node = root; node > before && node < (double)n;) {
        const int64_t k = (int64_t)node;
        if (features[k] < 0) return -1 - features[k];
        if (features[k] >= (double)f) return -1;
        before = node;
        node = children[2 * k + !goes_left(ref, x[(int64_t)features[k]], k)];
    }
    return -1;
}

static double oblivious_leaf(const trine_ref *ref, const double *x, double root, int64_t tree) {
    const double *features = trine_ref_value(ref, "features");
    const int64_t f = trine_ref_dim(ref, "f"), levels = trine_ref_dim(ref, "n") / trine_ref_dim(ref, "t");
    double leaf = root;
    if (levels > MOST_LEVELS || root < 0) return -1;
    for (int64_t k = 0; k < levels; k++) {
        const int64_t node = tree * levels + k;
        if (features[node] < 0 || features[node] >= (double)f) return -1;
        if (!goes_left(ref, x[(int64_t)features[node]], node)) leaf += exp2((double)k);
    }
    return leaf;
}

static void reference(trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), f = trine_ref_dim(ref, "f"), t = trine_ref_dim(ref, "t"),
                  l = trine_ref_dim(ref, "l"), v = trine_ref_dim(ref, "v"), o = trine_ref_dim(ref, "o");
    const double *roots = trine_ref_value(ref, "roots"), *leaves = trine_ref_value(ref, "leaves"),
                 *targets = trine_ref_value(ref, "targets"), *base = trine_ref_value(ref, "base");
    double *y = trine_ref_value(ref, "y"), *indices = trine_ref_value(ref, "indices");
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < o; j++) y[i * o + j] = base ? base[j] : 0;
        for (int64_t tree = 0; tree < t; tree++) {
            const double *x = trine_ref_value(ref, "x") + i * f;
            double leaf = trine_ref_value(ref, "children") ? free_leaf(ref, x, roots[tree])
                                                           : oblivious_leaf(ref, x, roots[tree], tree);
            if (leaf >= (double)l) leaf = -1;
            if (indices) indices[i * t + tree] = leaf;
            const int64_t target = targets ? (int64_t)targets[tree] : 0;
            for (int64_t k = 0; k < v; k++) {
                if (target + k < 0 || target + k >= o) continue;
                const float term = leaf < 0 ? NAN : (float)leaves[(int64_t)leaf * v + k];
                y[i * o + target + k] = (float)y[i * o + target + k] + term;
            }
        }
    }
}

static uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Trees of n/t nodes each, complete ones in the order of their levels; oblivious ones of n/t levels. Where there are
 * few nodes, some are not as they should be. */
static void prepare(trine_ref *ref) {
    const int64_t n = trine_ref_dim(ref, "n"), t = trine_ref_dim(ref, "t"), f = trine_ref_dim(ref, "f"),
                  l = trine_ref_dim(ref, "l"),
                  each = t > 0 && n > t ? n / t
                         : n > 0        ? 1
                                        : 0;
    double *features = trine_ref_value(ref, "features"), *children = trine_ref_value(ref, "children"),
           *roots = trine_ref_value(ref, "roots");
    const double sample = n > 0 ? trine_ref_value(ref, "thresholds")[0] : 0;
    const uint32_t seed = (uint32_t)(int64_t)(isfinite(sample) ? fmod(sample * 1021, 1e6) : 0) + (uint32_t)(31 * l + f);
    const bool wild = n < 4096 && mixed(seed) % 3 == 0;
    for (int64_t k = 0; k < n; k++) {
        const uint32_t word = mixed(seed + 3 * (uint32_t)k + 1), other = mixed(word);
        const int64_t place = each > 0 ? k % each : 0, first = k - place;
        const bool inner = children == NULL || (2 * place + 2 < each && (n >= 4096 || word % 16 != 0));
        features[k] = inner ? (double)(f > 0 ? other % f : 0) : -1.0 - (double)(l > 0 ? other % l : 0);
        if (wild && word % 32 == 1) features[k] = (double)(word % 64 == 1 ? f : -1 - l);
        for (int64_t side = 0; children && side < 2; side++) {
            children[2 * k + side] = inner ? (double)(first + 2 * place + 1 + side) : -1;
            if (inner && n < 4096 && word % 8 == 2) children[2 * k + side] = (double)(k + 1);
            if (wild && word % 32 == 3) children[2 * k + side] = side ? (double)k : (double)n;
        }
    }
    for (int64_t tree = 0; tree < t; tree++) {
        const uint32_t word = mixed(seed + 7 * (uint32_t)tree + 5);
        roots[tree] = children ? (double)(n > 0 ? tree * each % n : 0) : (double)(word % (l / 2 + 1));
        if (children == NULL && each < MOST_LEVELS && (t << each) <= l) roots[tree] = (double)(tree << each);
        if (wild && word % 8 == 0) roots[tree] = word % 16 == 0 ? -1 : (double)(children ? n : l);
    }
}

const trine_spec trine_spec_tree_predict = {
    SPEC(tree_predict),
    .summary = "What an ensemble of decision trees predicts",
    .formula = "y[i,j] = base[j] + sum over the trees t, in order and in f32, of leaves[leaf(i,t), j - targets[t]]; at "
               "a node a row goes left if x[i,feature] <= threshold, or == with bit 1 of its rule; NaN goes left with "
               "bit 0; leaf(i,t) is the leaf that this leads to from roots[t], or without children roots[t] + sum over "
               "levels k of 2^k where it goes right",
    .source = "Breiman et al. 1984; Prokhorenkova et al. 2018 (CatBoost) and Fuhrer et al. 2024 (GBRL)",
    .tensors = { TENSOR(x, IN, "T", "r f"), TENSOR(features, IN, "i32", "n", .fill = "derived"),
                 TENSOR(thresholds, IN, "T", "n"), TENSOR(rules, IN | OPTIONAL, "u8", "n"),
                 TENSOR(children, IN | OPTIONAL, "i32", "n 2", .fill = "derived"),
                 TENSOR(roots, IN, "i32", "t", .fill = "derived"), TENSOR(leaves, IN, "T", "l v"),
                 TENSOR(targets, IN | OPTIONAL, "i32", "t", .fill = "places o"), TENSOR(base, IN | OPTIONAL, "T", "o"),
                 TENSOR(y, OUT | EXACT, "T", "r o"), TENSOR(indices, OUT | OPTIONAL | EXACT, "i32", "r t") },
    .types = { "T=f32" },
    .require = { "without targets: v == o" },
    .flops = "r*t*v",
    .independent = "r",
    .exact = true,
    .sizes = { "r: 1 0 7 16 100 4100", "f: 1 0 3 20", "n: 7 0 1 2 30 63 300", "t: 1 0 2 3 10", "l: 4 0 1 32 200",
               "v: 1 0 2 3 8", "o: 1 0 2 3 8" },
    .cases = { "500 trees of depth 6, 28 features: T=f32 r=100000 f=28 n=63500 t=500 l=32000 v=1 o=1 +children +rules",
               "100 trees of depth 8, few rows: T=f32 r=16 f=100 n=51100 t=100 l=25600 v=1 o=1 +children +rules",
               "forest of 100, 10 classes: T=f32 r=10000 f=54 n=204700 t=100 l=102400 v=10 o=10 +children",
               "1000 oblivious trees of depth 6: T=f32 r=100000 f=28 n=6000 t=1000 l=64000 v=1 o=1" },
    .reference = reference,
    .prepare = prepare,
};
