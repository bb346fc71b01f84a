/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route: the table and the reference. */
#include <stdlib.h>

#include <trine/moe.h>

#include "spec/spec.h"
#include "spec/power.h"

#define ARGS trine_moe_route_args
#define U 0x1p-24

/* The choice is exact. By logits alone it is so by itself. With a bias or groups it is made by f32 scores of these very
 * operations, each rounded once to nearest even and none fused:
 *
 * power(t), for t <= 0: 0 if t < -80; else with k = t LOG2E rounded to an integer by adding and taking off 1.5 2^23,
 * and r = (t - k LN2_HIGH) - k LN2_LOW, the polynomial of the series up to r^7/7! by Horner's rule, times 2^k.
 * A sum of powers: 32 partial ones, of every 32nd from the first, second, ... on; then the upper half of them is added
 * to the lower one until one is left.
 * softmax: power(x - max)/sum. sigmoid: with p = power(-|x|), 1/(1 + p), for x < 0 p/(1 + p). The bias is added.
 *
 * Bound. power(t) for the rounded t is within 5u of itself: 1.4u for the last addition, the result being at least 0.7,
 * 2.2u for the product before it and what went into it, at most 0.42 with four roundings, 0.5u for r, 0.1u for the
 * series. The rounding of t = x - max, at most u|t|, comes on top, and moves a sum by the mean of |t| under the scores.
 * softmax: 5u for the power, 5u and (e/32 + 6)u for the sum, u for the quotient. sigmoid: 5u, half of that in 1 + p, u
 * for this and u for the quotient, within 10u. A weight that is not made to sum to 1 has a rounding more, by scale.
 * Else it is the quotient of two powers or sigmoids and their sum: 20u, k for the sum, one for the quotient and one for
 * scale. 24 holds what is missing to these numbers, and products of errors. */
enum { LANES = 32 };

/* Larger numbers for larger x: those of -0 and 0 are equal, NaN's is the largest. */
static double order(double x) { return isnan(x) ? INFINITY : isinf(x) ? copysign(0x1p200, x) : x; }

typedef struct token {
    int64_t e;
    const double *x, *bias;
    double origin;       /* softmax: the largest x; NaN if that is infinite or NaN */
    double *power;       /* the numerators of scores: for sigmoid the scores */
    double *key;         /* what the choice is made by; -Inf: none */
    double *kept;        /* of groups */
    float *f32;          /* scores as kernels have them, with the bias */
    double total, moved; /* sum of powers, and mean of |t| */
} token;

static bool flushed(const token *at, int64_t i) { return (float)(at->x[i] - at->origin) < -80; }

static void score_softmax(token *at) {
    float partial[LANES] = { 0 };
    at->origin = at->x[0];
    for (int64_t i = 1; i < at->e; i++)
        if (order(at->x[i]) > order(at->origin)) at->origin = at->x[i];
    at->origin += at->origin - at->origin;
    at->total = at->moved = 0;
    for (int64_t i = 0; i < at->e; i++) {
        at->power[i] = flushed(at, i) ? 0 : exp(at->x[i] - at->origin);
        at->total += at->power[i];
        if (at->power[i] > 0) at->moved += at->power[i] * (at->origin - at->x[i]);
        at->f32[i] = power((float)(at->x[i] - at->origin));
        partial[i % LANES] += at->f32[i];
    }
    at->moved /= at->total;
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) partial[i] += partial[i + half];
    for (int64_t i = 0; i < at->e; i++) at->f32[i] = once(at->f32[i] / partial[0]);
}

static void score_sigmoid(token *at) {
    for (int64_t i = 0; i < at->e; i++) {
        const double x = at->x[i], p = -fabs(x) < -80 ? 0 : exp(-fabs(x));
        const float p32 = power((float)-fabs(x));
        at->power[i] = (x < 0 ? p : 1) / (1 + p);
        at->f32[i] = (x < 0 ? p32 : 1) / once(1 + p32);
    }
    at->total = 1;
    at->moved = 0;
}

