/* SPDX-License-Identifier: Apache-2.0 */
/* What grouped_matmul_weights's host side passes to its device side. */
#ifndef TRINE_SIMT_GROUPED_MATMUL_WEIGHTS_H
#define TRINE_SIMT_GROUPED_MATMUL_WEIGHTS_H

#include "backends/simt/core/params.h"

enum { WEIGHTS_ROWS = 64, WEIGHTS_COLUMNS = 128, WEIGHTS_DEPTH = 32 }; /* of a tile of dw, and of its steps */

typedef struct weights_params {
    simt_rows dy, x, dw; /* dw: `batch` is of groups */
    void *dbias;         /* NULL if absent, as is: */
    const int32_t *gather;
    const int32_t *offsets;
    int64_t dbias_group; /* stride, in elements */
    int64_t r, n, k, divide;
    int64_t down, right; /* tiles along n and k */
    int32_t e, p;
    bool dy_aligned, x_aligned, dw_aligned; /* rows, to 16 bytes */
    bool wide_bias;                         /* f32 */
} weights_params;

#endif
