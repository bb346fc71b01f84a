/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of attention and its gradient pass to their device sides. */
#ifndef TRINE_HIP_ATTENTION_H
#define TRINE_HIP_ATTENTION_H

#include "backends/simt/attention/attention_options.h"
#include "backends/hip/tile/operand.h"
#include "backends/hip/tile/order.h"

enum { ATTENTION_WIDEST = 256 /* head */ };

/* Of a block for elements of `size` bytes and heads of up to `d`: two waves on each SIMD, if half of its registers
 * suffice a wave. And whether the forward kernel has waves of 32 queries, not only of 16. */
#define ATTENTION_THREADS(size, d) ((size) == 2 && (d) < 256 ? 512 : 256)
#define ATTENTION_WIDE(size, d) ((size) == 2 && (d) <= 128)

/* [b] s h d, the last dimension contiguous. */
typedef struct attention_rows {
    void *data; /* NULL: absent */
    int64_t batch, row, head;
    bool wide; /* every row begins at a multiple of 16 bytes, and a tile of them spans less than 2^31 */
} attention_rows;

/* lse, and what else there is one of for each query: [b] h sq. */
typedef struct attention_column {
    float *data; /* NULL: absent */
    int64_t batch, head;
} attention_column;

typedef struct attention_params {
    attention_rows q, k, v, o;
    attention_column lse;
    const int32_t *cu_q, *cu_k;     /* NULL, or where each sequence begins */
    const int32_t *used_q, *used_k; /* NULL, or how many tokens of each sequence count */
    int64_t b, sq, sk, h, hk, d, nseq;
    int64_t before, after; /* windows to the left and to the right; 0: none */
    float scale;
    float cap; /* 0: none */
    bool causal;
    bool simple; /* neither windows nor sequences nor used lengths */
    attention_options options;
    share_order order; /* of the launch's blocks */
} attention_params;

#endif
