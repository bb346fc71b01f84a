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

/* loss = log_sum - (1-e) d_y - (e/v) sum_k d_k + w lse^2: none of its terms is negative, and none is larger than the
 * loss. A kernel has log_sum in f32, the second term from the two logits' difference in float64, and the sum of the d_k
 * as that of v differences from its origin, 3u each and (v-1)u for the sum, which adds at most 16 to each. The error of
 * log_sum enters 1 + 2w(|lse| + 1) times; what is left is in float64, and rounded once. Where z is off, so are d_y and
 * the mean, a hundredth more of that being enough for the errors' products. */
static inline double row_loss(const logit_row *row, int64_t label, double e, double w, double *magnitude,
                              double *slack) {
    const double lse = row_lse(row), v = (double)row->v;
    double total = 0, off = 0;
    for (int64_t k = 0; k < row->v; k++) total += below_top(row, k), off += logit_off(row, k);
    const double mean = e > 0 ? e * (total / v) : 0, square = w > 0 ? w * lse * lse : 0;
    const double loss = row->log_sum - (1 - e) * below_top(row, label) - mean + square;
    if (!isfinite(loss)) return loss;
    const double gain = w > 0 ? 1 + 2 * w * (fabs(lse) + 1 + (row->off ? row->slack : 0)) : 1;
    *magnitude = gain + (e > 0 ? fabs(mean) + 16 * e : 0);
    *slack = gain * row->slack;
    if (row->off) *slack = 1.01 * (*slack + (1 - e) * logit_off(row, label) + e * (off / v));
    return loss;
}

/* What the gradient of a row follows from besides its logits. */
typedef struct gradient_row {
    double smoothing, z_loss, dloss;
    double lse;    /* of the factor 1 + 2 z_loss lse; it is as far off as log_sum */
    int64_t label; /* -1: the row is ignored */
} gradient_row;

/* Bound, with u = 2^-24, d = z - z_top, l = log_sum, L = its error, p = exp(d - l), w = z_loss, F = 1 + 2w(|lse| + L).
 * The exponent is off by exponent_error(d - l), l by L: together D. So p is off by p(e^D - 1), which is slack, and by
 * exp to 4 ulp, 8u p. Then F (3u F, and 2wL of p, which is slack), the quotient of F and S (1u), the product with p
 * (1u), the two differences (2u of the parts' absolute values; 1-e and e/v have been rounded once), g*scale and the
 * product with it (3u): 18u on p F, 6u on the others, for which 20u on p F and on a third of the others is safe, p
 * being taken as large as L may make it. An exponential below 2^-126 may be flushed. Where z is off itself, D is as
 * much more.
 * dloss scale and 1 + 2 w lse are f32 and may overflow. */
static inline void row_gradient(const gradient_row *g, const logit_row *row, double *dlogits, double *magnitude,
                                double *slack) {
    const double u = trine_unit_roundoff(TRINE_F32), largest = trine_largest(TRINE_F32),
                 tiny = trine_smallest_normal(TRINE_F32);
    const double error = log_sum_error(row), w = g->z_loss, gain = g->dloss * row->scale;
    const double factor = w > 0 ? 1 + 2 * w * g->lse : 1, factor_abs = w > 0 ? 1 + 2 * w * (fabs(g->lse) + error) : 1;
    const bool too_large = trine_finite_abs(gain) > largest || trine_finite_abs(factor_abs) > largest;
    for (int64_t k = 0; k < row->v; k++) {
        if (g->label < 0) {
            dlogits[k] = 0;
            continue;
        }
        const double d = below_top(row, k) - row->log_sum, p = exp(d);
        const double target = (k == g->label ? 1 - g->smoothing : 0) + g->smoothing / (double)row->v;
        dlogits[k] = gain * (p * factor - target);
        const double off = logit_off(row, k) + error,
                     shift = exp_shift(d, exponent_error(row->scale, d, 16 + 2 * row->most_off) + off),
                     most = p + exp_shift(d, off);
        const double size = fabs(gain) * ((p + shift) * factor_abs + target);
        const bool finite_inputs = isfinite(row->x[k]) && isfinite(row->log_sum) && isfinite(g->dloss);
        const bool overflow = too_large || p + shift > 0x1p127 || (p + shift) * factor_abs > largest || size > largest;
        const double moved = shift * factor_abs + p * 2 * w * error,
                     unsure = 20 * u * (most * factor_abs + target / 3) + moved;
        if (isinf(g->dloss) && fabs(p * factor - target) <= unsure) { /* Inf of either sign, or Inf * 0 */
            dlogits[k] = magnitude[k] = INFINITY;
            continue;
        }
        if (!isfinite(dlogits[k]) && !finite_inputs && !too_large) continue;
        magnitude[k] = overflow ? INFINITY : fabs(gain) * (most * factor_abs + target / 3);
        slack[k] = fabs(gain) * (moved + factor_abs * tiny) + tiny * (p * factor_abs + target);
    }
}

#endif
