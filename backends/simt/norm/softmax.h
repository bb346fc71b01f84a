/* SPDX-License-Identifier: Apache-2.0 */
/* What softmax's host side, and that of its gradient, pass to their device sides. */
#ifndef TRINE_SIMT_SOFTMAX_H
#define TRINE_SIMT_SOFTMAX_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/params.h"

typedef struct softmax_params {
    simt_rows x, y;
    int64_t rows, s, n; /* rows of all; of one matrix; elements of a row */
    /* exp(scale x - max(scale x)) is taken as 2^(spread (f x - max(f x))): the difference before the product loses
     * nothing to cancellation. f is half the sign of scale, so that the difference does not overflow, spread 2 |scale|
     * log2(e); for a scale of 0 they are 0 and 1. */
    float f, spread;
    float scale; /* as it was given */
    bool causal;
    simt_part part;
    simt_ahead ahead; /* of x */
} softmax_params;

typedef struct softmax_backward_params {
    simt_rows y, dy, dx;
    int64_t rows, s, n;
    float scale;
    bool causal;
    simt_ring ring;
    simt_ahead_two ahead; /* of y and dy */
} softmax_backward_params;

#endif
