/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of rope and of its gradient pass to their device sides. */
#ifndef TRINE_SIMT_ROPE_H
#define TRINE_SIMT_ROPE_H

#include "params.h"

enum { ROPE_BYTES = 16, ROPE_HEADS = 2 };

typedef struct rope_params {
    void *x, *y;
    int64_t x_stride[3], y_stride[3]; /* of b, s, h */
    simt_rows cos, sin;
    const void *positions; /* NULL: the number of the token in its sequence */
    int64_t position_stride[2];
    int64_t p, c;
    int64_t pair_units, units;         /* of a row's pairs; of all */
    simt_divisor row_units, groups, s; /* with those of the elements beyond the pairs; of `heads` heads; tokens */
    float sign;
    bool interleaved, long_positions;
    bool wide; /* a unit is vectors of ROPE_BYTES, not one pair or element */
    int heads; /* of a unit: ROPE_HEADS, which share its factors, or 1: f32 loses by more */
} rope_params;

#endif
