/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of the norms and of their gradients pass to their device sides. */
#ifndef TRINE_SIMT_NORM_H
#define TRINE_SIMT_NORM_H

#include "columns.h"

typedef struct norm_params {
    simt_rows x, residual, weight, bias, y, residual_out, mean, rstd;
    int64_t rows, n;
    float eps, weight_offset;
    bool round; /* before the weight */
    bool wide;
    simt_dropout dropout;
} norm_params;

typedef struct norm_backward_params {
    simt_rows dy, h, weight, mean, rstd, dresidual, dx, dh;
    int64_t rows, n;
    float weight_offset;
    bool wide;
    simt_dropout dropout;
} norm_backward_params;

/* The sums over rows; a NULL partial is not asked for. */
typedef struct norm_columns_params {
    norm_backward_params norm;
    columns_params columns;
    float *weight_partial, *bias_partial;
} norm_columns_params;

#endif
