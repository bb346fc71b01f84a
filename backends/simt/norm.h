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

/* dweight and dbias are sums over rows. Of rows that fit a group of 512, each thread sums up those of the rows that its group takes in turns; of longer ones
 * blocks of rows are read once more. Either way into partial sums: `blocks` times n; NULL: not asked for. */
enum { NORM_FUSED_ITEMS = 16, NORM_FUSED_MOST = 512, NORM_FUSED_BLOCKS = 512, NORM_FUSED_TURNS = 256 /* as deep as spec/norm.h allows */ };

typedef struct norm_backward_params {
    simt_rows dy, h, weight, mean, rstd, dresidual, dx, dh;
    int64_t rows, n, turns, blocks;
    float weight_offset;
    bool wide;
    simt_dropout dropout;
    float *weight_partial, *bias_partial;
} norm_backward_params;

typedef struct norm_columns_params {
    norm_backward_params norm;
    columns_params columns;
} norm_columns_params;

#endif
