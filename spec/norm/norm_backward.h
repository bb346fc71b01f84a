/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of both norms' gradients: rms_norm's is layer_norm's without the mean. */
#ifndef TRINE_SPEC_NORM_BACKWARD_H
#define TRINE_SPEC_NORM_BACKWARD_H

#include "norm.h"

typedef struct norm_gradient {
    const double *mean; /* NULL: rms_norm */
    float weight_offset, dropout;
    uint64_t seed, offset;
} norm_gradient;

/* Bound, with w = weight + weight_offset, xhat = (h - mean) rstd, g = w dy, c1 = mean(g), c2 = mean(g xhat), P1 =
 * mean|g|, P2 = mean|g xhat|. Each g xhat carries 5 roundings, its sum sum_depth(n), the division by n two: c2 is off
 * by (sum_depth(n) + 7)u P2, and c1 by less of P1. dh = rstd (g - c1 - xhat c2) + dresidual rounds g twice, xhat c2
 * three times, the differences, the product and the sum: at most nine roundings of something no larger than M = rstd
 * (|g| + P1 + |xhat| P2) + |dresidual|, dropout's product one more of M scale. Together (sum_depth(n) + 18)u M. h and
 * mean may be of any size: their difference, which f32 need not have, is found by halves, where subnormal ones lose a
 * bit. Products below 2^-126 may be flushed, and an xhat or g that is has no sign to give to an infinite factor: that
 * makes NaN. */
static inline void norm_backward_row(const norm_gradient *args, trine_ref *ref, int64_t i, int64_t n) {
    const double *dy = trine_ref_value(ref, "dy") + i * n, *h = trine_ref_value(ref, "h") + i * n,
                 *weight = trine_ref_value(ref, "weight");
    const double *dresidual = trine_ref_value(ref, "dresidual"), rstd = trine_ref_value(ref, "rstd")[i],
                 mean = args->mean ? args->mean[i] : 0;
    double *dx = trine_ref_value(ref, "dx"), *dh = trine_ref_value(ref, "dh");
    const double largest = trine_largest(TRINE_F32),
                 factor = args->dropout > 0 ? trine_dropout_scale(args->dropout) : 1;
    const double hat_lost = FLUSH + 0x1p-148 * trine_finite_abs(rstd);
    double sum = 0, product = 0, sum_abs = 0, product_abs = 0, most = 0;
    bool unsigned_infinity = false;
    for (int64_t j = 0; j < n; j++) {
        const double g = norm_weight(weight, j, args->weight_offset) * dy[j], hat = (h[j] - mean) * rstd;
        sum += g;
        product += g * hat;
        sum_abs += trine_finite_abs(g);
        product_abs += trine_finite_abs(g * hat);
        most = fmax(most, fmax(trine_finite_abs(g), trine_finite_abs(hat)));
        unsigned_infinity |= (isinf(g) && fabs(hat) <= hat_lost) || (isinf(hat) && fabs(g) <= FLUSH);
    }
    const double c1 = args->mean ? sum / (double)n : 0, p1 = args->mean ? sum_abs / (double)n : 0;
    const double c2 = product / (double)n, p2 = product_abs / (double)n;
    const double c2_lost = FLUSH + most * (hat_lost + FLUSH);
    const bool overflow = unsigned_infinity || fmax(most, fmax(product_abs, args->mean ? sum_abs : 0)) > largest ||
                          (args->mean && rstd > largest / 2);
    for (int64_t j = 0; j < n; j++) {
        const int64_t k = i * n + j;
        const double g = norm_weight(weight, j, args->weight_offset) * dy[j], hat = (h[j] - mean) * rstd;
        const double at_h = rstd * (g - c1 - hat * c2) + (dresidual ? dresidual[k] : 0);
        const double inner = trine_finite_abs(g) + p1 + trine_finite_abs(hat) * p2;
        const double size = trine_finite_abs(rstd) * inner + (dresidual ? trine_finite_abs(dresidual[k]) : 0);
        const double lost =
            trine_finite_abs(rstd) * (5 * FLUSH + hat_lost * p2 + trine_finite_abs(hat) * c2_lost) + 2 * FLUSH;
        const bool large = overflow || inner > largest || size > largest || (isinf(c2) && fabs(hat) <= hat_lost);
        if (dh) {
            dh[k] = at_h;
            trine_ref_magnitude(ref, "dh")[k] = large ? INFINITY : size;
            trine_ref_slack(ref, "dh")[k] = lost;
        }
        const bool keep =
            args->dropout == 0 || trine_dropout_keep(args->seed, args->offset, ref->first + (uint64_t)k, args->dropout);
        dx[k] = keep ? at_h * factor : 0;
        if (!keep) continue;
        trine_ref_magnitude(ref, "dx")[k] = large || size * factor > largest ? INFINITY : size * factor;
        trine_ref_slack(ref, "dx")[k] = lost * factor;
    }
}

