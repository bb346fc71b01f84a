/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of softmax_masked and its gradient pass to their device sides. */
#ifndef TRINE_SIMT_SCORES_H
#define TRINE_SIMT_SCORES_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/params.h"

/* Where rows of scores, [b] [h] sq sk, are in a tensor: strides, in elements. */
typedef struct scores_tensor {
    void *data; /* NULL: absent */
    int64_t batch, head, row;
    int64_t step; /* along rows: 1, or 0 if the tensor is broadcast along them */
} scores_tensor;

/* Rows of all, elements of one, and what a row's number is divided by. */
typedef struct scores_shape {
    int64_t rows, n;
    simt_divisor heads, queries;
    bool causal;
} scores_shape;

typedef struct softmax_masked_params {
    scores_shape shape;
    scores_tensor x, mask, bias, y;
    /* as of softmax_params; with bias f is the scale, and scores are what they are */
    float f, spread;
    bool f32_bias;
    simt_ahead ahead; /* of x */
} softmax_masked_params;

typedef struct softmax_masked_backward_params {
    scores_shape shape;
    scores_tensor y, dy, dx, dbias;
    float scale;
    bool f32_bias;
    simt_ahead_two ahead; /* of y and dy */
} softmax_masked_backward_params;

#endif
