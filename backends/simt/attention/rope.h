/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of rope and of its gradient pass to their device sides. */
#ifndef TRINE_SIMT_ROPE_H
#define TRINE_SIMT_ROPE_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/params.h"

enum { ROPE_VECTOR = 4 };

typedef struct rope_params {
    void *x, *y;
    int64_t x_stride[3], y_stride[3]; /* of b, s, h */
    simt_rows cos, sin;
    const void *positions; /* NULL: the number of the token in its sequence */
    int64_t position_stride[2];
    int64_t p, c, d;
    /* of a row's pairs; of all. A unit is two vectors, or elements, of one or more heads, which share its factors */
    int64_t pair_units, units;
    int64_t gap; /* between the two of a unit beyond the pairs */
    /* with those of the elements beyond the pairs; of as many heads as a unit has; tokens */
    simt_divisor row_units, groups, s;
    float sign;
    bool interleaved, long_positions;
    simt_ahead ahead; /* of x */
} rope_params;

#endif
