/* SPDX-License-Identifier: Apache-2.0 */
/* What gated_threshold's host side passes to its device side. */
#ifndef TRINE_SIMT_GATED_THRESHOLD_H
#define TRINE_SIMT_GATED_THRESHOLD_H

#include "backends/simt/core/params.h"

typedef struct gated_params {
    simt_rows x, y, mask, columns;
    const float *thresholds; /* NULL: there is one, the parameter */
    int32_t *counts;         /* NULL: not asked for */
    simt_divisor row_units;  /* of a row, vectors of 8 */
    int64_t units, n;
    int64_t step;       /* of thresholds, 0: one for all */
    int32_t activation; /* TRINE_ACTIVATION_* */
    float threshold;
    bool aligned; /* rows of x and y, to 16 bytes */
} gated_params;

#endif
