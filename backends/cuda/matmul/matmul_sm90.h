/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul's host side passes to the kernels for sm_90a. */
#ifndef TRINE_CUDA_MATMUL_SM90_H
#define TRINE_CUDA_MATMUL_SM90_H

#include "matmul.h"
#include "backends/cuda/tile/map.h"

/* x has the lanes of which a tile takes 128, y those of which it takes N. */
typedef struct matmul_sm90_params {
    tensor_map x, y;
    matmul_target to;
    int64_t m, n, k;
    int32_t depth;                /* steps of 128 bytes of k */
    int32_t down, right, tiles;   /* in x's lanes, in y's; of all batches. Persistent: pairs of tiles in x's lanes */
    int32_t rows;                 /* of a tile: the lanes of x that are its own, of 128 that are multiplied */
    int32_t columns, stages;      /* of a pair's tiles, and of its ring */
    int32_t x_batches, y_batches; /* 0: one for all */
    int32_t alone, parts;      /* of pairs: tiles that one has alone, and pairs that share k of each other; 1: none */
    uint64_t *tickets, ticket; /* by which those know that sums are there */
    void *sums;                /* that they leave for each other */
    matmul_operand x_hand, y_hand; /* those that copies of boxes cannot read; data NULL: they can */
    bool by_hand;                  /* any of them */
    bool whole;                    /* the rows of d, and of c, are whole pieces of 16 bytes */
    bool plain;                    /* d is alpha scales s alone, and scales of columns are there for float8 alone */
    bool swapped;                  /* x is b, y is a */
} matmul_sm90_params;

enum {
    MATMUL_SM90_THREADS = 3 * 128,
    MATMUL_SM90_MEMORY = 226 << 10, /* bytes for ends and stages */
    MATMUL_SM90_ROWS = 128,
    MATMUL_SM90_NARROW = 64, /* the least columns of a pair's tile; it has these and a multiple of 16 more */
    MATMUL_SM90_WIDE = 256,  /* the most */
    MATMUL_SM90_LEAST = 96,  /* rows of a tile */
    MATMUL_SM90_SPLIT = 8,   /* blocks that may share a tile */
    MATMUL_SM90_BARRIER = 4, /* of all consumers */
    MATMUL_SM90_CHUNK = 32,  /* columns of a tile that go through shared memory at once */
    /* bytes for that of pairs: 16 rows of 128 bytes for each warp of the consumers, twice, and 256 bytes of scales and
     * the bias */
    MATMUL_SM90_ENDS = 34 << 10,
};

/* Of tiles of 128 by n: the bytes of their sums, which blocks that share k send each other, of y's part of 128 bytes of
 * k, whose consecutive lanes come by 64, and stages of as much. */
#define MATMUL_SM90_SHARED(n) (MATMUL_SM90_ROWS * (n) * 4)
#define MATMUL_SM90_Y(n, across) (((across) ? ((n) + 63) / 64 * 64 : (n)) * 128)
#define MATMUL_SM90_STAGE(n, across) (MATMUL_SM90_ROWS * 128 + MATMUL_SM90_Y(n, across))
#define MATMUL_SM90_STAGES(n, across) ((MATMUL_SM90_MEMORY - MATMUL_SM90_ENDS) / MATMUL_SM90_STAGE(n, across))
#define MATMUL_SM90_SPLIT_STAGES(n) ((MATMUL_SM90_MEMORY - MATMUL_SM90_SHARED(n)) / MATMUL_SM90_STAGE(n, false))

/* The bytes of all shared memory of a pipeline: sums, stages, barriers, and of split the one of sums and scales; of
 * pairs, for tiles of any width. */
static inline int matmul_sm90_bytes(int n, bool pairs) {
    return pairs
               ? MATMUL_SM90_MEMORY + MATMUL_SM90_STAGES(MATMUL_SM90_NARROW, false) * 16
               : MATMUL_SM90_SHARED(n) + 16 + n * 4 + MATMUL_SM90_SPLIT_STAGES(n) * (MATMUL_SM90_STAGE(n, false) + 16);
}

#endif