/* The best of n keys, the first of equals; taken off. -1: there is none. */
static int64_t take(double *key, int64_t n) {
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++)
        if (key[i] > -INFINITY && (best < 0 || key[i] > key[best])) best = i;
    if (best >= 0) key[best] = -INFINITY;
    return best;
}

/* What the best two scores of a group add up to, or its one. */
static double group_key(const float *score, int64_t n) {
    double best[2] = { -INFINITY, -INFINITY };
    int64_t at[2] = { 0, 0 };
    for (int64_t i = 0; i < n; i++) {
        const double x = order((double)score[i]);
        if (x > best[0])
            best[1] = best[0], at[1] = at[0], best[0] = x, at[0] = i;
        else if (x > best[1])
            best[1] = x, at[1] = i;
    }
    return order(n == 1 ? (double)score[0] : (double)once(score[at[0]] + score[at[1]]));
}

static void leave_groups(token *at, int64_t groups, int64_t kept) {
    const int64_t size = (at->e + groups - 1) / groups, count = (at->e + size - 1) / size;
    for (int64_t g = 0; g < count; g++)
        at->kept[g] = group_key(at->f32 + g * size, at->e - g * size < size ? at->e - g * size : size);
    for (int64_t i = 0; i < kept; i++) take(at->kept, count);
    for (int64_t i = 0; i < at->e; i++)
        if (at->kept[i / size] > -INFINITY) at->key[i] = -INFINITY;
}

static void score(token *at, const ARGS *args) {
    if (args->gate == TRINE_GATE_SOFTMAX)
        score_softmax(at);
    else
        score_sigmoid(at);
    for (int64_t i = 0; at->bias && i < at->e; i++) at->f32[i] = once(at->f32[i] + (float)at->bias[i]);
    for (int64_t i = 0; i < at->e; i++) at->key[i] = order(at->bias ? (double)at->f32[i] : at->x[i]);
    if (args->groups > 1 && args->groups_kept > 0) leave_groups(at, args->groups, args->groups_kept);
}

/* |t| of a power, where it counts. */
static double distance(const token *at, const ARGS *args, int64_t i) {
    return args->gate == TRINE_GATE_SOFTMAX && at->power[i] > 0 ? at->origin - at->x[i] : 0;
}

/* What rounded differences move a value by, of that size. */
static double moved_slack(double size, double by) { return size > 0 ? 1.01 * U * size * by : 0; }