/* dweight sums r products of three factors, (sum_depth(r) + 3)u; dbias r terms. Of an xhat that may be flushed an
 * infinite dy makes NaN, as in a row. */
static inline void norm_backward_column(const norm_gradient *args, trine_ref *ref, const char *name, bool bias,
                                        int64_t j) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    const double *dy = trine_ref_value(ref, "dy"), *h = trine_ref_value(ref, "h"), *rstd = trine_ref_value(ref, "rstd");
    const double largest = trine_largest(TRINE_F32);
    double sum = 0, sum_abs = 0, most = 0, lost = FLUSH;
    bool unsigned_infinity = false, doubled = false; /* doubled: may twice an rstd overflow? */
    for (int64_t i = 0; i < r; i++) {
        const double centered = bias ? 1 : h[i * n + j] - (args->mean ? args->mean[i] : 0),
                     hat = bias ? 1 : centered * rstd[i], term = dy[i * n + j] * hat;
        sum += term;
        sum_abs += trine_finite_abs(term);
        const double hat_lost = bias ? 0 : FLUSH + 0x1p-148 * trine_finite_abs(rstd[i]);
        lost += FLUSH + trine_finite_abs(dy[i * n + j]) * hat_lost;
        most = fmax(most, trine_finite_abs(hat));
        unsigned_infinity |= !bias && isinf(dy[i * n + j]) && hat != 0 && fabs(hat) <= hat_lost;
        doubled |= !bias && args->mean && rstd[i] > largest / 2;
    }
    trine_ref_value(ref, name)[j] = sum;
    trine_ref_magnitude(ref, name)[j] =
        unsigned_infinity || doubled || fmax(most, sum_abs) > largest ? INFINITY : sum_abs;
    trine_ref_slack(ref, name)[j] = lost;
}

/* mean and rstd of h without eps, where it has a spread. */
static inline void norm_save(const trine_ref *ref, bool centered) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    for (int64_t i = 0; i < r; i++) {
        const double *h = trine_ref_value(ref, "h") + i * n;
        double sum = 0, squares = 0;
        for (int64_t j = 0; centered && j < n; j++) sum += h[j];
        const double mean = sum / (double)n;
        for (int64_t j = 0; j < n; j++) squares += (h[j] - mean) * (h[j] - mean);
        if (centered) trine_ref_value(ref, "mean")[i] = mean;
        trine_ref_value(ref, "rstd")[i] =
            squares > 0 ? fmin(1 / sqrt(squares / (double)n), trine_largest(TRINE_F32)) : 1;
    }
}

static inline void norm_backward(norm_gradient *args, trine_ref *ref) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    trine_ref_philox(ref, &args->seed, &args->offset);
    for (int64_t i = 0; i < r; i++) norm_backward_row(args, ref, i, n);
    if (trine_ref_value(ref, "dweight"))
        for (int64_t j = 0; j < n; j++) norm_backward_column(args, ref, "dweight", false, j);
    if (args->mean && trine_ref_value(ref, "dbias"))
        for (int64_t j = 0; j < n; j++) norm_backward_column(args, ref, "dbias", true, j);
}

#endif
