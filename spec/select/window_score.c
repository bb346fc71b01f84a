/* SPDX-License-Identifier: Apache-2.0 */
/* window_score: the table and the reference. */
#include <string.h>

#include <trine/select.h>

#include "spec/attention/attention_rows.h"

#define ARGS trine_window_score_args

/* Bound. What a query adds to a key is attention's weight p_j of that key, in the words of attention_rows.h, which
 * measures a row: its exponents are off by at most e_j, so that p_j, the quotient of exp by a sum of exps, is off by
 * 1. exp(max e) (p_j expm1(e_j) + p_j sum_t p_t expm1(e_t)), and in any case by no more than its hull, attention's with
 *    the values 1 at j and 0 elsewhere: most_j (1 - p_j) + p_j sum over t != j of most_t, nor by more than 1 (slack);
 * 2. (2 s + 32) u p_j for the sum of exps, its rescalings, exp itself and the division (the terms of the table). A
 *    flushed exp loses FLUSH relative to the largest, which is divided by l >= 1; s of them do in the denominator.
 * All that is added up is positive: w h/o terms in any order add as many u of their sum (likewise), the 2 radius + 1 of
 * a mean as many more and 3 for the product with a rounded reciprocal (slack). The largest of values that are each off
 * by something is off by no more than the largest of that. */

typedef struct sums {
    double *value, *magnitude, *slack; /* of each key */
    bool invalid, uncertain;           /* of a query that was added */
} sums;

static void add_row(const attention *a, const row *r, int64_t n, sums *to) {
    double moved = 0, most = 0;
    to->uncertain |= r->uncertain;
    to->invalid |= isnan(r->lse);
    if (r->uncertain || !isfinite(r->lse)) return;
    for (int64_t t = 0; t < r->count; t++) moved += r->spread[t], most += r->most[t];
    for (int64_t j = 0; j < n; j++) {
        const double p = r->p[j], hull = fmin(1, r->most[j] * (1 - p) + p * (most - r->most[j]));
        const double near = r->error < 1 ? exp(r->error) * (r->spread[j] + p * moved) : 1;
        to->value[j] += p;
        to->slack[j] += fmin(hull, near) + (double)(a->sk + 2) * FLUSH;
    }
}

/* From the sums of one output row, whose magnitudes are those of what is added. */
static void pool(const ARGS *args, int64_t n, const sums *from, double *scores, double *magnitude, double *slack) {
    const int64_t radius = args->radius;
    for (int64_t j = 0; j < n; j++) {
        const int64_t first = j > radius ? j - radius : 0, end = radius < n - 1 - j ? j + radius + 1 : n;
        double sum = 0, most = 0, lost = 0, worst = 0;
        for (int64_t t = first; t < end; t++) {
            sum += from->value[t], lost += from->slack[t];
            most = fmax(most, from->value[t]), worst = fmax(worst, from->slack[t]);
        }
        const double taps = 2 * (double)radius + 1;
        scores[j] = args->pooling == TRINE_POOL_MAX ? most : sum / taps;
        slack[j] = args->pooling == TRINE_POOL_MAX ? worst : lost / taps + FLUSH;
        if (args->pooling == TRINE_POOL_AVG && radius > 0) slack[j] += (taps + 3) * U * scores[j];
        magnitude[j] = scores[j];
        if (from->invalid) scores[j] = NAN, magnitude[j] = slack[j] = 0;
        if (from->uncertain) scores[j] = 0, magnitude[j] = INFINITY;
    }
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t b = trine_ref_dim(ref, "b"), w = trine_ref_dim(ref, "w"), s = trine_ref_dim(ref, "s"),
                  h = trine_ref_dim(ref, "h"), d = trine_ref_dim(ref, "d"), o = trine_ref_dim(ref, "o"),
                  n = trine_ref_dim(ref, "n");
    attention a = { .b = b, .sq = w, .sk = s, .h = h, .hk = trine_ref_dim(ref, "hk"), .d = d, .causal = true };
    a.q = trine_ref_value(ref, "q"), a.k = trine_ref_value(ref, "k");
    a.scale = args->scale != 0 ? args->scale : 1 / sqrt((double)d);
    double *scores = trine_ref_value(ref, "scores"), *magnitude = trine_ref_magnitude(ref, "scores"),
           *slack = trine_ref_slack(ref, "scores");
    score *one = malloc(sizeof *one * (size_t)(s + 1));
    row r = row_of(s);
    const size_t bytes = (size_t)(n + 1) * sizeof(double);
    sums to = { .value = malloc(bytes), .slack = malloc(bytes) };

    for (int64_t at = 0; at < b * o; at++) {
        memset(to.value, 0, bytes), memset(to.slack, 0, bytes);
        to.invalid = to.uncertain = false;
        for (int64_t head = at % o * (h / o); head < (at % o + 1) * (h / o); head++)
            for (int64_t i = 0; i < w; i++) {
                r.count = score_row(&a, at / o, i, head, one, &r.sees, &r.lse);
                measure(one, &r);
                add_row(&a, &r, n, &to);
            }
        pool(args, n, &to, scores + at * n, magnitude + at * n, slack + at * n);
    }
    free(one), row_free(&r);
    free(to.value), free(to.slack);
}

