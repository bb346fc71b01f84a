/* SPDX-License-Identifier: Apache-2.0 */
/* What topk's host side passes to its device side. */
#ifndef TRINE_SIMT_TOPK_H
#define TRINE_SIMT_TOPK_H

#include "backends/simt/core/params.h"

enum { TOPK_MOST = 2048 /* of a row, which a block sorts */ };

typedef struct topk_params {
    simt_rows x, values, indices;
    int32_t n, k;
    bool smallest, long_indices;
} topk_params;

#endif
