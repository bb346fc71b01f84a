/* SPDX-License-Identifier: Apache-2.0 */
/* What topk's host side passes to its device side. */
#ifndef TRINE_SIMT_TOPK_H
#define TRINE_SIMT_TOPK_H

#include "backends/simt/core/params.h"

enum { TOPK_MOST = 2048 /* of a row, which a block sorts */, TOPK_TEAM = 32 /* threads that sort a short row */ };
/* Keys that a thread may have. */
enum { TOPK_FEW = 4, TOPK_SOME = 16, TOPK_MANY = 32 };

typedef struct topk_params {
    simt_rows x, values, indices;
    int64_t rows;
    uint64_t *from, *to; /* the keys that are left of each row, n of them and `parts` times k */
    int32_t n, k, parts; /* parts of a row, each a block's */
    bool smallest, long_indices;
} topk_params;

#endif
