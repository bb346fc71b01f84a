/* SPDX-License-Identifier: Apache-2.0 */
/* What lies beyond the ends of a signal: each value there is a sum of a few of its own times weights. Text that host
 * and device compile: WAVELET_FUNCTION is how a function is declared. */
#ifndef TRINE_SPEC_WAVELET_EDGE_H
#define TRINE_SPEC_WAVELET_EDGE_H

#include <stdint.h>

#include <trine/wavelet.h>

#ifndef WAVELET_FUNCTION
#define WAVELET_FUNCTION static inline
#endif

/* Those whose weight is 0 are none. */
enum { WAVELET_TERMS = 3 };
typedef struct wavelet_value {
    int64_t at[WAVELET_TERMS];
    double weight[WAVELET_TERMS];
} wavelet_value;

/* `term` is known when this is compiled: devices keep the terms in registers. */
WAVELET_FUNCTION void wavelet_add(wavelet_value *v, int term, int64_t at, double weight) {
    v->at[term] = at;
    v->weight[term] = weight;
}

/* Periods begun: of t in [-period, 0) it is -1. */
WAVELET_FUNCTION int64_t wavelet_turns(int64_t t, int64_t period) {
    return t >= 0 ? t / period : -((-t - 1) / period) - 1;
}

/* Value t of a signal of n. */
WAVELET_FUNCTION wavelet_value wavelet_value_at(int edge, int64_t n, int64_t t) {
    wavelet_value v = { { 0, 0, 0 }, { 0, 0, 0 } };
    const int64_t last = n - 1;
    if (t >= 0 && t < n) {
        wavelet_add(&v, 0, t, 1);
        return v;
    }
    if (n <= 0 || edge == TRINE_WAVELET_ZERO) return v;
    const int64_t near_end = t < 0 ? 0 : last;
    if (edge == TRINE_WAVELET_CONSTANT || n == 1) {
        const int turned = edge == TRINE_WAVELET_ANTISYMMETRIC && t % 2 != 0;
        wavelet_add(&v, 0, near_end, turned ? -1 : 1);
    } else if (edge == TRINE_WAVELET_SMOOTH) {
        const int64_t far = t < 0 ? -t : t - last;
        wavelet_add(&v, 0, near_end, 1 + (double)far);
        wavelet_add(&v, 1, t < 0 ? 1 : last - 1, -(double)far);
    } else if (edge == TRINE_WAVELET_PERIODIC || edge == TRINE_WAVELET_PERIODIZATION) {
        const int64_t period = edge == TRINE_WAVELET_PERIODIC ? n : n + n % 2,
                      m = t - wavelet_turns(t, period) * period;
        wavelet_add(&v, 0, m < n ? m : last, 1);
    } else if (edge == TRINE_WAVELET_SYMMETRIC || edge == TRINE_WAVELET_ANTISYMMETRIC) {
        const int64_t m = t - wavelet_turns(t, 2 * n) * 2 * n;
        wavelet_add(&v, 0, m < n ? m : 2 * n - 1 - m, m < n || edge == TRINE_WAVELET_SYMMETRIC ? 1 : -1);
    } else {
        const int64_t turns = wavelet_turns(t, 2 * last), m = t - turns * 2 * last;
        const double drift = edge == TRINE_WAVELET_ANTIREFLECT ? 2 * (double)turns : 0;
        if (m <= last) {
            wavelet_add(&v, 0, m, 1);
            wavelet_add(&v, 1, last, drift);
        } else if (edge == TRINE_WAVELET_REFLECT) {
            wavelet_add(&v, 0, 2 * last - m, 1);
        } else {
            wavelet_add(&v, 0, 2 * last - m, -1);
            wavelet_add(&v, 1, last, 2 + drift);
        }
        wavelet_add(&v, 2, 0, -drift);
    }
    return v;
}

#endif
