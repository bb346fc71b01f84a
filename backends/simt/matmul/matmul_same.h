/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul's host side passes to its device side for the same bits on every device, and the launch. */
#ifndef TRINE_SIMT_MATMUL_SAME_H
#define TRINE_SIMT_MATMUL_SAME_H

#include <stdbool.h>
#include <stdint.h>

enum { MATMUL_SAME_SIDE = 64, MATMUL_SAME_STEP = 16, MATMUL_SAME_THREADS = 256 };

/* A batch of matrices; strides in elements. data is NULL if it is absent. */
typedef struct matmul_same_matrix {
    void *data;
    int64_t batch, row, column;
} matmul_same_matrix;

typedef struct matmul_same_params {
    matmul_same_matrix a, b, c, d;
    const void *bias;
    int64_t m, n, k, down, right; /* tiles */
    float alpha, beta;
    bool relu, wide_out, wide_bias; /* wide: f32, else of the operands' type */
} matmul_same_params;

#endif
