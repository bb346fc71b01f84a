/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of cross_entropy and cross_entropy_backward share. */
#ifndef TRINE_SPEC_CROSS_ENTROPY_H
#define TRINE_SPEC_CROSS_ENTROPY_H

#include <math.h>

#include "spec/spec.h"

/* How far exp(d) may move when d does by at most `delta`. */
static inline double exp_shift(double d, double delta) {
    if (delta == 0 || (exp(d) == 0 && !(d + delta > -800))) return 0; /* also d = -inf, delta = inf */
    return delta < 1 ? exp(d) * expm1(delta) : exp(d + delta) - exp(d);
}

/* From where on f32 holds lse so coarsely that cross_entropy_backward takes the row's own sums for it: half a unit in
 * its last place is 2^-14 of p there. */
#define COARSE_LSE 1024

/* A row of z = scale x: `top` is where z is largest, and z_k - z_top = scale (x_k - top), exact where x_k = top and
 * never the difference of two large numbers. Where the largest z is infinite, or there is none, top is 0. */
typedef struct logit_row {
    const double *x;
    int64_t v;
    double scale, top;
    double log_sum; /* log sum_k exp(z_k - z_top): inf if an element of z is, -inf if all are, NaN if one is */
    double slack;   /* a kernel's log_sum may be off by (v + 32)u and this */
    /* By how much what a kernel has of x may be off; NULL: not at all. And by how much z at most */
    const double *off;
    double most_off;
} logit_row;

/* By how much a kernel's z_k may be off. */
static inline double logit_off(const logit_row *row, int64_t k) {
    return row->off ? fabs(row->scale) * row->off[k] : 0;
}

static inline double below_top(const logit_row *row, int64_t k) { return row->scale * (row->x[k] - row->top); }
static inline double row_lse(const logit_row *row) { return row->scale * row->top + row->log_sum; }
static inline double log_sum_error(const logit_row *row) {
    return row->slack > 0 ? (double)(row->v + 32) * trine_unit_roundoff(TRINE_F32) + row->slack : 0;
}

/* Of an exponent that is `reach` away from a kernel's origin, or so much more. With u = 2^-24: the difference of f x
 * and the origin, the constant scale log2(e), and their product round once each, 3u; the constant may be subnormal, and
 * so may f x. */
static inline double exponent_error(double scale, double reach, double more) {
    const double u = trine_unit_roundoff(TRINE_F32), constant = scale == 0 ? 0 : fmax(u, 0x1p-150 / fabs(scale));
    return (2 * u + constant) * (fabs(reach) + more) + 0x1p-148 * fabs(scale);
}

/* Bound of log_sum, with u = 2^-24, d_k = z_k - z_top <= 0, S = sum_k exp(d_k) >= 1, p_k = exp(d_k)/S.
 *
 * A kernel takes d_k from an origin, which is a maximum so far or an estimate at most 16 below the largest, as the
 * difference of two logits times the scale; or, of products that are at most 126 in size in base 2, as their
 * difference: 126 u log(2), which 32 more in reach covers. What follows when the origin moves is the same difference
 * again, so that all together is off by e_k = exponent_error(|d_k|) at most, which moves log S by sum_k p_k (exp(e_k) -
 * 1) (Jensen; log(1+a) <= a). It grows with the distance from the largest logit alone: not with their size. exp to 4
 * ulp is 8u of S; S, a sum of positive terms in any order, is off by (v-1)u of itself (Jeannerod and Rump 2013), and
 * each time an accumulator is rescaled to a new maximum costs it 10u more: a kernel's additions plus ten times its
 * rescalings along one accumulator stay below v + 8. So log S is off by (v + 32)u, second order included up to v =
 * 2^18; flushed exponentials are v 2^-126. log to 4 ulp is 8u log S, and 2u more what follows it.
 *
 * Where a kernel's z_k is itself off by o_k, lse is off by sum_k p_k (exp(o_k) - 1) more, in the same way; e_k is then
 * that of a distance which is larger by up to twice the largest o. */
static inline logit_row logit_row_near(const double *x, const double *off, int64_t v, double scale) {
    const double u = trine_unit_roundoff(TRINE_F32);
    logit_row row = { .x = x, .v = v, .scale = scale, .off = off };
    double most = -INFINITY, sum = 0, moved = 0;
    for (int64_t k = 0; k < v; k++) {
        row.most_off = fmax(row.most_off, logit_off(&row, k));
        const double along = copysign(1, scale) * x[k]; /* not scale * x[k], which may round to another's */
        if (!(along > most)) continue;
        most = along;
        row.top = x[k];
    }
    if (!isfinite(most)) row.top = 0;
    for (int64_t k = 0; k < v; k++) {
        const double d = below_top(&row, k);
        sum += exp(d);
        if (isfinite(d)) moved += exp_shift(d, exponent_error(scale, d, 48 + 2 * row.most_off) + logit_off(&row, k));
    }
    row.log_sum = log(sum);
    if (isfinite(row.log_sum))
        row.slack = moved / sum + 10 * u * (row.log_sum + (off ? moved / sum : 0)) +
                    (double)v * trine_smallest_normal(TRINE_F32);
    return row;
}