const trine_spec trine_spec_window_score = {
    SPEC(window_score),
    .summary = "How much the last queries of a prompt attend to each of its keys, pooled along them",
    .formula =
        "scores[b,u,j] = mean (or largest) of a[b,u,j-radius .. j+radius], 0 beyond the n keys (or none there); "
        "a[b,u,j] = sum over i < w and heads h in [u H/o, (u+1) H/o) of exp(z_j - lse), z_j = scale q[b,i,h].k[b,j,g], "
        "lse = log(sum over j <= s - w + i of exp(z_j)), g = h/(H/Hk); 0 in place of a term where lse = -Inf",
    .source = "Li et al. 2024 (SnapKV), section 4.2",
    .tensors = { TENSOR(q, IN, "T", "b w h d"), TENSOR(k, IN, "T", "b s hk d"),
                 TENSOR(scores, OUT, "f32", "b o n", .terms = "2*s + w*h/o + 40") },
    .params = { PARAM(scale, F32, .values = "0 0.3 -1", .unset = "1/sqrt(d)", .doc = "of the products"),
                PARAM(pooling, ENUM, .values = "avg max", .doc = "what a score is made of its neighbours' and its own"),
                PARAM(radius, I32, .values = "0 1 2 9", .min = 0, .max = 4096,
                      .doc = "neighbours on each side that are pooled; 0: none") },
    .types = { "T=f32|bf16|f16" },
    .require = { "hk > 0", "h % hk == 0", "d > 0", "o > 0", "h % o == 0", "o % hk == 0", "n + w <= s" },
    .flops = "4*b*w*h*s*d",
    .independent = "b",
    .sizes = { "b: 1 0 2 3", "w: 8 0 1 3 16 33", "s: 130 0 1 7 40 300 600", "h: 4 1 2 8 12", "hk: 2 1 4",
               "d: 16 1 3 40 64 80 128 200", "o: 2 1 4 8", "n: 97 0 1 5 37 260 500" },
    .cases = { "llama3-8b 8192: T=bf16 b=1 w=32 s=8192 h=32 hk=8 d=128 o=8 n=8160 radius=2",
               "llama3-8b 32768: T=bf16 b=1 w=32 s=32768 h=32 hk=8 d=128 o=8 n=32736 radius=2 pooling=max",
               "llama2-7b: T=f16 b=4 w=64 s=4096 h=32 hk=32 d=128 o=32 n=4032 radius=2",
               "f32: T=f32 b=1 w=16 s=4096 h=16 hk=16 d=64 o=16 n=4080 radius=2" },
    .reference = reference,
};
