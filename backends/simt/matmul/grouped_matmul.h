/* SPDX-License-Identifier: Apache-2.0 */
/* What grouped_matmul's host side passes to its device side. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_H
#define TRINE_SIMT_GROUPED_MATMUL_H

#include "backends/simt/core/params.h"

enum { GROUPED_ROWS = 64, GROUPED_COLUMNS = 128, GROUPED_DEPTH = 32 }; /* of a tile, and of its steps */

/* Rows of one group; of none if `group` is -1. */
typedef struct grouped_tile {
    int32_t group, first, last;
} grouped_tile;

typedef struct grouped_params {
    simt_rows x, y;
    const void *w, *bias; /* bias: NULL if absent, as are: */
    const int32_t *offsets, *gather, *counts;
    const float *row_scale;
    grouped_tile *tile;
    int64_t w_group, w_lane, w_along, bias_group; /* strides, in elements */
    int64_t r, n, k, divide, right;               /* right: tiles along n */
    int32_t e, p, tiles, rows, activation;        /* rows: the most of a tile */
    bool across;                                  /* neighbours in w's memory are neighbours in n */
    bool x_aligned, w_aligned, y_aligned;         /* rows, to 16 bytes */
    bool wide_bias;                               /* f32 */
} grouped_params;

#endif
