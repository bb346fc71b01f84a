/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of hash_encode and of its gradient pass to their device sides. */
#ifndef TRINE_SIMT_FIELD_GRID_H
#define TRINE_SIMT_FIELD_GRID_H

#include "backends/simt/core/params.h"
#include "spec/field/grid.h"

typedef struct grid_params {
    simt_rows x, table, y, dx; /* y: n of l rows; or dy; dx: NULL: not wanted */
    const void *offsets;
    int64_t n, e, f, l;
    simt_divisor places; /* n, at least 1 */
    float scale[GRID_LEVELS];
    /* of a gradient, in the workspace: of each level, place and corner the row of the table, e for none, and what is
     * added there */
    int32_t *row;
    float *part;
    bool wide_offsets, smooth;
} grid_params;

#endif
