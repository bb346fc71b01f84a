/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of the ops of x + bias share. */
#ifndef TRINE_SPEC_BIAS_H
#define TRINE_SPEC_BIAS_H

#include "spec/elementwise/gelu.h"
#include "spec/norm/norm.h"

#define BIAS_SIZES { "r: 1 0 2 5 67 300", "n: 0 1 3 8 17 64 251 1000" }

/* x + bias, and whether it may overflow in f32 where it is finite. */
typedef struct bias_sum {
    double h;
    bool over;
} bias_sum;
static inline bias_sum bias_sum_of(const double *x, const double *bias, int64_t at, int64_t n) {
    const double h = x[at] + (bias ? bias[at % n] : 0);
    return (bias_sum){ h, trine_finite_abs(h) > LARGEST };
}

/* The sum over r rows of a gradient, before its rounding, which is in `values` with the sizes of its errors: those of
 * all terms, by the depth of the sum besides; terms and partial sums may be flushed. */
static inline void bias_gradient(trine_ref *ref, const double *values, const double *magnitudes, const double *slacks) {
    const int64_t r = trine_ref_dim(ref, "r"), n = trine_ref_dim(ref, "n");
    double *dbias = trine_ref_value(ref, "dbias"), *magnitude = trine_ref_magnitude(ref, "dbias"),
           *slack = trine_ref_slack(ref, "dbias");
    for (int64_t j = 0; dbias && j < n; j++) {
        double sum_abs = 0;
        dbias[j] = 0;
        for (int64_t i = 0; i < r; i++) {
            dbias[j] += values[i * n + j];
            magnitude[j] += magnitudes[i * n + j];
            slack[j] += slacks[i * n + j] + FLUSH;
            sum_abs += trine_finite_abs(values[i * n + j]);
        }
        if (sum_abs > LARGEST) magnitude[j] = INFINITY;
    }
}

#endif
