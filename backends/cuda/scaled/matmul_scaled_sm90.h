/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul_scaled's host side passes to the kernels for sm_90a. */
#ifndef TRINE_CUDA_MATMUL_SCALED_SM90_H
#define TRINE_CUDA_MATMUL_SCALED_SM90_H

#include "backends/cuda/matmul/rows_sm90.h"
#include "backends/simt/scaled/matmul_scaled.h"

typedef struct scaled_sm90_params {
    tensor_map a, b;
    scaled_params of;
    bool boxes; /* of a and b: both begin at 16 bytes */
    bool whole; /* rows of d are whole pieces of 16 bytes */
} scaled_sm90_params;

/* Bytes of a stage's scales: of a's rows, and of b's or of its blocks of 128, for each part of 128 elements of k. */
#define SCALED_SM90_SCALES(n, part, blocks) (128 / (part) * (ROWS_SM90_ROWS + ((blocks) ? 128 : (n))) * 4)

#endif
