/* SPDX-License-Identifier: Apache-2.0 */
/* What block_mean's host side passes to its device side. */
#ifndef TRINE_SIMT_BLOCK_MEAN_H
#define TRINE_SIMT_BLOCK_MEAN_H

#include "backends/simt/core/params.h"

enum { MEAN_COLUMNS = 256, MEAN_LINES = 8 }; /* of a block of threads: a line has every eighth row */

typedef struct block_mean_params {
    simt_rows x, y;
    int64_t s, n, blocks, size, tiles;
    bool wide;
} block_mean_params;

#endif
