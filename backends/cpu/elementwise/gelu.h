/* SPDX-License-Identifier: Apache-2.0 */
/* gelu and its derivative over float vectors, right in the far tails too: neither form goes through 1 + tanh or 1 +
 * erf. */
#ifndef TRINE_CPU_GELU_H
#define TRINE_CPU_GELU_H

#include <trine/elementwise.h>

#include "backends/cpu/core/vec_math.h"

/* 1 + tanh(u) = 2 sigmoid(2 u); this is 2 u = 2 sqrt(2/pi) (x + 0.044715 x^3). */
INLINE vf vgelu_argument(vf x) { return x * vfma(x * x, vset(0.0713548163f), vset(1.59576912f)); }

/* body(..., form, dtype), both constants. */
#define FOR_GELU(form, dtype, body, ...) \
    do { \
        if ((form) == TRINE_GELU_TANH) \
            FOR_TYPE(dtype, body, __VA_ARGS__, TRINE_GELU_TANH); \
        else \
            FOR_TYPE(dtype, body, __VA_ARGS__, TRINE_GELU_ERF); \
    } while (0)

/* Callers' `form` is a constant. */
INLINE vf vgelu(int32_t form, vf x) {
    return x * (form == TRINE_GELU_TANH ? vsigmoid(vgelu_argument(x)) : vnormcdf(x));
}

/* The derivative, and gelu itself in *y. */
INLINE vf vgelu_slope(int32_t form, vf x, vf *y) {
    if (form == TRINE_GELU_TANH) {
        /* there s(1-s) is 0 already; x^2 must not become Inf */
        const vf bounded = vmin(vset(20.0f), vmax(vset(-20.0f), x));
        const vf v = vgelu_argument(bounded), s = vsigmoid(v);
        const vf dv = vfma(bounded * bounded, vset(0.214064449f), vset(1.59576912f));
        *y = x * s;
        return vfma(s * vsigmoid(-v) * dv, x, s);
    }
    vf density;
    const vf cdf = vnormal(x, &density);
    *y = x * cdf;
    return vfma(x, density, cdf);
}

#endif
