/* SPDX-License-Identifier: Apache-2.0 */
/* Rows normalized by operations that are told one by one: what the references of rms_norm_quantize and
 * all_reduce_rms_norm_quantize share. */
#ifndef TRINE_SPEC_QUANTIZE_RMS_ROWS_H
#define TRINE_SPEC_QUANTIZE_RMS_ROWS_H

#include "rows.h"

/* The sum of squares in f64, in which a square is exact, in the order that the header gives. */
static inline double rms_row_squares(const float *h, int64_t k) {
    enum { PARTIAL = 2048 };
    double sum[PARTIAL] = { 0 };
    for (int64_t j = 0; j < k; j++) sum[j % PARTIAL] += (double)h[j] * h[j];
    for (int count = PARTIAL / 2; count > 0; count /= 2)
        for (int i = 0; i < count; i++) sum[i] = sum[2 * i] + sum[2 * i + 1];
    return sum[0];
}

/* rstd = m 2^e with 1 <= m <= 2: so no number overflows on its way. */
typedef struct rms_row_factors {
    float m;
    int e;
} rms_row_factors;

static inline rms_row_factors rms_row_factors_of(double rstd) {
    if (!isfinite(rstd) || rstd == 0) return (rms_row_factors){ (float)rstd, 0 };
    const int e = ilogb(rstd);
    return (rms_row_factors){ (float)ldexp(rstd, -e), e };
}

/* h becomes what is normalized. weight: NULL for 1. */
static inline void rms_row(float *h, int64_t k, const double *weight, float weight_offset, float eps) {
    const rms_row_factors f = rms_row_factors_of(1 / sqrt(rms_row_squares(h, k) / (double)k + (double)eps));
    const float first = ldexpf(1, f.e >> 1), second = ldexpf(1, f.e - (f.e >> 1));
    for (int64_t j = 0; j < k; j++) {
        h[j] = h[j] * first * second * f.m;
        if (weight) h[j] *= (float)weight[j] + weight_offset;
    }
}

#endif
