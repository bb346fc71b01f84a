/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of softmax, the norms and reduce_sum share: how kernels sum, and the row that is normalized. */
#ifndef TRINE_SPEC_NORM_H
#define TRINE_SPEC_NORM_H

#include <math.h>

#include "spec/spec.h"

/* Kernels sum n terms in f32 so that no term passes through more additions than this: one accumulator does up to 256
 * terms, several or blocks do more. The sum is then off by at most that many unit roundoffs of the sum of absolute
 * values (Higham 2002, section 4.2), and stays useful for any n. */
#define SUM_DEPTH(n) "min(" #n ", 256) + " #n "/1024 + 16"
static inline double sum_depth(double n) { return fmin(n, 256) + n / 1024 + 16; }

#define U 0x1p-24      /* unit roundoff of f32 */
#define FLUSH 0x1p-126 /* what is lost at most when a subnormal f32 is taken for zero */

/* Of the suite's rows: among them some of whole vectors just beyond what groups of threads hold. */
#define NORM_LENGTHS "n: 1 0 3 31 32 127 264 776 1000 1288 1544 1800 2568 4097 20008"

/* Rows whose mean square, or variance, with eps is not between these are normalized times a power of two, since f32 has
 * not the squares of all of f32: LARGE 2^-96, SMALL 2^96. Squares that are less than the smallest normal then count for
 * nothing in the one, which has some of 2^-64 and more; and of the other all are normal. Where that begins, kernels may
 * be off by a factor of 4. */
#define NORM_LARGE 0x1p126
#define NORM_SMALL 0x1p-100
/* What a mean of squares lacks at most, of elements that are multiples of 2^-149; and what one of those may be off by,
 * where it is made and where it is multiplied by that power. */
static inline double norm_squares_lost(double v) { return v < NORM_SMALL / 4 ? 0 : 3 * FLUSH; }
static inline double norm_lost(double v) { return v > NORM_LARGE / 4 ? 0x1p-149 * 0x1p96 : 0x1p-148; }

/* What a norm normalizes: h = dropout(x) + residual. */
typedef struct norm_input {
    const double *x, *residual;
    float dropout;
    uint64_t seed, offset, first; /* first: what dropout counts element 0 as */
} norm_input;

/* Element `index` of h, and what its f32 value is off by in units of U: the roundings of the product and of the sum,
 * where there are any.
 * It may have overflowed if that is beyond the largest. */
static inline double norm_h(const norm_input *in, int64_t index, double *error_out) {
    double h = in->x[index];
    *error_out = 0;
    if (in->dropout > 0) {
        h = trine_dropout_keep(in->seed, in->offset, in->first + (uint64_t)index, in->dropout)
                ? h * trine_dropout_scale(in->dropout)
                : 0;
        *error_out += trine_finite_abs(h);
    }
    if (in->residual) {
        h += in->residual[index];
        *error_out += trine_finite_abs(h);
    }
    return h;
}

/* How far round(x) may move when x does by at most e. */
static inline double round_spread(double x, double e, trine_dtype dtype) {
    const double at = trine_round(x, dtype, false);
    return fmax(trine_round(x + e, dtype, false) - at, at - trine_round(x - e, dtype, false));
}

/* Column j's factor. */
static inline double norm_weight(const double *weight, int64_t j, float offset) {
    return weight ? weight[j] + offset : 1;
}

#endif
