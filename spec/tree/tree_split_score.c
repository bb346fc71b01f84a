/* SPDX-License-Identifier: Apache-2.0 */
/* tree_split_score: the table and the reference. */
#include <stdlib.h>
#include <trine/tree.h>

#include "spec/spec.h"

#define ARGS trine_tree_split_score_args

/* Bound, with u = 2^-24 and c = s + b + 4: an addend of a sum goes through at most c additions, whether samples are
 * added up in chunks or not, and bins from either end. So G has an error of at most c u sum |g|, H of c u sum |h|
 * (Higham 2002, section 4.2). What G and H make of Q(G,H) = sum of G^2 / (H + lambda) is in quotient(): with errors D
 * of each G and a relative one of r of the divisor, r at most 1/2, numerator and divisor give
 *
 *     (2.1 sum (2 |G| D + D^2) + (2 r + 2.1 u (d + 3)) sum (|G| + D)^2) / |H + lambda|
 *
 * with the roundings of squares, their sum, the divisor and the quotient. Each of the c additions of H may lose a
 * subnormal number besides, so that weights of next to nothing may be a divisor of 0. Beyond r = 1/2 anything may come
 * out. A root of Q with error E is off by at most min(E / root(Q), root(E)), and by 3u of itself. Squares that
 * underflow are off by FLUSH each. Sums and squares that may overflow have no bound. */
#define FLUSH 0x1p-126
#define U 0x1p-24

typedef struct sums {
    double *g, *size; /* d of each */
    double h, h_size, count;
} sums;

typedef struct near {
    double value, error; /* error: infinite where anything may come out */
} near;

static void add(sums *to, const double *g, double h, int64_t d) {
    for (int64_t q = 0; q < d; q++) {
        to->g[q] += g[q];
        to->size[q] += trine_finite_abs(g[q]);
    }
    to->h += h;
    to->h_size += trine_finite_abs(h);
    to->count++;
}

static near quotient(const sums *a, int64_t d, double lambda, double c) {
    const double most = trine_largest(TRINE_F32), divisor = a->h + lambda,
                 r = (c * (U * a->h_size + FLUSH) + 2 * U * (a->h_size + lambda)) / fabs(divisor);
    double squares = 0, larger = 0, off = 0;
    bool wild = a->h_size + lambda > most;
    for (int64_t q = 0; q < d; q++) {
        const double error = c * U * a->size[q], g = trine_finite_abs(a->g[q]);
        squares += a->g[q] * a->g[q];
        larger += (g + error) * (g + error);
        off += 2 * g * error + error * error;
        wild |= a->size[q] > most;
    }
    near x = { squares / divisor, 0 };
    x.error = (2.1 * off + (2 * r + 2.1 * U * ((double)d + 3)) * larger + (double)d * FLUSH) / fabs(divisor) + FLUSH;
    wild |=
        larger > most || (isfinite(x.value) && fabs(x.value) + x.error > most) || (isfinite(divisor) && !(r <= 0.5));
    if (wild) x.error = INFINITY;
    return x;
}

static near root_of(near x) {
    const near root = { sqrt(x.value), 0 };
    if (isinf(x.error)) return (near){ root.value, INFINITY };
    if (!isfinite(x.value)) return root;
    if (x.value < 0 || x.value < x.error) return (near){ root.value, x.value < 0 ? INFINITY : sqrt(2 * x.error) };
    return (near){ root.value, x.error / root.value + 3 * U * root.value + FLUSH };
}

static near sum_of(near x, near y) {
    return (near){ x.value + y.value,
                   x.error + y.error + 2 * U * (trine_finite_abs(x.value) + trine_finite_abs(y.value)) };
}

static void put_score(trine_ref *ref, int64_t at, int64_t j, const sums side[3], double c) {
    const ARGS *args = ref->args;
    const int64_t d = trine_ref_dim(ref, "d");
    const double *weights = trine_ref_value(ref, "feature_weights"), w = weights ? weights[j] : 1;
    double *score = trine_ref_value(ref, "scores") + at;
    if (side[0].count < args->min_count || side[1].count < args->min_count) {
        *score = -INFINITY;
        return;
    }
    const double lambda = (double)args->regularization + 0;
    near x = sum_of(quotient(&side[0], d, lambda, c), quotient(&side[1], d, lambda, c));
    near whole = quotient(&side[2], d, lambda, c);
    if (args->score == TRINE_SPLIT_COSINE) x = root_of(x), whole = root_of(whole);
    if (args->gain) whole.value = -whole.value, x = sum_of(x, whole);
    *score = w * x.value;
    const double error = fabs(w) * x.error + 2 * U * fabs(*score) + FLUSH;
    const bool wild = isinf(x.error) || (isfinite(*score) && fabs(*score) + error > trine_largest(TRINE_F32));
    if (wild)
        trine_ref_magnitude(ref, "scores")[at] = INFINITY;
    else if (isfinite(*score))
        trine_ref_slack(ref, "scores")[at] = error;
}

static void put_sums(trine_ref *ref, int64_t at, const sums *left) {
    const int64_t d = trine_ref_dim(ref, "d");
    const double most = trine_largest(TRINE_F32);
    double *sum = trine_ref_value(ref, "left_sums"), *weight = trine_ref_value(ref, "left_weights"),
           *count = trine_ref_value(ref, "left_counts");
    for (int64_t q = 0; sum && q < d; q++) {
        sum[at * d + q] = left->g[q];
        trine_ref_magnitude(ref, "left_sums")[at * d + q] = left->size[q] > most ? INFINITY : left->size[q];
    }
    if (weight) {
        weight[at] = left->h;
        trine_ref_magnitude(ref, "left_weights")[at] = left->h_size > most ? INFINITY : left->h_size;
    }
    if (count) count[at] = left->count;
}

