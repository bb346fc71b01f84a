/* SPDX-License-Identifier: Apache-2.0 */
/* moe_route_backward: the table and the reference. */
#include <stdlib.h>

#include <trine/moe.h>

#include "spec/spec.h"

#define ARGS trine_moe_route_backward_args
#define U 0x1p-24

/* Bound, u = 2^-24, with powers, scores and weights as spec/moe/moe_route.c has them: a score is off by (e/32 + 24)u, a
 * weight that is made to sum to 1 by (k + 20)u, and both by 1.01u of themselves times the distance to the largest logit
 * and the mean of that, for softmax; 1 - s of a sigmoid, made of the power itself, by 8u.
 *
 * Over all experts, with c_j = dscores_j + sum of scale dweights of the slots that name j, C_j the same of absolute
 * values, off by (k + 2)u, and D = sum_m s_m c_m: D is off by (e/32 + 24)u for the scores, (k + 2)u for c and (e/32 +
 * 7)u for its products and their sum, of P = sum_m s_m C_m; s_j (c_j - D) by the score's (e/32 + 24)u and two roundings
 * more. That is (3 e/32 + k + 59)u of s_j (C_j + P). Of sigmoids it is (k + 2 + 10 + 8 + 2)u of s_j (1 - s_j) C_j.
 *
 * Over the chosen, with weights v_a, g_a = scale dweights_a and G = sum_b v_b g_b: G is off by (2 k + 22)u of Q = sum_b
 * v_b |g_b|, v_a (1 - s) (g_a - G) by (k + 20) + 8 + (2 k + 22) + 4 in u of v_a (1 - s) (|g_a| + Q), and the sum of
 * those that name one expert, and of this with the other part, by (k + 1)u more: (4 k + 55)u in all.
 *
 * What the distances move comes on top: of s_j that times C_j + P, and of each term of P its own. Products that
 * underflow lose 2^-150 each, times what they are multiplied by. */
typedef struct token {
    const ARGS *args;
    int64_t e, k;
    const double *x, *experts, *dweights, *dscores;
    double *power, *rest; /* of each expert; rest: of a sigmoid, 1 - s */
    double *c, *size;     /* c_j and C_j */
    double origin, total, moved;
} token;

static double order(double x) { return isnan(x) ? INFINITY : isinf(x) ? copysign(0x1p200, x) : x; }

static void score(token *at) {
    const bool softmax = at->args->gate == TRINE_GATE_SOFTMAX;
    at->origin = at->x[0], at->total = at->moved = 0;
    for (int64_t i = 1; i < at->e; i++)
        if (order(at->x[i]) > order(at->origin)) at->origin = at->x[i];
    at->origin += at->origin - at->origin;
    for (int64_t i = 0; i < at->e; i++) {
        const double t = softmax ? at->x[i] - at->origin : -fabs(at->x[i]), p = (float)t < -80 ? 0 : exp(t);
        at->power[i] = softmax ? p : (at->x[i] < 0 ? p : 1) / (1 + p);
        at->rest[i] = softmax ? 1 : (at->x[i] < 0 ? 1 : p) / (1 + p);
        at->total += at->power[i];
        if (softmax && p > 0) at->moved -= p * t;
    }
    at->moved /= at->total;
    if (!softmax) at->total = 1, at->moved = 0;
}

static double distance(const token *at, int64_t j) {
    return at->args->gate == TRINE_GATE_SOFTMAX && at->power[j] > 0 ? at->origin - at->x[j] : 0;
}

/* The expert that slot a names; -1: none. */
static int64_t named(const token *at, int64_t a) {
    return at->experts[a] >= 0 && at->experts[a] < (double)at->e ? (int64_t)at->experts[a] : -1;
}

/* The part that has all experts' scores. */
static void all_scores(const token *at, double *dx, double *magnitude, double *slack) {
    const bool softmax = at->args->gate == TRINE_GATE_SOFTMAX;
    double mean = 0, sum = 0, moved = 0, reach = 0;
    for (int64_t j = 0; j < at->e; j++) {
        at->c[j] = at->dscores ? at->dscores[j] : 0;
        at->size[j] = trine_finite_abs(at->c[j]);
    }
    for (int64_t a = 0; !at->args->renormalise && a < at->k; a++) {
        if (named(at, a) < 0) continue;
        const double g = (double)at->args->scale * at->dweights[a];
        at->c[named(at, a)] += g, at->size[named(at, a)] += trine_finite_abs(g);
    }
    for (int64_t j = 0; j < at->e; j++) {
        const double s = at->power[j] / at->total;
        mean += s * at->c[j], sum += trine_finite_abs(s) * at->size[j], reach += at->size[j];
        moved += trine_finite_abs(s) * at->size[j] * distance(at, j);
    }
    if (!softmax) mean = sum = moved = 0;
    for (int64_t j = 0; j < at->e; j++) {
        const double s = at->power[j] / at->total * at->rest[j], size = trine_finite_abs(s);
        dx[j] = s * (at->c[j] - mean);
        magnitude[j] = reach < trine_largest(TRINE_F32) ? size * (at->size[j] + sum) : INFINITY;
        slack[j] = 1.01 * U * size * ((at->size[j] + sum) * (distance(at, j) + at->moved) + moved + sum * at->moved) +
                   0x1p-149 * ((double)at->e + at->size[j] + sum + 2);
    }
}

