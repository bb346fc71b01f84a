/* SPDX-License-Identifier: Apache-2.0 */
/* gelu and its derivative on devices: neither form goes through 1 + tanh or 1 + erf, so that the far tails are right
 * too. */
#ifndef TRINE_SIMT_GELU_H
#define TRINE_SIMT_GELU_H

#include <trine/elementwise.h>

#include "backends/simt/core/math.h"

struct gelu_pair {
    float y, slope;
};

/* The forms. value<T>() is to be rounded to T, also as a factor of a y for which it serves<T>(). */
struct gelu_tanh {
    template <class T> static DEVICE float value(float x) { return x * gelu_logistic(x).of; }
    template <class T> static DEVICE bool serves(float) { return true; }
    static DEVICE gelu_pair with_slope(float x) {
        const float bounded = x > 20 ? 20 : x < -20 ? -20 : x; /* there s(1-s) is 0 already; x^2 must not become Inf */
        const logistic s = gelu_logistic(bounded);
        return { x * s.of, fused(s.of * s.of_minus * fused(bounded * bounded, 0.214064449f, 1.59576912f), x, s.of) };
    }
};
struct gelu_erf {
    template <class T> static DEVICE float value(float x) { return normal_gate<T>(x); }
    template <class T> static DEVICE bool serves(float y) { return normal_gate_serves<T>(y); }
    static DEVICE gelu_pair with_slope(float x) {
        const normal f = normal_of(x);
        return { x * f.cdf, fused(x, f.pdf, f.cdf) };
    }
};

/* body(k, form) for k = 0 .. N-1, where a choice of form by element would cost each one. */
template <int N, class Body> DEVICE void gelu_each(int32_t form, Body body) {
    if (form == TRINE_GELU_TANH) {
#pragma unroll
        for (int k = 0; k < N; k++) body(k, gelu_tanh());
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) body(k, gelu_erf());
    }
}

#endif
