/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of one row of softmax, for references. */
#ifndef TRINE_SPEC_SOFTMAX_BACKWARD_H
#define TRINE_SPEC_SOFTMAX_BACKWARD_H

#include "norm.h"

#define SOFTMAX_BACKWARD_TERMS(n) SUM_DEPTH(n) " + 6"

/* dx = scale y (dy - sum y dy) in the first `visible` of n elements, 0 in the others.
 *
 * Bound, with S = sum_k y_k dy_k and P = sum_k |y_k dy_k|: the products and their sum leave S off by (sum_depth(n) +
 * 1)u P; the difference dy_j - S and the products by y_j and scale round once each, four roundings of something no
 * larger than |scale y_j|(|dy_j| + P). Products below 2^-126 may be flushed: n of them in S, and one each of y_j (dy_j
 * - S), scale y_j and the result. */
static inline void softmax_gradient(const double *y, const double *dy, double *dx, double *magnitude, double *slack,
                                    int64_t n, int64_t visible, double scale) {
    const double largest = trine_largest(TRINE_F32);
    double sum = 0, sum_abs = 0;
    for (int64_t j = 0; j < visible; j++) {
        sum += y[j] * dy[j];
        sum_abs += trine_finite_abs(y[j] * dy[j]);
    }
    for (int64_t j = 0; j < n; j++) {
        dx[j] = j < visible ? scale * (y[j] * (dy[j] - sum)) : 0;
        if (j >= visible) continue;
        const double inner = trine_finite_abs(dy[j]) + sum_abs;
        magnitude[j] = isfinite(dx[j]) ? fabs(scale * y[j]) * inner : 0;
        if (inner > largest || trine_finite_abs(y[j]) * inner > largest || trine_finite_abs(scale * y[j]) > largest)
            magnitude[j] = INFINITY;
        if (!isfinite(dx[j])) continue;
        slack[j] = FLUSH * (fabs(scale * y[j]) * (double)n + fabs(scale) + inner + 1);
    }
}

#endif
