/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of dwt and idwt pass to their device sides. */
#ifndef TRINE_SIMT_WAVELET_H
#define TRINE_SIMT_WAVELET_H

#include "backends/simt/core/params.h"

enum {
    WAVELET_ROWS = 8,     /* of a block's tile, each of 32 threads, */
    WAVELET_COLUMNS = 32, /* places in a row of it: coefficients, or pairs of elements */
    WAVELET_MOST = 16     /* at most */
};

/* Strides in elements. */
typedef struct wavelet_params {
    double tap[2][WAVELET_MOST];
    void *x, *y;
    int64_t n, h, w, k, p, q;
    int64_t x_step[3], y_step[4];
    int64_t tiles;
    simt_divisor down, across; /* tiles of an image */
    int32_t taps, edge;
} wavelet_params;

#endif
