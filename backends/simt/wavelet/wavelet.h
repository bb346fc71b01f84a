/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of dwt and idwt pass to their device sides. */
#ifndef TRINE_SIMT_WAVELET_H
#define TRINE_SIMT_WAVELET_H

#include "backends/simt/core/params.h"

enum {
    WAVELET_ROWS = 8,    /* of a block's tile, */
    WAVELET_COLUMNS = 32 /* places in a row of it: coefficients, or pairs of elements */
};

/* Strides in elements. */
typedef struct wavelet_params {
    double tap[2][16];
    void *x, *y;
    int64_t n, h, w, k, p, q;
    int64_t x_step[3], y_step[4];
    int64_t down, across; /* tiles */
    int32_t taps, edge;
} wavelet_params;

#endif