static inline logit_row logit_row_of(const double *x, int64_t v, double scale) {
    return logit_row_near(x, NULL, v, scale);
}

/* The weights of the classes. */
typedef struct class_weights {
    const double *of; /* NULL: all are 1 */
    double sum, size; /* of all, and of their absolute values */
} class_weights;

static inline class_weights class_weights_of(const double *of, int64_t v) {
    class_weights c = { .of = of, .sum = of ? 0 : (double)v, .size = of ? 0 : (double)v };
    for (int64_t k = 0; of && k < v; k++) c.sum += of[k], c.size += fabs(of[k]);
    return c;
}

static inline double class_weight(const class_weights *c, int64_t k) { return c->of ? c->of[k] : 1; }

/* What a row's lse counts by, (1-e) w_y + (e/v) sum_k w_k, which is 1 without weights; and the same of absolute
 * values. */
static inline double lse_weight(const class_weights *c, int64_t label, double e, int64_t v) {
    return c->of ? (1 - e) * c->of[label] + (e > 0 ? e / (double)v * c->sum : 0) : 1;
}
static inline double lse_weight_size(const class_weights *c, int64_t label, double e, int64_t v) {
    return c->of ? (1 - e) * fabs(c->of[label]) + (e > 0 ? e / (double)v * c->size : 0) : 1;
}

/* m log_sum - (1-e) w_y d_y - (e/v) sum_k w_k d_k + z_loss lse^2, with m = lse_weight(), whose absolute value is M.
 *
 * Without weights none of the terms is negative, and none is larger than the loss. A kernel has log_sum in f32, the
 * second term from the two logits' difference in float64, and the sum of the d_k as that of v differences from its
 * origin, 3u each and (v-1)u for the sum, which adds at most 16 to each. The error of log_sum enters M + 2 z_loss
 * (|lse| + 1) times; what is left is in float64, and rounded once. Where z is off, so are d_y and the mean, a hundredth
 * more of that being enough for the errors' products.
 *
 * With weights the sum of the w_k is itself one of f32: (v-1)u of A = (e/v) sum_k |w_k|, by which log_sum and what is
 * between two origins are multiplied. So the mean of the |w_k d_k| counts twice, and A as often as log_sum has it and
 * 16 more. Terms of either sign may cancel: float64's roundings of each are 2^-50 of it at most; and a product of w_k
 * may be flushed. */
static inline double row_loss(const logit_row *row, int64_t label, double e, double z_loss, const class_weights *c,
                              double *magnitude, double *slack) {
    const double lse = row_lse(row), share = e / (double)row->v, all = c->of ? share * c->size : e;
    const double w = class_weight(c, label), d_label = below_top(row, label);
    const double m = lse_weight(c, label, e, row->v), m_size = lse_weight_size(c, label, e, row->v);
    if (!isfinite(m_size)) {
        *magnitude = INFINITY;
        return isnan(m_size) ? NAN : INFINITY;
    }
    double total = 0, total_size = 0, off = 0;
    for (int64_t k = 0; e > 0 && k < row->v; k++) {
        const double term = class_weight(c, k) * below_top(row, k);
        total += term, total_size += fabs(term), off += fabs(class_weight(c, k)) * logit_off(row, k);
    }
    const double mean = e > 0 ? share * total : 0, square = z_loss > 0 ? z_loss * lse * lse : 0;
    const double loss = m * row->log_sum - (1 - e) * w * d_label - mean + square;
    if (!isfinite(loss)) return loss;
    const double gain = m_size + (z_loss > 0 ? 2 * z_loss * (fabs(lse) + 1 + (row->off ? row->slack : 0)) : 0);
    *magnitude = gain + (e > 0 ? (c->of ? 2 : 1) * (share * total_size + 16 * all) : 0);
    *slack = gain * row->slack;
    if (c->of) {
        *magnitude += e > 0 ? all * (row->log_sum + 16) : 0;
        *slack += 0x1p-50 * (m_size * row->log_sum + fabs((1 - e) * w * d_label) + share * total_size + square) +
                  2 * trine_smallest_normal(TRINE_F32);
    }
    if (row->off) *slack = 1.01 * (*slack + (1 - e) * fabs(w) * logit_off(row, label) + share * off);
    return loss;
}

/* What the gradient of a row follows from besides its logits. */
typedef struct gradient_row {
    double smoothing, z_loss, dloss;
    double lse;    /* of the factor m + 2 z_loss lse; it is as far off as log_sum */
    int64_t label; /* -1: the row is ignored */
    const class_weights *weights;
} gradient_row;

