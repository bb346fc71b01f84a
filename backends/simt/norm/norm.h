/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of the norms and of their gradients pass to their device sides. */
#ifndef TRINE_SIMT_NORM_H
#define TRINE_SIMT_NORM_H

#include "backends/simt/core/ahead.h"
#include "backends/simt/core/columns.h"

/* Groups that whole rows fill: of `size` threads, each of which has so many vectors;
 * they take rows of more than `least` columns. */
enum { NORM_FIT_ITEMS = 8, NORM_FIT_SMALL = 128, NORM_FIT_MOST = 320 /* of a gradient */ };
typedef struct norm_fit {
    int least, size, vectors;
} norm_fit;
static inline int norm_fit_columns(const norm_fit *fit) { return fit->size * fit->vectors * NORM_FIT_ITEMS; }
/* Threads of a block, of several groups if they are parts of a warp or one. And blocks of a gradient's that an SM
 * holds: without a mean fewer registers suffice. */
#define NORM_FIT_THREADS(size) ((size) <= 32 ? NORM_FIT_SMALL : (size))
#define NORM_FIT_BLOCKS(centered, size) ((size) <= 32 ? 3 : ((centered) ? 768 : 800) / (size))

enum { NORM_FULL_THREADS = 256 }; /* of a block whose rows in shared memory are a sum */
typedef struct norm_params {
    simt_rows x, residual, weight, bias, y, residual_out, mean, rstd;
    int64_t rows, n;
    float eps, weight_offset;
    float inverse;                 /* 1/n: a division costs each warp 14 instructions */
    bool round;                    /* before the weight */
    bool f32_residual, f32_weight; /* else of x's type */
    simt_dropout dropout;
    simt_part part;
    /* of a block, where rows are in shared memory: they share what is read of the weight and the bias */
    int block_rows;
    simt_ahead ahead; /* of x */
} norm_params;

/* x, or a gradient's dx, without what the key and the stream in `philox` drop. */
typedef struct norm_mask_params {
    simt_walk walk;
    simt_dropout dropout;
    const int64_t *philox;
} norm_mask_params;

/* dweight and dbias are sums over rows. Of rows that fit a group of 512, or a ring in shared memory, each thread sums
 * up those of the rows that its group takes in turns; of others blocks of rows are read once more. Either way into
 * partial sums: `blocks` times n; NULL: not asked for. On an H200 more blocks than two for each of its 132 SMs write
 * more partial sums than they hide latency; small ones want more. */
enum { NORM_FUSED_ITEMS = 16, NORM_FUSED_MOST = 512, NORM_FUSED_TURNS = 256 /* as deep as spec/norm/norm.h allows */ };
static inline int norm_fused_blocks(int size) {
    return size == 64 ? 1024 : size == 128 ? 512 : size == 512 ? 132 : 264;
}

typedef struct norm_backward_params {
    simt_rows dy, h, weight, mean, rstd, dresidual, dx, dh;
    int64_t rows, n, turns, blocks;
    float weight_offset;
    bool f32_residual, f32_weight; /* h, dh and dresidual; the weight: else of dy's type */
    bool ask_dresidual;            /* it is prefetched into L2, a row ahead */
    simt_dropout dropout;
    float *weight_partial, *bias_partial;
    simt_ring ring;
    simt_ahead_two ahead; /* of dy and h */
} norm_backward_params;

typedef struct norm_columns_params {
    norm_backward_params norm;
    columns_params columns;
} norm_columns_params;

/* The sums of dweight and dbias over blocks, or of one of them; deep: by 32 threads for each column of a block. */
enum { NORM_DEEP_THREADS = COLUMNS_FINISH * COLUMNS_FINISH };
typedef struct norm_finish_params {
    columns_params sum[2];
} norm_finish_params;

#endif
