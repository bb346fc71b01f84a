/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of l1_norm and its gradient pass to their device sides. */
#ifndef TRINE_SIMT_L1_NORM_H
#define TRINE_SIMT_L1_NORM_H

#include "backends/simt/core/columns.h"

typedef struct l1_norm_params {
    simt_rows x, y;
    const void *weight, *bias; /* NULL if absent, as are: */
    float *mean, *rmad;
    int64_t n;
    float eps;
    bool f32_weight;
    bool aligned, weight_aligned; /* rows, to 16 bytes */
} l1_norm_params;

typedef struct l1_norm_backward_params {
    columns_params columns; /* of x's rows; partial and out are told to the sums of dweight and dbias in turn */
    simt_rows dy, x, dx;
    const void *weight; /* NULL if absent */
    const float *mean, *rmad;
    float *dweight, *dbias; /* partial sums; NULL: not asked for */
    int64_t n;
    bool f32_weight;
    bool aligned, weight_aligned;
} l1_norm_backward_params;

#endif
