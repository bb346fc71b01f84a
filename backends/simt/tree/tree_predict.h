/* SPDX-License-Identifier: Apache-2.0 */
/* What tree_predict's host side passes to its device side. */
#ifndef TRINE_SIMT_TREE_PREDICT_H
#define TRINE_SIMT_TREE_PREDICT_H

#include "backends/simt/core/params.h"

enum { TREE_ROWS = 32, TREE_LEVELS = 31, TREE_FEATURES = 128 /* of rows that a block holds */ };

/* `data` of tensors and pointers are NULL of what there is not. */
typedef struct tree_params {
    simt_rows x, children, leaves, y, indices;
    const int32_t *features, *roots, *targets;
    const float *thresholds, *base;
    const uint8_t *rules;
    int64_t r, f, n, t, l, v, o, levels;
    int32_t rows; /* of a block: 1 or TREE_ROWS; the other threads have other trees */
} tree_params;

#endif
