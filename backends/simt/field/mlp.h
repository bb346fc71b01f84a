/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of mlp_fused and of its gradient pass to their device sides. */
#ifndef TRINE_SIMT_FIELD_MLP_H
#define TRINE_SIMT_FIELD_MLP_H

#include "backends/simt/core/params.h"

enum {
    MLP_HELD = 4096, /* elements of a tile: its rows times the width */
    MLP_PAD = 4,     /* elements between a tile's columns, so that those of neighbours are in other banks */
    MLP_SIDE = 4,    /* of the square of a product that a thread has */
    MLP_GRID = 16,   /* of the threads that sum a layer's gradient */
    MLP_CHUNKS = 256 /* of rows at most, whose gradients are summed by a block each */
};

/* A tensor by its strides, of layers and rows; NULL: absent. */
typedef struct mlp_tensor {
    void *data;
    int64_t layer, row;
} mlp_tensor;

/* Weights, biases and gradients: of the first layer, of those behind it, of the output. */
enum { MLP_FIRST, MLP_BEHIND, MLP_OUTPUT, MLP_PLACES };

typedef struct mlp_params {
    mlp_tensor x, y, hidden, dy, dx, w[MLP_PLACES], b[MLP_PLACES], dw[MLP_PLACES], db[MLP_PLACES];
    int64_t r, k, h, m, o;
    int64_t width; /* of all layers in the workspace: the largest in whole steps */
    int32_t activation, output;
    /* in the workspace: of each layer `width` rows of its matrix in f32, and 0 behind their ends: with the terms of an
     * output in a column if `turned`, else in a row; then biases */
    float *copy;
    bool turned;
    /* of a gradient: of each chunk and layer sums, a matrix of `width` rows and a row */
    float *partial;
    int64_t tiles, chunk, chunks; /* chunk: its tiles */
} mlp_params;

#endif