/* One split: the samples of its node, by side. `room` has 6 d numbers. */
static void split(trine_ref *ref, int64_t p, int64_t j, int64_t k, double *room) {
    const ARGS *args = ref->args;
    const int64_t s = trine_ref_dim(ref, "s"), f = trine_ref_dim(ref, "f"), b = trine_ref_dim(ref, "b"),
                  d = trine_ref_dim(ref, "d"), at = (p * f + j) * b + k;
    const double *bins = trine_ref_value(ref, "bins"), *nodes = trine_ref_value(ref, "nodes"),
                 *g = trine_ref_value(ref, "gradients"), *h = trine_ref_value(ref, "hessians"),
                 *categorical = trine_ref_value(ref, "categorical");
    sums side[3];
    for (int i = 0; i < 3; i++) side[i] = (sums){ .g = room + 2 * i * d, .size = room + (2 * i + 1) * d };
    for (int64_t i = 0; i < 6 * d; i++) room[i] = 0;
    for (int64_t i = 0; i < s; i++) {
        if (nodes && nodes[i] != (double)p) continue;
        const double bin = bins[i * f + j];
        const bool missing = bin < 0 || bin >= (double)b, one = categorical && ((int)categorical[j] & 1),
                   left = missing ? args->missing_left
                          : one   ? bin == (double)k
                                  : bin <= (double)k;
        add(&side[!left], g + i * d, h ? h[i] : 1, d);
        add(&side[2], g + i * d, h ? h[i] : 1, d);
    }
    put_score(ref, at, j, side, (double)(s + b + 4));
    put_sums(ref, at, &side[0]);
}

static void reference(trine_ref *ref) {
    const int64_t m = trine_ref_dim(ref, "m"), f = trine_ref_dim(ref, "f"), b = trine_ref_dim(ref, "b"),
                  d = trine_ref_dim(ref, "d");
    double *room = malloc((size_t)(6 * d + 1) * sizeof *room);
    for (int64_t p = 0; room && p < m; p++)
        for (int64_t j = 0; j < f; j++)
            for (int64_t k = 0; k < b; k++) split(ref, p, j, k, room);
    free(room);
}

const trine_spec trine_spec_tree_split_score = {
    SPEC(tree_split_score),
    .summary = "How good each split of the nodes of a growing tree would be",
    .formula = "L(p,j,k) = samples i with nodes[i] = p and bins[i,j] <= k, or = k if categorical[j] is odd; G, H, n "
               "are their sums of gradients and hessians and their number; Q = sum_q G[q]^2 / (H + regularization); "
               "scores[p,j,k] = feature_weights[j] (S - W), S = Q of L + Q of the rest, W = Q of the node if gain, "
               "else 0, or the roots of these if cosine; -Inf if n of a side is less than min_count",
    .source = "Friedman 2001; Chen and Guestrin 2016 (XGBoost), eq. 6; Fuhrer et al. 2024 (GBRL)",
    .tensors = { TENSOR(bins, IN, "B", "s f", .fill = "slots b"),
                 TENSOR(nodes, IN | OPTIONAL, "i32", "s", .fill = "places m"), TENSOR(gradients, IN, "f32", "s d"),
                 TENSOR(hessians, IN | OPTIONAL, "f32", "s", .fill = "positive"),
                 TENSOR(categorical, IN | OPTIONAL, "u8", "f"), TENSOR(feature_weights, IN | OPTIONAL, "f32", "f"),
                 TENSOR(scores, OUT, "f32", "m f b", .terms = "1"),
                 TENSOR(left_sums, OUT | OPTIONAL, "f32", "m f b d", .terms = "s + b + 4"),
                 TENSOR(left_weights, OUT | OPTIONAL, "f32", "m f b", .terms = "s + b + 4"),
                 TENSOR(left_counts, OUT | OPTIONAL | EXACT, "i32", "m f b") },
    .params = { PARAM(score, ENUM, .values = "l2 cosine", .doc = "what a split is scored by"),
                PARAM(min_count, I32, .values = "1 2 5", .fallback = 1, .min = 0, .max = 0x1p31 - 1,
                      .doc = "samples that each side must have"),
                PARAM(regularization, F32, .values = "0 1 0.5", .min = 0, .doc = "added to the weights of each side"),
                PARAM(gain, BOOL, .values = "0 1", .doc = "1: the score of the whole node is subtracted"),
                PARAM(missing_left, BOOL, .values = "0 1", .doc = "1: samples without a bin go left") },
    .types = { "B=u8|i32" },
    .require = { "without nodes: m == 1" },
    .flops = "s*f*(d+1)",
    .sizes = { "s: 40 0 1 2 300 1500", "f: 3 0 1 9", "d: 1 0 2 3", "m: 1 0 2 5", "b: 8 0 1 2 32" },
    .cases = { "28 features, 255 bins, root: B=u8 s=200000 f=28 d=1 m=1 b=255 +hessians",
               "28 features, 64 bins, 16 nodes: B=u8 s=200000 f=28 d=1 m=16 b=64 +nodes +hessians",
               "gbrl, 8 actions: B=i32 s=4096 f=24 d=8 m=1 b=256 score=cosine" },
    .reference = reference,
};
