/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of d by which matmul's kernels for any architecture multiply, as both sides know them. */
#ifndef TRINE_CUDA_MATMUL_TILES_H
#define TRINE_CUDA_MATMUL_TILES_H

#include "matmul.h"

/* Rows and columns first. Last, as measured on an H200: blocks of which an SM is full, what the device multiplies in a
 * second where all are, and by how much longer a block takes that has an SM alone. */

/* By mma.sync: warps below each other and beside each other. Rates are those of 16-bit elements, of the smaller tiles
 * as estimated. */
#define MATMUL_MMA_TILES(X) \
    X(128, 256, 2, 4, 1, 500e12, 0) X(128, 128, 2, 2, 2, 410e12, 0.2) X(64, 128, 2, 2, 3, 330e12, 0.6)
/* Of f32: groups of threads that share k, and stages of each one's ring. */
#define MATMUL_F32_TILES(X) X(128, 128, 1, 4, 2, 51e12, 0.05) X(64, 128, 4, 3, 1, 48e12, 0) X(32, 64, 8, 3, 1, 41e12, 0)
/* Of f64: rows and columns of a warp, groups and stages. */
#define MATMUL_F64_TILES(X) \
    X(128, 128, 64, 32, 1, 4, 1, 58e12, 0) \
    X(64, 64, 32, 32, 1, 4, 3, 54e12, 0.28) \
    X(64, 32, 32, 32, 4, 4, 1, 42e12, 0) X(16, 64, 16, 16, 1, 4, 4, 17e12, 0.28) X(64, 16, 16, 16, 1, 4, 4, 17e12, 0.28)

/* Shared memory of a block: the ring, of 128 bytes of k of the tile's lanes. */
#define MATMUL_MMA_BYTES(ROWS, COLUMNS) (MATMUL_MMA_STAGES * ((ROWS) + (COLUMNS)) * 128)
/* A ring for each of the groups, or all their sums. */
#define MATMUL_F32_RING(ROWS, COLUMNS, STAGES) ((STAGES) * MATMUL_F32_DEPTH * ((ROWS) + (COLUMNS) + 2 * MATMUL_F32_PAD))
#define MATMUL_F32_BYTES(ROWS, COLUMNS, GROUPS, STAGES) \
    (4 * (GROUPS) * MATMUL_LARGER(MATMUL_F32_RING(ROWS, COLUMNS, STAGES), (ROWS) * (COLUMNS)))
/* The same of f64, in whose stages an operand's rows may be padded, and in whose sums they are. */
#define MATMUL_F64_RING(ROWS, COLUMNS, STAGES) ((STAGES) * (((ROWS) + (COLUMNS)) * 128 + 1024))
#define MATMUL_F64_BYTES(ROWS, COLUMNS, GROUPS, STAGES) \
    ((GROUPS) * MATMUL_LARGER(MATMUL_F64_RING(ROWS, COLUMNS, STAGES), (ROWS) * ((COLUMNS) + 4) * 8))
#define MATMUL_LARGER(x, y) ((x) > (y) ? (x) : (y))

#endif
