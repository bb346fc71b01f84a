/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul's host side passes to the kernels for sm_90a. */
#ifndef TRINE_CUDA_MATMUL_SM90_H
#define TRINE_CUDA_MATMUL_SM90_H

#include "matmul.h"
#include "tile/map.h"

/* x has the lanes of which a tile takes 128, y those of which it takes N. */
typedef struct matmul_sm90_params {
    tensor_map x, y;
    matmul_target to;
    int64_t m, n, k;
    int32_t depth;                 /* steps of 128 bytes of k */
    int32_t down, right, tiles;    /* in x's lanes, in y's; of all batches. Persistent: pairs of tiles in x's lanes */
    int32_t x_batches, y_batches;  /* 0: one for all */
    matmul_operand x_hand, y_hand; /* those that copies of boxes cannot read; data NULL: they can */
    bool by_hand;                  /* any of them */
    bool whole;                    /* the rows of d, and of c, are whole pieces of 16 bytes */
    bool plain;                    /* d is alpha scales s alone, and scales of columns are there for float8 alone */
    bool swapped;                  /* x is b, y is a */
} matmul_sm90_params;

enum {
    MATMUL_SM90_THREADS = 3 * 128,
    MATMUL_SM90_MEMORY = 192 << 10, /* bytes for the stages */
    MATMUL_SM90_ROWS = 128,
    MATMUL_SM90_CHUNK = 32,      /* columns of a tile that go through shared memory at once */
    MATMUL_SM90_ENDS = 34 << 10, /* bytes for that: 16 rows of 128 bytes for each warp of the consumers, twice, and 256 bytes of the bias */
};

/* The bytes of all shared memory of a pipeline whose tiles are 128 by n: ends, stages, barriers. */
static inline int matmul_sm90_bytes(int n) {
    const int stages = MATMUL_SM90_MEMORY / ((MATMUL_SM90_ROWS + n) * 128);
    return MATMUL_SM90_ENDS + stages * ((MATMUL_SM90_ROWS + n) * 128 + 16);
}

#endif
