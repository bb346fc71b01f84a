/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of ops on bands of coefficients pass to their device sides. */
#ifndef TRINE_SIMT_THRESHOLD_H
#define TRINE_SIMT_THRESHOLD_H

#include "backends/simt/core/params.h"

enum {
    THRESHOLD_PART = 4096, /* elements of a band that a block sums */
    SURE_PART = 16384,     /* and of sure_risk, */
    SURE_THRESHOLDS = 8    /* of so many thresholds */
};

/* A tensor [b] [h] w; strides in elements. */
typedef struct threshold_view {
    void *data; /* NULL: absent */
    int64_t band, row, step;
} threshold_view;

typedef struct threshold_params {
    threshold_view x, y, dy; /* y: or dx */
    const void *threshold;
    void *to;        /* dthreshold, or risk */
    double *partial; /* sums of each band's parts; of sure_risk, of each threshold */
    int64_t threshold_step, to_band, to_step;
    int64_t b, h, w, g, parts;
    simt_divisor row, band; /* of w and of h w elements, at least 1 */
    double variance;
} threshold_params;

#endif
