/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of attention: what kernels may make of one query's output and lse. */
#ifndef TRINE_SPEC_ATTENTION_ROWS_H
#define TRINE_SPEC_ATTENTION_ROWS_H

#include <stdlib.h>

#include "attention.h"

/* Bound, for a row whose visible keys j have scores z_j, of which Z is the largest absolute value, and p_j = exp(z_j -
 * lse). A sink counts as a key whose value is 0. By dropout, v_j is what it is multiplied by times the value, and the
 * product with 1/(1 - p) rounds once more.
 *
 * A kernel computes o = sum_j P_j v_j / sum_j P_j with P_j = exp(z_j - m), m a running maximum, m <= Z.
 * 1. Each exponent is off by at most e_j: the score's own error, 4u(|z_j| + Z) for the difference and its product with
 * log2(e), and 6uZ for the rescalings
 *    that follow, whose exponents add up to at most 2Z. So P_j = P_j' (1 + eta_j), |eta_j| <= expm1(e_j), and o moves
 *      by the mean of eta_j (v_j - o): at most exp(max e) sum_j p_j expm1(e_j) (|v_j| + |o|); and never out of the hull
 *      of the v_j. Where e_j are large that says nothing of a row that has one score far above the others; but no
 *      weight is more than 1, nor than exp(e_j + e_t + z_j - z_t), t the largest score's key: at most the sum over j
 *      of that times |v_j - o|. This is slack.
 * 2. Both sums pass each term through at most sk additions and a product, exp to 4 ulp (8u), and one rescaling for 16
 * keys (9u each): together
 *    1.57 sk + 18, and the division 4u; with second-order terms (2 sk + 32) u of sum_j p_j |v_j|, the magnitude, for
 *      the numerator, and as much of |o| for the denominator (slack).
 * 3. P_j may be rounded to T before the product with v_j, though not in the denominator: u(T) of the magnitude. Where
 * P_j is subnormal in T that is an
 *    absolute error instead, as is flushing; the denominator relative to the largest term is l = sum_j exp(z_j - max z)
 *      >= 1.
 * lse = m + log(sum): sum as above, log to 4 ulp, and the conversion of m from base 2. */
typedef struct row {
    double lse, top, range, error, l; /* range: Z; error: the largest e_j */
    bool uncertain;
    sight sees;
    int64_t count;
    double *p, *spread, *most, *kept; /* p_j; p_j expm1(e_j); the largest weight; what dropout multiplies it by */
} row;

static inline void measure(const score *scores, row *r) {
    r->top = -INFINITY, r->range = 0, r->error = 0, r->l = 0, r->uncertain = false;
    for (int64_t j = 0; j < r->count; j++) {
        r->uncertain |= scores[j].uncertain;
        r->top = fmax(r->top, scores[j].z);
        if (isfinite(scores[j].z)) r->range = fmax(r->range, fabs(scores[j].z));
    }
    double at_top = 0; /* of the keys with the largest score the one that is off by the most */
    for (int64_t j = 0; j < r->count; j++)
        if (scores[j].z == r->top) at_top = fmax(at_top, scores[j].error + U * 14 * r->range);
    for (int64_t j = 0; j < r->count; j++) {
        const double z = scores[j].z, e = scores[j].error + U * (4 * fabs(z) + 10 * r->range);
        r->most[j] = isfinite(z) ? fmin(1, exp(z - r->top + e + at_top)) : 0;
        r->p[j] = exp(z - r->lse);
        r->spread[j] = r->p[j] > 0 ? r->p[j] * expm1(fmin(e, 1)) : 0;
        r->l += exp(z - r->top);
        if (isfinite(z)) r->error = fmax(r->error, e);
    }
}

/* Element c of the row's output. */
static inline void output(const attention *a, const row *r, const double *v, int64_t stride, double *value,
                          double *magnitude, double *slack) {
    const int64_t keys = r->sees.last - r->sees.first; /* a score behind them is a sink's */
    double sum = 0, size = 0, all = 0, moved = 0, moved_by_o = 0, largest = 0;
    bool uncertain = r->uncertain;
    for (int64_t j = 0; j < r->count; j++) {
        const double x = j < keys ? r->kept[j] * v[j * stride] : 0;
        sum += r->p[j] * x;
        moved_by_o += r->spread[j];
        /* An infinite v_j gives Inf or NaN according to whether P_j underflows. */
        if (isinf(x)) uncertain |= r->p[j] > 0 && log(r->p[j] * r->l) - 2 * r->error < -13;
        if (!isfinite(x)) continue;
        size += r->p[j] * fabs(x);
        moved += r->spread[j] * fabs(x);
        all += fabs(x);
        largest = fmax(largest, fabs(x));
    }
    uncertain |= all > 0.5 * trine_largest(TRINE_F32);
    *value = uncertain ? 0 : sum;
    *magnitude = uncertain ? INFINITY : isfinite(size) ? size : 0;
    if (uncertain || !isfinite(sum)) return;
    const double o = fabs(sum), n = (double)r->count, terms = 2 * (double)a->sk + 32;
    double hull = 0;
    for (int64_t j = 0; j < r->count; j++) {
        const double x = j < keys ? r->kept[j] * v[j * stride] : 0;
        if (isfinite(x)) hull += r->most[j] * fabs(x - sum);
    }
    hull = fmin(hull, largest + o);
    *slack = r->error < 1 ? fmin(hull, exp(r->error) * (moved + moved_by_o * o)) : hull;
    if (a->dropout > 0) *slack += 1.01 * U * size;
    *slack += terms * U * o + (a->lost * all + n * FLUSH * (1 + o)) / r->l + FLUSH;
}

/* One with room for `most` scores, a sink's included. */
static inline row row_of(int64_t most) {
    const size_t bytes = sizeof(double) * (size_t)(most + 1);
    return (row){ .p = malloc(bytes), .spread = malloc(bytes), .most = malloc(bytes), .kept = malloc(bytes) };
}
static inline void row_free(row *r) { free(r->p), free(r->spread), free(r->most), free(r->kept); }

/* lse, of a row that has been measured. */
static inline void row_lse(const row *r, double *value, double *magnitude, double *slack) {
    *value = r->uncertain ? 0 : r->lse;
    *magnitude = r->uncertain ? INFINITY : isfinite(r->lse);
    *slack = isfinite(r->lse) ? r->error * exp(fmin(r->error, 1)) + U * (4 * r->range + 10 * log(r->l)) + FLUSH : 0;
}

#endif
