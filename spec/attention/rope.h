/* SPDX-License-Identifier: Apache-2.0 */
/* The rotation that the references of rope and rope_backward share. */
#ifndef TRINE_SPEC_ROPE_H
#define TRINE_SPEC_ROPE_H

#include "spec/spec.h"

/* Rotates the pairs of every row of x, of shape b s h d, by +angle or (`sign` = -1) -angle into y.
 *
 * Bound. y = x1 cos -+ x2 sin is two products and one sum in f32: each product's rounding is at most u of its size, the
 * sum's at most u of both sizes (half of that with FMA), so 2u(|x1 cos| + |x2 sin|) and second-order terms, hence 2.5u.
 * Products below the smallest normal are off by at most 2^-150 each. Elements that belong to no pair are copied. */
static inline void rotate(trine_ref *ref, const char *input, const char *output, bool interleaved, double sign) {
    const int64_t b = trine_ref_dim(ref, "b"), s = trine_ref_dim(ref, "s"), h = trine_ref_dim(ref, "h"),
                  d = trine_ref_dim(ref, "d");
    const int64_t c = trine_ref_dim(ref, "c");
    const double *cosine = trine_ref_value(ref, "cos"), *sine = trine_ref_value(ref, "sin"),
                 *positions = trine_ref_value(ref, "positions");
    for (int64_t row = 0; row < b * s * h; row++) {
        const double *x = trine_ref_value(ref, input) + row * d;
        double *y = trine_ref_value(ref, output) + row * d;
        double *magnitude = trine_ref_magnitude(ref, output) + row * d, *slack = trine_ref_slack(ref, output) + row * d;
        const int64_t token = row / h, position = positions ? (int64_t)positions[token] : token % s;
        for (int64_t i = 2 * c; i < d; i++) y[i] = x[i];
        for (int64_t i = 0; i < c; i++) {
            const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + c;
            const double cs = cosine[position * c + i], sn = sign * sine[position * c + i];
            y[first] = x[first] * cs - x[second] * sn;
            y[second] = x[second] * cs + x[first] * sn;
            magnitude[first] = trine_pair_magnitude(x[first] * cs, x[second] * sn);
            magnitude[second] = trine_pair_magnitude(x[second] * cs, x[first] * sn);
            slack[first] = slack[second] = 2 * 0x1p-150;
        }
    }
}

#endif
