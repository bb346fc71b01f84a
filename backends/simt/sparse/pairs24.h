/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of prune24, pack24 and unpack24 pass to their device sides. */
#ifndef TRINE_SIMT_PAIRS24_H
#define TRINE_SIMT_PAIRS24_H

#include "backends/simt/core/params.h"

/* from, to: the matrix; values, indices: what is packed; mask: of prune24. `data` is NULL of what there is not. */
typedef struct pairs24_params {
    simt_rows from, to, values, indices, mask;
    simt_divisor row_units; /* of 8 elements */
    int64_t units, n;
    bool checked; /* groups of more than two are NaN */
    bool aligned; /* rows, to 16 bytes */
} pairs24_params;

#endif
