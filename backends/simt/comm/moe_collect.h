/* SPDX-License-Identifier: Apache-2.0 */
/* What moe_collect's host side passes to its device side. */
#ifndef TRINE_SIMT_MOE_COLLECT_H
#define TRINE_SIMT_MOE_COLLECT_H

#include "backends/simt/core/params.h"
#include "rows.h"

typedef struct collect_params {
    simt_rows places, weights, y;
    simt_rows rows;     /* of each slot of this rank's, in the workspace */
    int32_t *own, *all; /* places: of this rank without gaps, and of every rank; -1 for those that are none */
    int32_t *pairs;     /* rows from each rank to each */
    moved_rows *moves;
    simt_divisor k, row_units; /* of y, vectors of 8 */
    int64_t units, n;
    int32_t slots, p, rank, ranks;
    bool aligned; /* rows of y and of the workspace, to 16 bytes */
} collect_params;

#endif
