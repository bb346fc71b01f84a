/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of cross_entropy and cross_entropy_backward share. */
#ifndef TRINE_SPEC_CROSS_ENTROPY_H
#define TRINE_SPEC_CROSS_ENTROPY_H

#include <math.h>

#include "spec.h"

/* How far exp(d) may move when d does by at most `delta`. */
static inline double exp_shift(double d, double delta) {
    if (exp(d) == 0 && !(d + delta > -800)) return 0; /* also d = -inf, delta = inf */
    return delta < 1 ? exp(d) * expm1(delta) : exp(d + delta) - exp(d);
}

/* The largest scale*x[k], NaN left aside; -inf for none. */
static inline double row_max(const double *x, int64_t v, double scale) {
    double max = -INFINITY;
    for (int64_t k = 0; k < v; k++)
        if (scale * x[k] > max) max = scale * x[k];
    return max;
}

/* log sum_k exp(scale*x[k]): +inf if an element is, -inf if all are, NaN if one is. */
static inline double row_lse(const double *x, int64_t v, double scale) {
    const double max = row_max(x, v, scale), origin = isfinite(max) ? max : 0;
    double sum = 0;
    for (int64_t k = 0; k < v; k++) sum += exp(scale * x[k] - origin);
    return origin + log(sum);
}

#endif
