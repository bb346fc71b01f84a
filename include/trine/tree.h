/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of decision trees: what they predict, and how good each split of a tree that grows would be. */
#ifndef TRINE_TREE_H
#define TRINE_TREE_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of a test's rule. */
enum {
    TRINE_TREE_NAN_LEFT = 1, /* NaN goes to the left, else to the right */
    TRINE_TREE_EQUAL = 2     /* left where x equals the threshold, else where it is at most the threshold */
};

/* What a split is scored by. */
enum {
    TRINE_SPLIT_L2 = 0,    /* sums' squares over weights */
    TRINE_SPLIT_COSINE = 1 /* the root of that */
};

typedef struct trine_tree_predict_args {
    size_t struct_size;             /* sizeof(trine_tree_predict_args) */
    const trine_tensor *x;          /* in r f */
    const trine_tensor *features;   /* in n, i32: of each node; below 0: a leaf */
    const trine_tensor *thresholds; /* in n, f32 */
    const trine_tensor *rules;      /* in, optional n, u8: bits of TRINE_TREE_*; NULL: 0 */
    const trine_tensor *children;   /* in, optional n 2, i32: left and right; NULL: trees are oblivious */
    const trine_tensor *roots;      /* in t, i32: a tree's first node, or of an oblivious tree its first leaf */
    const trine_tensor *leaves;     /* in l v, f32 */
    const trine_tensor *targets;    /* in, optional t, i32: the output that a leaf's first value is added to */
    const trine_tensor *base;       /* in, optional o, f32 */
    const trine_tensor *y;          /* out r o, f32 */
    const trine_tensor *indices;    /* out, optional r t, i32: the leaf of each tree */
} trine_tree_predict_args;

/* What an ensemble of binary trees predicts: the sum of the leaves that a row of features comes to.
 *
 *     y[i,j] = base[j] + sum over the trees t of leaves[leaf(i,t), j - targets[t]]
 *     left   = NaN ? rule & 1 : rule & 2 ? x[i,feature] == threshold : x[i,feature] <= threshold
 *
 * Free trees, with children: a tree begins at node roots[t]. At a node k whose feature is not negative the row goes to
 * children[k,0] if left, else to children[k,1]; one whose feature is negative is the leaf -1 - features[k]. A child has
 * a larger number than its node, so that each walk ends; two nodes may share a child. Oblivious trees, without
 * children: a level has one test, tree t has those of d = n/t nodes from t d on, and its leaf is roots[t] + sum over
 * the levels k of 2^k where the row goes to the right at level k.
 *
 * Leaves have v values, which are added to the outputs from targets[t] on; without targets from 0 on, v = o. Those
 * beyond the outputs are passed over. The sum is in f32, of base, or else 0, and then of the trees in their order, one
 * by one: the same bits everywhere.
 *
 * Other programs' trees. x < c is x <= the largest number below c; of a threshold in f64 the next f32 below it or equal
 * says the same of features in f32. Membership in a set of categories is a row of tests of equality that share their
 * left child. Means over trees and rates of learning are factors of the leaves. scikit-learn, LightGBM, CatBoost and
 * GBRL have x <= c on the left, XGBoost has x < c.
 *
 * A feature, a child or a leaf that is not there, a child not beyond its node, and an oblivious tree of more than 31
 * levels make NaN of what the tree adds, and -1 of its index.
 *
 * Source: Breiman et al. 1984; oblivious trees as in Prokhorenkova et al. 2018 (CatBoost) and Fuhrer et al. 2024
 * (GBRL).
 *
 * Shapes: x is r f, features, thresholds and rules are n, children is n 2, roots and targets are t, leaves is l v, base
 * is o, y is r o, indices is r t. The last dimension is contiguous, leading strides are free.
 * Types: x, thresholds, leaves, base and y are f32, rules is u8, the others are i32.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none; y is the sum in f32 in the order above, the same bits on every device.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_tree_predict(trine_queue *queue, const trine_tree_predict_args *args);

typedef struct trine_tree_split_score_args {
    size_t struct_size;                  /* sizeof(trine_tree_split_score_args) */
    const trine_tensor *bins;            /* in s f: u8 or i32 */
    const trine_tensor *nodes;           /* in, optional s, i32: the node of each sample; NULL: all are in node 0 */
    const trine_tensor *gradients;       /* in s d, f32 */
    const trine_tensor *hessians;        /* in, optional s, f32: weights; NULL: 1 */
    const trine_tensor *categorical;     /* in, optional f, u8: 1: bins are categories, of which one goes left */
    const trine_tensor *feature_weights; /* in, optional f, f32 */
    const trine_tensor *scores;          /* out m f b, f32 */
    const trine_tensor *left_sums;       /* out, optional m f b d, f32 */
    const trine_tensor *left_weights;    /* out, optional m f b, f32 */
    const trine_tensor *left_counts;     /* out, optional m f b, i32 */
    int32_t score;                       /* TRINE_SPLIT_* */
    int32_t min_count;                   /* samples that each side must have; 0: 1 */
    float regularization;                /* added to the weights of each side */
    int32_t gain;                        /* 1: the score of the whole node is subtracted */
    int32_t missing_left;                /* 1: samples without a bin go left instead of right */
} trine_tree_split_score_args;

/* How good each split of some nodes of a growing tree would be, by histograms.
 *
 *     L(p,j,k) = the samples i of node p with bins[i,j] <= k, of a categorical feature with bins[i,j] = k
 *     G_L, H_L = the sums of their gradients and hessians, n_L how many they are; R the node's other samples
 *     Q(G,H)   = sum over q of G[q]^2 / (H + regularization)
 *     scores[p,j,k] = feature_weights[j] (S - W), or -Inf if n_L or n_R is less than min_count
 *
 * S is Q(G_L,H_L) + Q(G_R,H_R), and W is Q(G,H) of the node if gain is asked for, else 0; with the score cosine each of
 * them is replaced by its root. With weights of 1 that is what the cosine of the gradients and their sides' means comes
 * to, times the root of the sum of the gradients' squares, which is the same for all splits of a node.
 *
 * Ordinary boosting has bins of each feature's quantiles, b of them, and second derivatives as hessians. GBRL tries
 * values that it chooses: the bin of a sample is then how many of its feature's values it exceeds, and split k is that
 * of value k. A sample whose bin is not in [0, b) has none, as where its feature is NaN, and goes to one side of all
 * splits of that feature; calls for both sides find the better one. One whose node is not in [0, m) is in none.
 *
 * Sums over both sides are of their samples, and not one the difference of others, so that NaN in one does not reach
 * the other, and nothing cancels.
 *
 * Source: Friedman 2001; Chen and Guestrin 2016 (XGBoost), eq. 6; cosine as in Fuhrer et al. 2024 (GBRL).
 *
 * Shapes: bins is s f, nodes and hessians are s, gradients is s d, categorical and feature_weights are f, scores,
 * left_weights and left_counts are m f b, left_sums is m f b d; without nodes m = 1. The last dimension is contiguous,
 * leading strides are free.
 * Types: bins is u8 or i32, nodes and left_counts are i32, categorical is u8, the others are f32. Sums are in f32.
 * Parameters: score l2 or cosine; min_count >= 1, 0 means 1; regularization >= 0.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: (s + b + 4) 2^-24 times the sums of |gradients| and |hessians| for sums; what that makes of the scores
 * follows from their sizes: spec/tree/tree_split_score.c. left_counts and -Inf are exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter out of range; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (more than 2^31 - 1
 * samples; the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_tree_split_score(trine_queue *queue, const trine_tree_split_score_args *args);

#ifdef __cplusplus
}
#endif

#endif
