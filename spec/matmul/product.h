/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of products share: sums of products with their errors, and activations. */
#ifndef TRINE_SPEC_PRODUCT_H
#define TRINE_SPEC_PRODUCT_H

#include <trine/matmul.h>

#include "spec/spec.h"

typedef struct dot {
    long double sum;
    double scale, flushed; /* sum of |a b| over the finite products; over those that a flushed operand would lose */
    double weight;         /* sum of w */
} dot;

static inline dot dot_careful(const double *a, const double *b, int64_t k, int64_t n, double tiny) {
    dot r = { 0 };
    for (int64_t p = 0; p < k; p++) {
        const long double x = (long double)a[p] * b[p * n];
        const double size = fabs((double)x);
        r.sum += x;
        if (fabs(a[p]) < tiny || fabs(b[p * n]) < tiny) r.flushed += size;
        if (isfinite(a[p]) && isfinite(b[p * n])) r.scale += size;
    }
    if (isnan(r.flushed)) r.flushed = 0;
    r.weight = r.scale;
    return r;
}

static inline dot dot_of(const double *a, const double *b, int64_t k, int64_t n) {
    long double sum = 0;
    double scale = 0;
    for (int64_t p = 0; p < k; p++) {
        const long double x = (long double)a[p] * b[p * n];
        sum += x;
        scale += fabs((double)x);
    }
    return isfinite(scale) ? (dot){ .sum = sum, .scale = scale, .weight = scale } : dot_careful(a, b, k, n, 0);
}

/* The sum of w over the finite products. */
static inline double dot_weight(const double *a, const double *b, int64_t k, int64_t n, double a_least,
                                double b_least) {
    double sum = 0;
    for (int64_t p = 0; p < k; p++) {
        const double x = fabs(a[p]), y = fabs(b[p * n]);
        if (x != 0 && y != 0 && isfinite(x) && isfinite(y)) sum += fmax(x, a_least) * fmax(y, b_least);
    }
    return sum;
}

static inline bool any_below(const double *x, int64_t count, double tiny) {
    for (int64_t i = 0; i < count; i++)
        if (x[i] != 0 && fabs(x[i]) < tiny) return true;
    return false;
}

static inline long double activate(int activation, long double x) {
    switch (activation) {
    case TRINE_ACTIVATION_RELU: return x < 0 ? 0 : x;
    case TRINE_ACTIVATION_GELU_TANH:
        return x / (1 + expl(-2 * sqrtl(8 * atanl(1)) / (4 * atanl(1)) * (x + 0.044715L * x * x * x)));
    case TRINE_ACTIVATION_GELU_ERF: return x / 2 * erfcl(-x / sqrtl(2));
    case TRINE_ACTIVATION_SILU: return x / (1 + expl(-x));
    default: return x;
    }
}

#endif
