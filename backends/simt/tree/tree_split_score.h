/* SPDX-License-Identifier: Apache-2.0 */
/* What tree_split_score's host side passes to its device side. */
#ifndef TRINE_SIMT_TREE_SPLIT_SCORE_H
#define TRINE_SIMT_TREE_SPLIT_SCORE_H

#include "backends/simt/core/params.h"

enum { SPLIT_SUMS = 4 /* gradients that a thread adds up at a time */, SPLIT_CHUNK = 1024, SPLIT_BLOCKS = 2048 };

/* `data` of tensors and pointers are NULL of what there is not. A key is a node and a bin, or none: node (b + 1) + bin,
 * that of samples without a bin being b. */
typedef struct split_params {
    simt_rows gradients;
    const void *bins;
    const int32_t *nodes;
    const float *hessians, *feature_weights;
    const uint8_t *categorical;
    void *scores, *left_sums, *left_weights, *left_counts;
    int64_t scores_stride[2], sums_stride[3], weights_stride[2], counts_stride[2]; /* of nodes, features and bins */
    float *sums;     /* in the workspace: [chunks][f][keys][d+1], hessians last */
    int32_t *counts; /* [chunks][f][keys] */
    int64_t bins_row, s, f, d, m, b, keys, tiles, parts, chunks, chunk;
    float regularization;
    int32_t min_count;
    bool wide, cosine, gain, missing_left; /* wide: bins are i32 */
} split_params;

#endif
