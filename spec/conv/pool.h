/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of pool2d and its gradient share: windows.
 *
 * Bound of a mean, with u the accumulator's unit roundoff: a sum of count elements in any order is off by (count - 1) u
 * of the sum of absolute values; the division, or a product with 1/count that is rounded itself, by two more, and one
 * is for second order: (count + 2) u of the mean of |x|. Rounding to T the result instead of the mean itself is within
 * one more. A result below T's normal ones is off by half its smallest, which the slack has twice. */
#ifndef TRINE_SPEC_POOL_H
#define TRINE_SPEC_POOL_H

#include "spec/spec.h"

#define POOL_KERNEL(field, words) PARAM(field, I32, .values = "2 1 3 5", .min = 1, .max = 65536, .doc = words)
#define POOL_STRIDE(field, kernel, words) \
    PARAM(field, I32, .values = "0 1 2 3", .unset = kernel, .min = 0, .max = 65536, .doc = words)
#define POOL_PAD(field, words) PARAM(field, I32, .values = "0 1 2 5", .min = 0, .max = 65536, .doc = words)
#define POOL_DILATION(field, words) \
    PARAM(field, I32, .values = "1 2 3", .fallback = 1, .min = 0, .max = 65536, .doc = words)

typedef struct pool_axis {
    int64_t in, kernel, out, stride, pad, dilation;
} pool_axis;

typedef struct pool {
    int64_t n, c;
    pool_axis h, w;
    const double *x;
} pool;

/* Of the arguments of either op. */
#define POOL_OF(ref, args) \
    { .n = trine_ref_dim(ref, "n"), \
      .c = trine_ref_dim(ref, "c"), \
      .h = { trine_ref_dim(ref, "h"), (args)->kernel_h, trine_ref_dim(ref, "p"), \
             (args)->stride_h ? (args)->stride_h : (args)->kernel_h, (args)->pad_top, (args)->dilation_h }, \
      .w = { trine_ref_dim(ref, "w"), (args)->kernel_w, trine_ref_dim(ref, "q"), \
             (args)->stride_w ? (args)->stride_w : (args)->kernel_w, (args)->pad_left, (args)->dilation_w }, \
      .x = trine_ref_value(ref, "x") }

/* Where element (i, j) of window (p, q) is in its image; -1: beyond its edges. */
static inline int64_t pool_place(const pool *a, int64_t p, int64_t q, int64_t i, int64_t j) {
    const int64_t row = p * a->h.stride - a->h.pad + i * a->h.dilation,
                  column = q * a->w.stride - a->w.pad + j * a->w.dilation;
    return row >= 0 && row < a->h.in && column >= 0 && column < a->w.in ? row * a->w.in + column : -1;
}

/* The place of the largest of a window, of the first of equal ones and of the last of several NaN; -1: none. How many
 * are in x. */
static inline int64_t pool_largest(const pool *a, int64_t n, int64_t p, int64_t q, int64_t c, int64_t *count_out) {
    int64_t best = -1;
    double most = -INFINITY;
    *count_out = 0;
    for (int64_t i = 0; i < a->h.kernel; i++)
        for (int64_t j = 0; j < a->w.kernel; j++) {
            const int64_t at = pool_place(a, p, q, i, j);
            if (at < 0) continue;
            const double x = a->x[(n * a->h.in * a->w.in + at) * a->c + c];
            if (x > most || isnan(x) || best < 0) most = x, best = at;
            ++*count_out;
        }
    return best;
}

#endif
