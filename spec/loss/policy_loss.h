/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of policy_loss and of its gradient share. */
#ifndef TRINE_SPEC_POLICY_LOSS_H
#define TRINE_SPEC_POLICY_LOSS_H

#include "spec/near.h"

/* A sequence's tokens, from `first` on, and what they share. */
typedef struct policy {
    const trine_ref *ref;
    const double *logp, *old_logp, *ref_logp, *advantages, *mask;
    int64_t first, steps, count; /* of those that count */
    double returns, kl_weight;
    near low, high; /* of the ratio */
    near shared;    /* the ratio of all its tokens */
    bool one_ratio;
} policy;

static inline int64_t policy_sequences(const trine_ref *ref) { return trine_ref_dim(ref, "s"); }
static inline bool policy_counts(const policy *p, int64_t t) { return !p->mask || p->mask[p->first + t] != 0; }

/* The ratio's logarithm; exactly 0 without the old policy. */
static inline near policy_exponent(const policy *p, int64_t t) {
    if (!p->old_logp) return near_of(0);
    return near_minus(near_of(p->logp[p->first + t]), near_of(p->old_logp[p->first + t]));
}
static inline near policy_ratio(const policy *p, int64_t t) {
    return p->one_ratio ? p->shared : near_exp(policy_exponent(p, t));
}

/* The bounds of the ratio are sums in f32. */
static inline near policy_bound(double x) { return (near){ x, fabs((double)(float)x - x) }; }

static inline policy policy_of(const trine_ref *ref, int64_t i, double clip_low, double clip_high, double kl_weight,
                               bool one_ratio) {
    const double *cu = trine_ref_value(ref, "cu_seqlens"), *returns = trine_ref_value(ref, "returns");
    const int64_t t = trine_ref_dim(ref, "t");
    policy p = { .ref = ref,
                 .logp = trine_ref_value(ref, "logp"),
                 .old_logp = trine_ref_value(ref, "old_logp"),
                 .ref_logp = trine_ref_value(ref, "ref_logp"),
                 .advantages = trine_ref_value(ref, "advantages"),
                 .mask = trine_ref_value(ref, "mask"),
                 .first = cu ? (int64_t)cu[i] : i * t,
                 .steps = cu ? (int64_t)(cu[i + 1] - cu[i]) : t,
                 .returns = returns ? returns[i] : 0,
                 .kl_weight = kl_weight,
                 .low = policy_bound(1 - clip_low),
                 .high = policy_bound(1 + clip_high),
                 .one_ratio = one_ratio };
    near_sum x = { 0 };
    for (int64_t k = 0; k < p.steps; k++)
        if (policy_counts(&p, k)) near_add(&x, policy_exponent(&p, k)), p.count++;
    if (p.count > 0 && p.old_logp)
        p.shared = near_exp(near_over(near_total(&x, p.count + 8), near_of((double)p.count)));
    else
        p.shared = near_of(1);
    return p;
}

static inline near policy_advantage(const policy *p, int64_t t) {
    const near token = near_of(p->advantages ? p->advantages[p->first + t] : 0);
    return near_plus(token, near_of(p->returns));
}

/* May x be above y; must it? */
static inline bool policy_may(near x, near y) { return x.of + x.off > y.of - y.off; }
static inline bool policy_must(near x, near y) { return x.of - x.off > y.of + y.off; }

/* Is the ratio clipped: 1, not: 0, or may it be either: -1? NaN are not. */
static inline int policy_clipped(const policy *p, near ratio, near a) {
    const near none = near_of(0);
    if (isinf(ratio.off) || isinf(a.off)) return -1;
    if ((policy_must(a, none) && policy_must(ratio, p->high)) || (policy_must(none, a) && policy_must(p->low, ratio)))
        return 1;
    return (policy_may(a, none) && policy_may(ratio, p->high)) || (policy_may(none, a) && policy_may(p->low, ratio))
               ? -1
               : 0;
}

/* -ratio A, or -bound A where that is clipped. */
static inline near policy_surrogate(const policy *p, near ratio, near a) {
    const near bound = a.of > 0 ? p->high : p->low, minus = { -a.of, a.off };
    const int clipped = policy_clipped(p, ratio, a);
    if (clipped == 1) return near_times(bound, minus);
    if (clipped == -1 && isfinite(ratio.of)) ratio.off += fabs(ratio.of - bound.of) + bound.off;
    return near_times(ratio, minus);
}

/* Its derivative by the ratio's logarithm. */
static inline near policy_slope(const policy *p, near ratio, near a) {
    const int clipped = policy_clipped(p, ratio, a);
    if (clipped == 1) return near_of(0);
    near y = near_times(ratio, (near){ -a.of, a.off });
    if (clipped == -1) y = isfinite(y.of) ? (near){ y.of, y.off + fabs(y.of) } : near_any();
    return y;
}

static inline near policy_divergence_exponent(const policy *p, int64_t t) {
    return near_minus(near_of(p->ref_logp[p->first + t]), near_of(p->logp[p->first + t]));
}

/* kl_weight (exp(d) - d - 1), and its derivative by logp, kl_weight (1 - exp(d)). */
static inline near policy_divergence(const policy *p, int64_t t) {
    if (!p->ref_logp || p->kl_weight == 0) return near_of(0);
    const near d = policy_divergence_exponent(p, t);
    return near_times(near_of(p->kl_weight), near_minus(near_minus(near_exp(d), d), near_of(1)));
}
static inline near policy_divergence_slope(const policy *p, int64_t t) {
    if (!p->ref_logp || p->kl_weight == 0) return near_of(0);
    return near_times(near_of(p->kl_weight), near_minus(near_of(1), near_exp(policy_divergence_exponent(p, t))));
}

#define POLICY_PARAMS \
    { PARAM(clip_low, F32, .values = "0.2 0 0.5", .min = 0, .doc = "the ratio is clipped below 1 less this"), \
      PARAM(clip_high, F32, .values = "0.25 0 0.5", .min = 0, .doc = "and above 1 and this"), \
      PARAM(kl_weight, F32, .values = "0.1 0 2", .min = 0, .doc = "of the divergence from the reference"), \
      PARAM(sequence_ratio, BOOL, .values = "0 1", .doc = "one ratio for a sequence, its tokens' geometric mean"), \
      PARAM(mean, BOOL, .values = "0 1", .doc = "the mean over a sequence's tokens instead of their sum") }
#define POLICY_REQUIRE \
    { "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0", "s == max(b, nseq)", "advantages | returns" }
#define POLICY_SIZES { "b: 1 0 2 3", "t: 7 0 1 2 33 257 600", "nseq: 1 2 5", "s: 1 0 2 3 5" }

#endif
