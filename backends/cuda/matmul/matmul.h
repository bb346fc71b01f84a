/* SPDX-License-Identifier: Apache-2.0 */
/* What matmul's host side passes to its device sides. */
#ifndef TRINE_CUDA_MATMUL_H
#define TRINE_CUDA_MATMUL_H

#include "backends/simt/matmul/scales.h"

#include <stdbool.h>
#include <stdint.h>

/* Lanes are a's rows and b's columns; strides in elements. */
typedef struct matmul_operand {
    const void *data;
    int64_t batch, lane, along;
    bool across; /* lanes are consecutive, not elements of k */
    /* 4 elements that are consecutive in memory and begin at a multiple of 4 are one aligned access;
     * for copies of 16 bytes, as many */
    bool wide;
} matmul_operand;

/* Element types of c, d and the bias; products of i8 have i32 and those of f64 have f64, and need no code. */
typedef enum matmul_type { MATMUL_F32, MATMUL_F16, MATMUL_BF16 } matmul_type;

/* d = act(alpha scales s + beta c + bias), and where that goes. */
typedef struct matmul_target {
    void *d;
    const void *c, *bias; /* NULL: absent */
    int64_t d_batch, d_row, c_batch, c_row, c_column;
    float alpha, beta;
    int32_t activation;
    matmul_type type, bias_type;
    bool plain; /* alpha scales s alone */
    bool wide;  /* 4 elements of a row of d, and of c, are one aligned access */
    simt_scales rows, columns;
} matmul_target;

typedef struct matmul_params {
    matmul_operand a, b;
    matmul_target to;
    int64_t m, n, k;
    int64_t down, right; /* tiles in m and n */
    /* elements of k in a part of it; sums of parts are targets one after the other, each with so many batches */
    int64_t batches, depth;
    int64_t tiles; /* of all parts */
} matmul_params;

/* A product in which one operand has few lanes. */
typedef struct matmul_skinny_params {
    matmul_operand many, few;
    matmul_target to;
    int64_t m, n, k;
    int64_t lanes, count, right; /* lanes of either, and blocks that share those of `many` */
    int64_t batches, depth;      /* as above */
    bool whole;                  /* all vectors of 16 bytes are aligned */
    bool swapped;                /* `many` is b */
} matmul_skinny_params;

/* A product of weights by at most MATMUL_MMA_FEW_MOST tokens, by mma.sync. */
typedef struct matmul_mma_few_params {
    matmul_operand many, few; /* weights, tokens */
    matmul_target to;
    int64_t m, n, k;
    int64_t lanes, count, right; /* of weights; tokens; blocks that share the weights */
    int64_t batches, depth;      /* as above */
    int32_t beside, groups;      /* warps that share the tokens, and how many times as many a block has */
    bool whole;                  /* pieces of 16 bytes of weights are aligned */
    bool swapped;                /* weights are b */
} matmul_mma_few_params;

/* Sums of parts of k, to be added in their order. */
typedef struct matmul_add_params {
    const void *from;
    matmul_target to;
    int32_t m, n, units; /* units of 4 columns in a row */
    int32_t rows, parts; /* rows of all batches */
    bool shared;         /* four threads share a unit */
} matmul_add_params;

/* One operand brought to lanes of consecutive elements. */
typedef struct matmul_pack_params {
    matmul_operand from;
    void *to;
    int64_t lanes, depth, batches; /* of `from` */
    int64_t pitch;                 /* elements from lane to lane; lanes * pitch from batch to batch */
    int64_t blocks_along, blocks_lane;
} matmul_pack_params;

enum {
    MATMUL_THREADS = 256, /* of a block of the kernels without tensor cores */
    MATMUL_SIDE = 128,    /* of their tiles */
    /* tile rows that are walked together, so that their part of a stays in L2 */
    MATMUL_GROUP = 8,
    MATMUL_PACK_SIDE = 64,
    MATMUL_F32_DEPTH = 16,     /* elements of k in a slice for tiles of f32 */
    MATMUL_F32_PAD = 4,        /* lanes */
    MATMUL_MMA_STAGES = 3,     /* of a block's ring for mma.sync: 128 bytes of k of a tile's lanes */
    MATMUL_MMA_FEW_STAGES = 3, /* the same of tokens, for each group of warps */
    MATMUL_MMA_FEW_MOST = 32,  /* tokens */
    MATMUL_F64_DEPTH = 16,     /* the same of f64 on tensor cores */
    MATMUL_SKINNY_FEW = 8,     /* lanes that are few */
    MATMUL_SKINNY_LINE = 128,  /* bytes of consecutive lanes that a block takes */
    MATMUL_SKINNY_LANES = 32,  /* lanes that an SM's blocks take if elements of k are consecutive */
    MATMUL_SKINNY_HELD = 2     /* blocks of which an SM is full, where there are more than one for each */
};

/* Of weights by few tokens: a warp's lanes, and the most warps of a block; `across` as in matmul_operand. */
#define MATMUL_MMA_FEW_LANES(across) ((across) ? 64 : 16)
#define MATMUL_MMA_FEW_WARPS(across) ((across) ? 8 : 16)

/* Threads of a block, if `held` of them fill an SM. */
#define MATMUL_SKINNY_THREADS(few, across, held) (((few) == 4 && !(across) ? 256 : 512) / (held))

#endif