/* The part that has weights which are made to sum to 1. */
static void chosen_weights(const token *at, double *dx, double *magnitude, double *slack) {
    double total = 0, moved = 0, mean = 0, sum = 0, far = 0, reach = 0;
    for (int64_t a = 0; a < at->k; a++) {
        const int64_t j = named(at, a);
        if (j >= 0) total += at->power[j], moved += at->power[j] * distance(at, j);
    }
    if (total == 0) return;
    moved /= total;
    for (int64_t a = 0; a < at->k; a++) {
        const int64_t j = named(at, a);
        if (j < 0) continue;
        const double v = at->power[j] / total, g = (double)at->args->scale * at->dweights[a];
        mean += v * g, sum += trine_finite_abs(v * g), far += trine_finite_abs(v * g) * distance(at, j);
        reach += trine_finite_abs(g);
    }
    for (int64_t a = 0; a < at->k; a++) {
        const int64_t j = named(at, a);
        if (j < 0) continue;
        const double g = (double)at->args->scale * at->dweights[a], v = at->power[j] / total * at->rest[j],
                     size = trine_finite_abs(v), both = trine_finite_abs(g) + sum;
        dx[j] += v * (g - mean);
        magnitude[j] += reach < trine_largest(TRINE_F32) ? size * both : INFINITY;
        slack[j] += 1.01 * U * size * (both * (distance(at, j) + moved) + far + sum * moved) +
                    0x1p-149 * ((double)at->k + both + 2);
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t t = trine_ref_dim(ref, "t"), e = trine_ref_dim(ref, "e"), k = trine_ref_dim(ref, "k");
    double *memory = malloc(sizeof *memory * 4 * (size_t)(e + 1));
    for (int64_t row = 0; row < t && e > 0; row++) {
        const double *dscores = trine_ref_value(ref, "dscores");
        double *dx = trine_ref_value(ref, "dlogits") + row * e,
               *magnitude = trine_ref_magnitude(ref, "dlogits") + row * e,
               *slack = trine_ref_slack(ref, "dlogits") + row * e;
        token at = { .args = args,
                     .e = e,
                     .k = k,
                     .x = trine_ref_value(ref, "logits") + row * e,
                     .experts = trine_ref_value(ref, "experts") + row * k,
                     .dweights = trine_ref_value(ref, "dweights") + row * k,
                     .dscores = dscores ? dscores + row * e : NULL,
                     .power = memory,
                     .rest = memory + e,
                     .c = memory + 2 * e,
                     .size = memory + 3 * e };
        score(&at);
        for (int64_t j = 0; j < e; j++) dx[j] = 0;
        if (dscores || !args->renormalise) all_scores(&at, dx, magnitude, slack);
        if (args->renormalise) chosen_weights(&at, dx, magnitude, slack);
        for (int64_t j = 0; j < e; j++)
            if (!isfinite(dx[j]) && magnitude[j] < INFINITY) magnitude[j] = slack[j] = 0;
    }
    free(memory);
}

const trine_spec trine_spec_moe_route_backward = {
    SPEC(moe_route_backward),
    .summary = "Gradient of moe_route: of the weights and scores with respect to the logits",
    .formula =
        "with s as of moe_route, c[i,j] = dscores[i,j] + scale sum over a with experts[i,a] = j of dweights[i,a]: "
        "softmax dlogits[i,j] = s[i,j] (c[i,j] - sum_m s[i,m] c[i,m]), sigmoid s[i,j] (1 - s[i,j]) c[i,j]; "
        "renormalise: dweights are not in c; with v[a] = s[i,experts[i,a]] divided by their sum, the terms v[a] r[a] "
        "(scale dweights[i,a] - sum_b v[b] scale dweights[i,b]) are added to dlogits[i,experts[i,a]], r = 1 or 1 - s",
    .source = "the derivative of moe_route's formula; the experts are constant",
    .tensors = { TENSOR(dweights, IN, "f32", "t k"), TENSOR(logits, IN, "T", "t e"),
                 TENSOR(experts, IN, "i32", "t k", .fill = "places e"), TENSOR(dscores, IN | OPTIONAL, "f32", "t e"),
                 TENSOR(dlogits, OUT, "T", "t e", .terms = "3*e/32 + 4*k + 64") },
    .params = { PARAM(gate, ENUM, .values = "softmax sigmoid", .doc = "the forward's"),
                PARAM(renormalise, BOOL, .values = "0 1", .doc = "the forward's"),
                PARAM(scale, F32, .values = "1 2.5 -0.5", .fallback = 1, .doc = "the forward's") },
    .types = { "T=f32|bf16|f16" },
    .require = { "k <= e" },
    .flops = "t*e*(30 + k)",
    .independent = "t",
    .sizes = { "t: 1 0 2 5 33 300", "e: 8 1 0 2 3 16 60 128 257 384 1500", "k: 1 0 2 4 8 10" },
    .cases = { "mixtral: T=bf16 t=4096 e=8 k=2 renormalise=1", "qwen3: T=bf16 t=4096 e=128 k=8 renormalise=1 +dscores",
               "deepseek-v3: T=f32 t=4096 e=256 k=8 gate=sigmoid renormalise=1 scale=2.5" },
    .reference = reference,
};