static void weigh(token *at, const ARGS *args, int64_t k, double *weights, double *experts, double *magnitude,
                  double *slack) {
    double total = 0, moved = 0;
    for (int64_t j = 0; j < k; j++) {
        const int64_t i = take(at->key, at->e);
        experts[j] = (double)i;
        weights[j] = i < 0 ? 0 : at->power[i];
        slack[j] = i < 0 ? 0 : distance(at, args, i);
        total += weights[j];
        moved += weights[j] * slack[j];
    }
    const bool own = args->renormalise;
    const double by = own ? total : at->total, mean = own ? (total > 0 ? moved / total : 0) : at->moved;
    for (int64_t j = 0; j < k; j++) {
        weights[j] = experts[j] < 0 || by == 0 ? 0 : weights[j] / by * (double)args->scale;
        magnitude[j] = trine_finite_abs(weights[j]);
        slack[j] = moved_slack(magnitude[j], slack[j] + mean) + 0x1p-149 * fmax(1, fabs((double)args->scale));
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t t = trine_ref_dim(ref, "t"), e = trine_ref_dim(ref, "e"), k = trine_ref_dim(ref, "k");
    double *scores = trine_ref_value(ref, "scores"), *magnitude = trine_ref_magnitude(ref, "scores"),
           *slack = trine_ref_slack(ref, "scores");
    double *memory = malloc(sizeof *memory * 3 * (size_t)(e + 1));
    float *f32 = malloc(sizeof *f32 * (size_t)(e + 1));
    for (int64_t row = 0; row < t && e > 0; row++) {
        token at = { .e = e,
                     .x = trine_ref_value(ref, "logits") + row * e,
                     .bias = trine_ref_value(ref, "bias"),
                     .power = memory,
                     .key = memory + e,
                     .kept = memory + 2 * e,
                     .f32 = f32 };
        score(&at, args);
        for (int64_t i = 0; scores && i < e; i++) {
            const int64_t to = row * e + i;
            scores[to] = at.power[i] / at.total;
            magnitude[to] = trine_finite_abs(scores[to]);
            slack[to] = moved_slack(magnitude[to], distance(&at, args, i) + at.moved) + 0x1p-149;
        }
        weigh(&at, args, k, trine_ref_value(ref, "weights") + row * k, trine_ref_value(ref, "experts") + row * k,
              trine_ref_magnitude(ref, "weights") + row * k, trine_ref_slack(ref, "weights") + row * k);
    }
    free(memory);
    free(f32);
}

const trine_spec trine_spec_moe_route = {
    SPEC(moe_route),
    .summary = "The experts of each token and their weights: a gate, a choice of the k best, groups first",
    .formula =
        "s[i,j] = softmax or sigmoid of logits[i,j]; experts[i] are the places of the k largest s[i,j] + bias[j], "
        "from the largest on, of groups: of those whose two best add up to the most; weights[i,a] = scale "
        "s[i,experts[i,a]], renormalise: divided by the sum of the k s",
    .source = "Shazeer et al. 2017; DeepSeek-AI 2024 (DeepSeek-V3: sigmoid, bias and groups)",
    .tensors = { TENSOR(logits, IN, "T", "t e"), TENSOR(bias, IN | OPTIONAL, "f32", "e"),
                 TENSOR(weights, OUT, "f32", "t k", .terms = "max(e/32, k) + 24"),
                 TENSOR(experts, OUT | EXACT, "i32", "t k"),
                 TENSOR(scores, OUT | OPTIONAL, "f32", "t e", .terms = "e/32 + 24") },
    .params = { PARAM(gate, ENUM, .values = "softmax sigmoid", .doc = "of all experts, before the choice"),
                PARAM(renormalise, BOOL, .values = "0 1", .doc = "1: the chosen scores are divided by their sum"),
                PARAM(scale, F32, .values = "1 2.5 -0.5", .fallback = 1, .doc = "factor of the weights"),
                PARAM(groups, I32, .values = "0 1 2 3 8", .min = 0,
                      .doc = "of neighbours among the experts; 0 or 1: none"),
                PARAM(groups_kept, I32, .values = "0 1 2 4", .min = 0,
                      .doc = "groups that experts are chosen from; 0: all") },
    .types = { "T=f32|bf16|f16" },
    .require = { "k <= e" },
    .flops = "t*e*(20 + k)",
    .independent = "t",
    .sizes = { "t: 1 0 2 5 33 300", "e: 8 1 0 2 3 16 60 128 256 257 384", "k: 1 0 2 4 8 10" },
    .cases = { "mixtral: T=bf16 t=4096 e=8 k=2 renormalise=1", "qwen3: T=bf16 t=4096 e=128 k=8 renormalise=1",
               "deepseek-v3: T=f32 t=4096 e=256 k=8 gate=sigmoid renormalise=1 scale=2.5 groups=8 groups_kept=4 +bias",
               "deepseek-v3 16 tokens: T=f32 t=16 e=256 k=8 gate=sigmoid renormalise=1 scale=2.5 groups=8 "
               "groups_kept=4 +bias",
               "384 experts: T=f32 t=4096 e=384 k=8 gate=sigmoid renormalise=1 +bias" },
    .reference = reference,
};
