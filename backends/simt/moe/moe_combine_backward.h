/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_combine_backward's host side passes to its device side. */
#ifndef TRINE_SIMT_MOE_COMBINE_BACKWARD_H
#define TRINE_SIMT_MOE_COMBINE_BACKWARD_H

#include "backends/simt/reduce/scatter.h"

enum { COMBINE_LANES = 32 }; /* threads of a slot */

typedef struct combine_backward_params {
    simt_rows dy, x, places, weights, dx, dweights;
    simt_divisor k, row_units; /* row_units: of dx, vectors of 8 */
    int64_t units, p, n;
    int32_t slots;
    /* in the workspace: the place of each slot, -1 if it has none; of each place a slot that names it, and are there
     * more? Are there more of any? */
    int32_t *place, *owner, *several, *any;
    scatter_params sort; /* of slots by their places */
    bool aligned;        /* rows of dy, x and dx, to 16 bytes */
} combine_backward_params;

#endif
