/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of segment_reduce and its gradient share: products of any size, and sums of exponentials. */
#ifndef TRINE_SPEC_SEGMENTS_H
#define TRINE_SPEC_SEGMENTS_H

#include <math.h>

#include "spec/spec.h"

/* The product of finite numbers other than 0 is m 2^e, or -m 2^e; the others are counted. */
typedef struct segment_product {
    double m;
    int64_t e;
    bool negative;
    int64_t zeros, infs, nans;
} segment_product;

static inline segment_product segment_times(segment_product a, segment_product b) {
    int e;
    const double m = frexp(a.m * b.m, &e);
    return (segment_product){
        m, a.e + b.e + e, a.negative != b.negative, a.zeros + b.zeros, a.infs + b.infs, a.nans + b.nans
    };
}
static inline segment_product segment_factor(double x) {
    segment_product p = { 1, 0, signbit(x) != 0, x == 0, isinf(x) != 0, isnan(x) != 0 };
    if (isfinite(x) && x != 0) p = segment_times(p, (segment_product){ .m = fabs(x) });
    p.negative = signbit(x) != 0;
    return p;
}
static inline double segment_value(segment_product p) {
    const int e = (int)fmax(-5000, fmin(5000, (double)p.e));
    const double size = p.zeros > 0 ? 0 : p.infs > 0 ? INFINITY : ldexp(p.m, e);
    return p.nans > 0 || (p.zeros > 0 && p.infs > 0) ? NAN : p.negative ? -size : size;
}

/* Of a column of a segment: its maximum, the sum of exp(x - maximum), and what the roundings of these differences cost
 * the sum, in units of u of it. */
typedef struct segment_power {
    double most, shift, sum, cost;
} segment_power;

static inline segment_power segment_power_of(const double *x, int64_t first, int64_t end, int64_t n) {
    segment_power p = { .most = -INFINITY };
    for (int64_t i = first; i < end; i++)
        if (!isnan(p.most) && !(x[i * n] <= p.most)) p.most = x[i * n];
    p.shift = isfinite(p.most) ? p.most : 0;
    for (int64_t i = first; i < end; i++) {
        const double power = exp(x[i * n] - p.shift);
        p.sum += power;
        if (power > 0 && isfinite(p.most)) p.cost += (p.shift - x[i * n]) * power;
    }
    if (isfinite(p.most)) p.cost /= p.sum;
    return p;
}

#endif
