/* SPDX-License-Identifier: Apache-2.0 */
/* bleu: the table and the reference.
 *
 * Bound, in u = 2^-24, of the exponent X = mean of ln p_n + min(0, 1 - r/c). A count in f32 is off by 1 u, with an
 * amount added by 2, a quotient of two by 5; times ln(c), which is within 4, over an amount, and a power of two: 11,
 * and 1 for second order. So ln p is off by 12 u, and by 4 of itself for the logarithm's own error. Sums of k add k u
 * of the sum of |ln p|, its quotient by their number 1 of the mean: 5 |ln p| with the former. r/c is within 3, the
 * difference and the sum add 2 (1 + r/c) and |X| <= mean + r/c + 1: 6 r/c + 8 in all. The power is within 7, and 1 is
 * for second order, which is beyond e^x - 1 <= 1.1 x only where the score is below 2^-125 and may be 0. */
#include <trine/text.h>

#include "spec/spec.h"

#define ARGS trine_bleu_args

enum { MOST = 16 /* orders */ };

/* The counts of a sentence, or of all. */
typedef struct counts {
    double matches[MOST], totals[MOST], size, closest;
} counts;

/* p_n of an order; `zeros`: how many had no match so far, this one included. 0: none. */
static double precision_of(const ARGS *a, const counts *c, int64_t n, double matches, double total, int zeros) {
    const double amount = a->amount > 0                             ? (double)a->amount
                          : a->smoothing == TRINE_BLEU_SMOOTH_FLOOR ? (double)0.1f
                          : a->smoothing == TRINE_BLEU_SMOOTH_ADD   ? 1
                                                                    : 5;
    if (a->smoothing == TRINE_BLEU_SMOOTH_ADD && n > 1) return (matches + amount) / (total + amount);
    if (matches > 0) return matches / total;
    if (a->smoothing == TRINE_BLEU_SMOOTH_FLOOR) return amount / total;
    if (a->smoothing == TRINE_BLEU_SMOOTH_EXP) return ldexp(1, -zeros) / total;
    if (a->smoothing == TRINE_BLEU_SMOOTH_LENGTH && c->size > 1)
        return ldexp(1, -zeros) * log(c->size) / amount / total;
    return 0;
}

/* The score, and how far it may be off. */
static double score_of(const ARGS *a, const counts *c, int64_t k, double *magnitude_out) {
    double sum = 0, size = 0;
    int zeros = 0;
    int64_t n = 0;
    *magnitude_out = 0;
    if (k == 0 || c->matches[0] <= 0 || c->size <= 0) return 0;
    for (; n < k; n++) {
        const double total = a->missing == TRINE_BLEU_SHORT_ONE ? fmax(c->totals[n], 1) : c->totals[n];
        const bool added = a->smoothing == TRINE_BLEU_SMOOTH_ADD && n > 0;
        if (total == 0 && !added && a->missing == TRINE_BLEU_SHORT_SKIP) break;
        if (total == 0 && !added) return 0;
        zeros += c->matches[n] == 0;
        const double p = precision_of(a, c, n + 1, c->matches[n], total, zeros);
        if (p == 0) return 0;
        sum += log(p), size += fabs(log(p));
    }
    if (n == 0) return 0;
    const double short_by = c->closest / c->size, mean = size / (double)n;
    const double score = exp(sum / (double)n + fmin(0, 1 - short_by));
    *magnitude_out = 1.1 * score * (12 + (5 + (double)n) * mean + 6 * short_by + 16);
    return score;
}

static void add(counts *c, const trine_ref *ref, const ARGS *a, int64_t s, int64_t k, bool whole) {
    for (int64_t n = 0; n < k; n++) {
        c->matches[n] += fmax(0, trine_ref_value(ref, "matches")[s * k + n]);
        c->totals[n] += fmax(whole && a->missing == TRINE_BLEU_SHORT_ONE, trine_ref_value(ref, "totals")[s * k + n]);
    }
    c->size += fmax(0, trine_ref_value(ref, "sizes")[s]);
    c->closest += fmax(0, trine_ref_value(ref, "closest")[s]);
}

static void reference(trine_ref *ref) {
    const ARGS *args = ref->args;
    const int64_t k = trine_ref_dim(ref, "k");
    counts all = { 0 };
    for (int64_t s = 0; s < trine_ref_dim(ref, "s"); s++) {
        counts c = { 0 };
        add(&c, ref, args, s, k, false);
        add(&all, ref, args, s, k, true);
        if (!trine_ref_value(ref, "scores")) continue;
        trine_ref_value(ref, "scores")[s] = score_of(args, &c, k, trine_ref_magnitude(ref, "scores") + s);
        trine_ref_slack(ref, "scores")[s] = 0x1p-125;
    }
    if (!trine_ref_value(ref, "corpus")) return;
    trine_ref_value(ref, "corpus")[0] = score_of(args, &all, k, trine_ref_magnitude(ref, "corpus"));
    trine_ref_slack(ref, "corpus")[0] = 0x1p-125;
}

const trine_spec trine_spec_bleu = {
    SPEC(bleu),
    .summary = "BLEU of sentences and of a corpus, from counts of n-grams",
    .formula =
        "scores[s] = B exp(1/k sum_n ln(matches[s,n] / totals[s,n])), B = 1 if c >= r, else exp(1 - r/c), 0 if c "
        "is 0, c = sizes[s], r = closest[s]; corpus likewise of sums over s; smoothing and missing say what "
        "becomes of orders without matches and without n-grams",
    .source = "Papineni et al. 2002; Chen and Cherry 2014; Post 2018 (sacreBLEU)",
    .tensors = { TENSOR(matches, IN, "i32", "s k", .fill = "slots 9"),
                 TENSOR(totals, IN, "i32", "s k", .fill = "slots 14"),
                 TENSOR(sizes, IN, "i32", "s", .fill = "slots 30"), TENSOR(closest, IN, "i32", "s", .fill = "slots 30"),
                 TENSOR(scores, OUT | OPTIONAL, "T", "s", .terms = "1"),
                 TENSOR(corpus, OUT | OPTIONAL, "T", "1", .terms = "1") },
    .params = { PARAM(smoothing, ENUM, .values = "none floor add exp length", .doc = "TRINE_BLEU_SMOOTH_*"),
                PARAM(missing, ENUM, .values = "zero skip one", .doc = "TRINE_BLEU_SHORT_*"),
                PARAM(amount, F32, .values = "0 0.25 2", .unset = "0.1 of floor, 1 of add, 5 of length", .min = 0,
                      .doc = "what smoothing adds") },
    .types = { "T=f32" },
    .require = { "scores | corpus", "k <= 16" },
    .flops = "10*s*k",
    .sizes = { "s: 5 0 1 2 33 300 1000", "k: 4 0 1 2 3 5 16" },
    .cases = { "wmt: T=f32 s=3003 k=4 smoothing=exp missing=skip +scores +corpus",
               "a million: T=f32 s=1000000 k=4 smoothing=floor +scores +corpus", "corpus: T=f32 s=100000 k=4 +corpus" },
    .reference = reference,
};
