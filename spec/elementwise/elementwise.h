/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of the elementwise ops share. */
#ifndef TRINE_SPEC_ELEMENTWISE_H
#define TRINE_SPEC_ELEMENTWISE_H

#include <math.h>

#include "spec/spec.h"

#define SHAPE "[p] [q] [r] n"
#define SIZES { "p: 1 2", "q: 1 3", "r: 1 0 2 5 67", "n: 0 1 3 8 17 64 251 1000" }

#define LARGEST 0x1.fffffep127 /* of f32 */
#define TINY 0x1p-150          /* the error of a rounding to a subnormal f32 */
#define FLUSH 0x1p-126         /* the smallest normal f32 */

/* The four dimensions are the first symbols. */
static inline int64_t element_count(const trine_ref *ref) {
    return ref->dim[0] * ref->dim[1] * ref->dim[2] * ref->dim[3];
}

/* 1/(1 + e^-x), small results too. The references assume of a kernel's sigmoid: exp to 4 ulp, which is 8u with u =
 * 2^-24; adding 1, u; a division to 1 ulp, 2u. That makes 11u of the result, small results included since they are e/(1
 * + e).
 * 1 - s computed as such is good to 11u, of 1. */
static inline double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

/* What rounding a small x to a subnormal, or flushing it to zero, costs. */
static inline double lost(double x) { return fabs(x) < 2 * FLUSH ? fmin(fabs(x), FLUSH) : 0; }

/* The absolute error of the f32 product of `count` finite factors in any order, where partial products are subnormal;
 * infinite if one may overflow. Factors of +-1 cost nothing. */
static inline double product_slack(int count, const double *factor) {
    double slack = 0;
    for (unsigned set = 1; set < 1u << count; set++) {
        double part = 1, rest = 1;
        int rounded = 0;
        for (int i = 0; i < count; i++) {
            if (set >> i & 1) {
                part *= fabs(factor[i]);
                rounded += fabs(factor[i]) != 1;
            } else {
                rest *= fabs(factor[i]);
            }
        }
        if (part > LARGEST) return INFINITY;
        if (rounded > 1 && part < FLUSH) slack += TINY * rest;
    }
    return slack;
}

/* Whether the finite ones of `count` factors may vanish together, in some order of multiplying: an Inf among the others
 * becomes NaN then. */
static inline bool product_vanishes(int count, const double *factor) {
    double product = 1;
    for (int i = 0; i < count; i++) product *= isfinite(factor[i]) ? fmin(1, fabs(factor[i])) : 1;
    return product < TINY;
}

#endif
