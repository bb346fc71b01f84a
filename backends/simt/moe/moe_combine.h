/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_combine's host side passes to its device side. */
#ifndef TRINE_SIMT_MOE_COMBINE_H
#define TRINE_SIMT_MOE_COMBINE_H

#include "backends/simt/core/params.h"

typedef struct combine_params {
    simt_rows x, places, weights, y;
    simt_divisor row_units; /* of y, vectors of 8 */
    int64_t units, p, n;
    int32_t k;
    bool aligned; /* rows of x and y, to 16 bytes */
} combine_params;

#endif
