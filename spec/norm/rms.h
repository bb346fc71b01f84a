/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of rms_norm and of ops with such a norm within share: a row's statistics and their errors. */
#ifndef TRINE_SPEC_RMS_H
#define TRINE_SPEC_RMS_H

#include "norm.h"

/* Bound, with D = sum_depth(n), E_j what h_j is off by (norm_h), v = mean h^2 + eps, w = weight + weight_offset, f =
 * |h| rstd w.
 *
 * The mean of squares: product, sum, division and eps round (D + 3)u; E_j moves it by up to e = mean(2|h|E + E^2), and
 * subnormal squares by norm_squares_lost(v) =: l. So v is off by (D + 3)u + q of itself, q = (e + l)/v, and 1/sqrt(v)
 * by no more than that while it is below 1/2; sqrt and division, or a reciprocal square root of 4 ulp, add 8u. y = (h
 * rstd) w rounds the two products and w's sum, and h may be off by E_j, and by g = norm_lost(v) where it is subnormal:
 * together
 *     |y - y64| <= (D + 16)u f + q f + (E_j + g) rstd |w|.
 * TRINE_ROUND_BEFORE_WEIGHT: h rstd, off by as much without w, is rounded to T, in the reference as well: the two may
 * differ by the steps of T that lie within that error, nearly always none. Where E_j is the largest of f32 and more, h
 * itself may overflow, and its row then is NaN. */
typedef struct rms_stats {
    double rstd, q, lost; /* lost: g */
    bool overflow;
} rms_stats;

/* Of a row's sum of squares, and of what that may be off by, since elements are. */
static inline rms_stats rms_settle(double squares, double moved, int64_t n, double eps, bool overflow) {
    const double v = squares / (double)n + eps, off = moved / (double)n + norm_squares_lost(v);
    rms_stats r = { .rstd = 1 / sqrt(v), .lost = norm_lost(v), .overflow = overflow };
    if (isfinite(v) && off > 0) r.q = off / v;
    r.overflow |= !(r.q < 0.4);
    return r;
}

static inline rms_stats rms_statistics(const norm_input *in, int64_t at, int64_t n, double eps) {
    double squares = 0, moved = 0;
    bool overflow = false;
    for (int64_t j = 0; j < n; j++) {
        double e;
        const double h = norm_h(in, at + j, &e);
        overflow |= e > trine_largest(TRINE_F32);
        squares += h * h;
        moved += U * e * (2 * fabs(h) + U * e);
    }
    return rms_settle(squares, moved, n, eps, overflow);
}

/* What h rstd, an element of the row, may be off by besides its own roundings; h is off by e u. */
static inline double rms_moved(const rms_stats *row, double hat, double e) {
    return (fabs(hat) * row->q + (U * e + row->lost) * row->rstd) * (1 + row->q);
}

#endif
