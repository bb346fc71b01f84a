/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of kl_div, of jsd and of their gradients share: classes with the errors that kernels may make. */
#ifndef TRINE_SPEC_DIVERGENCE_H
#define TRINE_SPEC_DIVERGENCE_H

#include "cross_entropy.h"
#include "spec/near.h"

#define NOTHING 0x1p-99 /* of mixtures below, kernels may take the terms for 0, or their logarithms for any */

/* A class: its logarithm and its probability. */
typedef struct near_class {
    near log, p;
} near_class;

/* A row, and what its elements are. */
typedef struct near_row {
    const double *x;
    bool logits, probabilities;
    logit_row sums; /* of logits */
} near_row;

static inline near_row near_row_of(const double *x, int64_t v, bool logits, bool probabilities, double scale) {
    near_row row = { .x = x, .logits = logits && !probabilities, .probabilities = probabilities };
    if (row.logits) row.sums = logit_row_of(x, v, scale);
    return row;
}

/* Bound, u = 2^-24. A probability has a logarithm within 4u of itself. Of a logit, l = d - log_sum, d = scale (x -
 * top): the difference and the product round once each, 2u |d|, the halves by which it does not overflow lose 2^-149 of
 * x at most, log_sum is off by logit_row_of()'s bound, and the last difference by u |l|. A logarithm that is given is
 * exact. p = exp(l) to 6u, and 8u with what follows; below e^-105 it is 0, below 2^-126 it may be. */
static inline near_class near_class_of(const near_row *row, int64_t k) {
    near_class c = { 0 };
    if (row->probabilities) {
        c.p.of = row->x[k];
        c.log.of = log(c.p.of);
        c.log.off = isfinite(c.log.of) ? 4 * U * fabs(c.log.of) : 0;
        return c;
    }
    c.log.of = row->x[k];
    if (row->logits) {
        const double d = below_top(&row->sums, k);
        c.log.of = isfinite(row->sums.log_sum) ? d - row->sums.log_sum : NAN;
        if (isfinite(c.log.of))
            c.log.off = 2.1 * U * fabs(d) + 1.1 * U * fabs(c.log.of) + 1.1 * log_sum_error(&row->sums) +
                        0x1p-147 * row->sums.scale;
    }
    c.p.of = exp(c.log.of);
    if (c.log.of + c.log.off < -105)
        c.p.of = 0;
    else if (isfinite(c.log.of))
        c.p.off = c.p.of > 0x1p120 ? INFINITY : exp_shift(c.log.of, c.log.off) + 8.1 * U * c.p.of + FLUSH;
    return c;
}

/* A probability that is 0 leaves the other factor out: where a kernel's may be 0, it may leave out Inf or NaN. */
static inline near near_part(near p, near l) {
    if (p.of == 0 && p.off == 0) return near_of(0);
    return !isfinite(l.of) && fabs(p.of) < p.off + FLUSH ? near_any() : near_times(p, l);
}

/* Terms with an error that is not infinite are NaN for certain where they are, and so is a sum with one. */
static inline bool near_nan(near x) { return isnan(x.of) && !isinf(x.off); }
static inline near near_sum_of(const near_sum *s, int64_t additions) {
    return isnan(s->of) ? near_of(NAN) : near_total(s, additions);
}

/* p (log p - log q). */
static inline near kl_term(const near_class *p, const near_class *q) {
    return near_part(p->p, near_minus(p->log, q->log));
}

/* m = beta p + (1 - beta) q: two products and a sum, 3u of m. */
static inline near near_mixture(const near_class *p, const near_class *q, double beta) {
    near m = { beta * p->p.of + (1 - beta) * q->p.of, beta * p->p.off + (1 - beta) * q->p.off };
    if (isfinite(m.of)) m.off += 3.1 * U * m.of + 2 * FLUSH;
    return m;
}

/* log m, to 4u. Where m is so small that it may be flushed, it says nothing, but the terms are as small; and it says
 * nothing where m may overflow. */
static inline near near_mixture_log(near m) {
    if (isinf(m.off) && !isnan(m.of)) return near_any();
    if (!isfinite(m.of)) return near_of(m.of);
    near y = { log(m.of), 0 };
    y.off = m.of > NOTHING && m.off < m.of / 2 ? -log1p(-m.off / m.of) + 4.1 * U * (fabs(y.of) + 1e-6) : INFINITY;
    return y;
}

/* Does log m say nothing, but a kernel's have a size below 128, or none because it takes the terms for 0? */
static inline bool near_mixture_vague(near m) { return m.of + m.off < 0x1p127 && isinf(near_mixture_log(m).off); }

/* factor p (log p - log m), which is 0 where p is. */
static inline near jsd_part(const near_class *p, near m, double factor) {
    if (near_mixture_vague(m) && isfinite(p->log.of)) {
        const double most = factor * (p->p.of + p->p.off);
        if (most < 0x1p-90) return (near){ 0, 2 * most * (fabs(p->log.of) + p->log.off + 128) };
    }
    const near y = near_part(p->p, near_minus(p->log, near_mixture_log(m)));
    return near_times(near_of(factor), y);
}

static inline double row_weight(const trine_ref *ref, int64_t i) {
    const double *weight = trine_ref_value(ref, "weight");
    return weight ? weight[i] : 1;
}

/* A row's loss: its sum, v + 31 roundings of the terms' absolute values whatever the order, times the weight, which
 * rounds once more and may be flushed. */
static inline void put_loss(trine_ref *ref, int64_t i, const near_sum *s) {
    const double w = row_weight(ref, i), size = s->size + s->off;
    const bool vague =
        size > trine_largest(TRINE_F32) || (isinf(w) && !isnan(s->of)) || (isinf(s->of) && fabs(w) < FLUSH);
    if (w == 0)
        near_put(ref, "loss", i, 0, 0, 0);
    else if (isnan(w) || isnan(s->of))
        near_put(ref, "loss", i, NAN, 0, 0);
    else
        near_put(ref, "loss", i, w * s->of, vague ? INFINITY : fabs(w) * size, fabs(w) * s->off + FLUSH);
}

/* dloss weight factor g, |g| at most `size` by its terms: the first three are multiplied in float64 and rounded once,
 * and what follows rounds three times at most; each may be flushed. */
static inline void put_gradient(trine_ref *ref, int64_t i, int64_t at, double factor, near g, double size) {
    const double w = row_weight(ref, i), gain = trine_ref_value(ref, "dloss")[i] * w * factor, largest = 0x1p127;
    const bool vague = isinf(g.off) || isinf(gain) || fabs(gain) > largest || size + g.off > largest ||
                       (isinf(g.of) && fabs(gain) < FLUSH);
    if (w == 0)
        near_put(ref, "dinput", at, 0, 0, 0);
    else if (isnan(w) || isnan(trine_ref_value(ref, "dloss")[i]) || (!vague && isnan(g.of)))
        near_put(ref, "dinput", at, NAN, 0, 0);
    else
        near_put(ref, "dinput", at, gain * g.of, vague ? INFINITY : fabs(gain) * (size + g.off),
                 1.01 * fabs(gain) * g.off + FLUSH * (size + g.off + 1));
}

#define DIVERGENCE_SIZES { "r: 0 1 3 17", "v: 1 0 2 7 31 64 257 1000 4099 32000" }

#endif
