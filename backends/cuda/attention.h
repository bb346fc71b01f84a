/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of attention and its gradient pass to their device sides. */
#ifndef TRINE_CUDA_ATTENTION_H
#define TRINE_CUDA_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

/* Strides in elements; the last dimension, if there is one, is contiguous. */
typedef struct attention_tensor {
    void *data;
    int64_t batch, token, head;
} attention_tensor;

/* What a call attends to, and how. */
typedef struct attention_problem {
    const int32_t *cu_q, *cu_k; /* NULL: b sequences of sq and sk */
    int32_t nseq, b, sq, sk, h, group, d;
    int32_t window; /* 0: none; less than sq + sk */
    bool causal;
    float scale, softcap;
} attention_problem;

typedef struct attention_params {
    attention_problem at;
    attention_tensor q, k, v, o, lse; /* lse.data: NULL if absent */
    int32_t tiles, columns;           /* blocks along sq, and along d */
} attention_params;

typedef struct attention_backward_params {
    attention_problem at;
    attention_tensor dout, q, k, v, o, lse, dq, dk, dv;
    attention_tensor delta; /* f32, as lse: dout.o of each row */
    int32_t tiles, columns; /* of this launch: blocks along sq or sk, and along d */
} attention_backward_params;

enum {
    ATTENTION_THREADS = 256, /* of a block of the kernels without tensor cores */
    ATTENTION_SIDE = 64,     /* queries and keys of their tiles */
};

#endif
