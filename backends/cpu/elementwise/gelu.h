/* SPDX-License-Identifier: Apache-2.0 */
/* gelu and its derivative over float vectors, right in the far tails too: neither form goes through 1 + tanh or 1 +
 * erf. */
#ifndef TRINE_CPU_GELU_H
#define TRINE_CPU_GELU_H

#include "backends/cpu/core/vec_math.h"

/* 1 + tanh(u) = 2 sigmoid(2 u); this is 2 u = 2 sqrt(2/pi) (x + 0.044715 x^3). */
INLINE vf vgelu_argument(vf x) { return x * vfma(x * x, vset(0.0713548163f), vset(1.59576912f)); }

INLINE vf vgelu_tanh(vf x) { return x * vsigmoid(vgelu_argument(x)); }

INLINE vf vgelu_erf(vf x) { return x * vnormcdf(x); }

INLINE vf vgelu_tanh_slope(vf x) {
    /* there s(1-s) is 0 already; x^2 must not become Inf */
    const vf bounded = vmin(vset(20.0f), vmax(vset(-20.0f), x));
    const vf v = vgelu_argument(bounded), s = vsigmoid(v);
    const vf dv = vfma(bounded * bounded, vset(0.214064449f), vset(1.59576912f));
    return vfma(s * vsigmoid(-v) * dv, x, s);
}

INLINE vf vgelu_erf_slope(vf x) {
    vf density;
    const vf cdf = vnormal(x, &density);
    return vfma(x, density, cdf);
}

#endif
