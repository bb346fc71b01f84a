/* SPDX-License-Identifier: Apache-2.0 */
/* What hadamard's host side passes to its device side. */
#ifndef TRINE_SIMT_HADAMARD_H
#define TRINE_SIMT_HADAMARD_H

#include "backends/simt/core/params.h"

enum {
    HADAMARD_BLOCK = 8192, /* elements that a block has at most, */
    HADAMARD_SHARE = 2048, /* and of short rows together */
    HADAMARD_ORDER = 28    /* of a matrix besides Sylvester's, at most */
};

/* Rows are `parts` parts of n = order size elements, and each part is transformed by itself. */
typedef struct hadamard_params {
    simt_rows x, y;
    int64_t items;             /* parts of all rows */
    simt_divisor parts, units; /* of a row; of a part, vectors of 8 */
    int32_t n, size, stages;   /* size = 2^stages */
    int32_t order, together;   /* together: parts in a block */
    float scale;
    bool x_aligned, y_aligned;
    uint32_t signs[HADAMARD_ORDER]; /* of the rows of the matrix of that order: a bit is set where it has -1 */
} hadamard_params;

#endif
