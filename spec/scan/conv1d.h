/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of conv1d_causal and its gradient share: taps, and the sum that goes into the activation. */
#ifndef TRINE_SPEC_CONV1D_H
#define TRINE_SPEC_CONV1D_H

#include "scan.h"

#define CONV_MOST 8 /* taps */

typedef struct conv {
    scan_sequences all;
    int64_t k;
    const double *x, *weight, *bias, *x0; /* bias, x0: NULL if absent */
    bool silu;
} conv;

static inline conv conv_of(const trine_ref *ref, bool silu) {
    return (conv){ .all = scan_sequences_of(ref, false),
                   .k = trine_ref_dim(ref, "k"),
                   .x = trine_ref_value(ref, "x"),
                   .weight = trine_ref_value(ref, "weight"),
                   .bias = trine_ref_value(ref, "bias"),
                   .x0 = trine_ref_value(ref, "x0"),
                   .silu = silu };
}

/* Element j of step t of sequence i, t being negative before the first; NULL if there is none. */
static inline const double *conv_input(const conv *c, int64_t i, int64_t t, int64_t j) {
    if (t >= 0) return c->x + scan_place(&c->all, i, t, j);
    return c->x0 ? c->x0 + (i * (c->k - 1) + c->k - 1 + t) * c->all.n + j : NULL;
}

/* Bound of z, u = 2^-24: k products and as many additions in any order, fused or not, no term with more than k + 1
 * roundings, k + 2 with what second order adds. A state's `error` is in units of u (scan.h). */
static inline scan_state conv_sum(const conv *c, int64_t i, int64_t t, int64_t j) {
    scan_state z = { .h = c->bias ? c->bias[j] : 0, .lost = (double)c->k * FLUSH };
    z.size = trine_finite_abs(z.h);
    for (int64_t tap = 0; tap < c->k; tap++) {
        const double *x = conv_input(c, i, t - c->k + 1 + tap, j);
        if (x == NULL) continue;
        const double term = c->weight[j * c->k + tap] * *x;
        z.h += term, z.size += trine_finite_abs(term);
    }
    z.error = (double)(c->k + 2) * z.size;
    z.uncertain = !(z.size * (1 + 16 * U) < trine_largest(TRINE_F32));
    return z;
}

static inline double conv_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

/* silu(z): its slope is less than 1.1, of what z is off by; sigmoid to 11u and the product as in swiglu, 14u of the
 * result. A sigmoid below 2^-126 may be 0, and then an Inf becomes NaN. */
static inline scan_state conv_silu(const scan_state *z) {
    const double s = conv_sigmoid(z->h), size = trine_finite_abs(z->h);
    scan_state y = *z;
    y.h = z->h * s;
    y.error = isfinite(z->h) ? 1.1 * z->error + 14 * fabs(y.h) : 0;
    y.lost = 1.1 * z->lost + 2 * FLUSH + (s < 2 * FLUSH ? FLUSH * size : 0);
    return y;
}

/* dz = dy s (1 + z (1 - s)): the slope of the second factor is at most 1/2, of what z is off by; the rest is off by 28u
 * of dy s (1 + |z|), as in swiglu_backward. Where an infinite dy meets a factor that may be 0 or of the other sign,
 * nothing is known. */
static inline scan_state conv_slope(const scan_state *z, double dy) {
    const double s = conv_sigmoid(z->h), size = trine_finite_abs(dy);
    const double slope = s * (1 + z->h * conv_sigmoid(-z->h));
    const double rounded = isfinite(z->h) ? 28 * s * (1 + fabs(z->h)) : 0;
    const double off = isfinite(z->h) ? 0.5 * z->error + rounded : 0;
    scan_state dz = { .h = dy * slope, .size = size * fabs(slope), .error = size * off, .uncertain = z->uncertain };
    dz.lost = size * (0.5 * z->lost + FLUSH * (2 + trine_finite_abs(z->h))) + 3 * FLUSH;
    dz.uncertain |= isinf(dy) && (fabs(slope) <= U * off + 4 * FLUSH * (1 + trine_finite_abs(z->h)));
    dz.uncertain |= size * (1 + trine_finite_abs(z->h)) * 2 > trine_largest(TRINE_F32);
    if (!isfinite(dz.h)) dz.size = 0;
    return dz;
}

#endif