/* Bound, with u = 2^-24, d = z - z_top, l = log_sum, L = its error, p = exp(d - l), w = z_loss, m = lse_weight(), which
 * is 1 without weights, F = |m| + 2w(|lse| + L).
 * The exponent is off by exponent_error(d - l), l by L: together D. So p is off by p(e^D - 1), which is slack, and by
 * exp to 4 ulp, 8u p. Then F (3u F, and 2wL of p, which is slack), the quotient of F and S (1u), the product with p
 * (1u), the two differences (2u of the parts' absolute values; 1-e and e/v have been rounded once), g*scale and the
 * product with it (3u): 18u on p F, 6u on the others, for which 20u on p F and on a third of the others is safe, p
 * being taken as large as L may make it. An exponential below 2^-126 may be flushed. Where z is off itself, D is as
 * much more.
 *
 * With weights, m is of absolute values, in which a kernel's sum of the w_k in float64 leaves nothing to add; (1-e) w_y
 * and (e/v) w_k are products, and their sum rounds as well: 9u on the others, of which 20u are less than half. What
 * follows from a small weight may be flushed.
 * dloss scale and m + 2 w lse are f32 and may overflow. */
static inline void row_gradient(const gradient_row *g, const logit_row *row, double *dlogits, double *magnitude,
                                double *slack) {
    const double u = trine_unit_roundoff(TRINE_F32), largest = trine_largest(TRINE_F32),
                 tiny = trine_smallest_normal(TRINE_F32);
    const double error = log_sum_error(row), w = g->z_loss, e = g->smoothing, gain = g->dloss * row->scale;
    const class_weights *c = g->weights;
    const double part = c->of ? 0.5 : 1.0 / 3, share = e / (double)row->v;
    const double m = g->label < 0 ? 0 : lse_weight(c, g->label, e, row->v),
                 m_size = g->label < 0 ? 0 : lse_weight_size(c, g->label, e, row->v);
    const double factor = w > 0 ? m + 2 * w * g->lse : m,
                 factor_abs = w > 0 ? m_size + 2 * w * (fabs(g->lse) + error) : m_size;
    const bool too_large = trine_finite_abs(gain) > largest || trine_finite_abs(factor_abs) > largest;
    for (int64_t k = 0; k < row->v; k++) {
        if (g->label < 0) {
            dlogits[k] = 0;
            continue;
        }
        if (!isfinite(m_size)) {
            dlogits[k] = isnan(m_size) ? NAN : INFINITY, magnitude[k] = INFINITY;
            continue;
        }
        const double d = below_top(row, k) - row->log_sum, p = exp(d), weight = class_weight(c, k);
        const double target = (k == g->label ? (1 - e) * weight : 0) + (e > 0 ? share * weight : 0),
                     size_of_target = fabs(target);
        dlogits[k] = gain * (p * factor - target);
        const double off = logit_off(row, k) + error,
                     shift = exp_shift(d, exponent_error(row->scale, d, 16 + 2 * row->most_off) + off),
                     most = p + exp_shift(d, off);
        const double size = fabs(gain) * ((p + shift) * factor_abs + size_of_target);
        const bool finite_inputs = isfinite(row->x[k]) && isfinite(row->log_sum) && isfinite(g->dloss);
        const bool overflow = too_large || p + shift > 0x1p127 || (p + shift) * factor_abs > largest ||
                              size_of_target > largest || size > largest;
        const double moved = shift * factor_abs + p * 2 * w * error,
                     unsure = 20 * u * (most * factor_abs + size_of_target * part) + moved;
        if (isinf(g->dloss) && fabs(p * factor - target) <= unsure) { /* Inf of either sign, or Inf * 0 */
            dlogits[k] = magnitude[k] = INFINITY;
            continue;
        }
        if (!isfinite(dlogits[k]) && !finite_inputs && !too_large) continue;
        magnitude[k] = overflow ? INFINITY : fabs(gain) * (most * factor_abs + size_of_target * part);
        slack[k] =
            fabs(gain) * (moved + (factor_abs + (c->of ? 4 : 0)) * tiny) + tiny * (fabs(p * factor) + size_of_target);
    }
}

/* Gradients of f32 may be narrower, as products want them. */
#define CROSS_ENTROPY_TYPES { "T=f32 G=f32|bf16|f16 L=i64|i32", "T=bf16 G=bf16 L=i64|i32", "T=f16 G=f16 L=i64|i32" }

#define CROSS_ENTROPY_PARAMS \
    PARAM(label_smoothing, F32, .values = "0 0.1 0.9", .min = 0, .max = 0x1.fffffep-1, \
          .doc = "share of the target spread evenly over all classes"), \
        PARAM(z_loss, F32, .values = "0 1e-4 0.01", .min = 0, .doc = "weight of lse^2"), \
        PARAM(logit_scale, F32, .values = "1 0.7 -2", .fallback = 1, .min = -0x1p126, .max = 0x1p126, \
              .doc = "multiplies the logits"), \
        PARAM(ignore_index_set, BOOL, .values = "0 1", .doc = "1: ignore_index is read; 0: it is -100"), \
        PARAM(ignore_index, I64, .values = "0 3 -7", .doc = "label of the rows to leave out")

#endif
