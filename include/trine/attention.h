/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and rotary embedding. */
#ifndef TRINE_ATTENTION_H
#define TRINE_ATTENTION_H

#include <trine/trine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_attention_args {
    size_t struct_size; /* TRINE_ARGS(attention) */
    const trine_tensor *q; /* in [b] sq h d */
    const trine_tensor *k; /* in [b] sk hk d */
    const trine_tensor *v; /* in [b] sk hk d */
    const trine_tensor *cu_seqlens_q; /* in, optional nseq+1: packed batch, where each sequence's queries start; then b must be 1 */
    const trine_tensor *cu_seqlens_k; /* in, optional nseq+1: likewise for the keys; both or none */
    const trine_tensor *o; /* out [b] sq h d */
    const trine_tensor *lse; /* out, optional [b] h sq */
    float scale; /* 0: 1/sqrt(d) */
    float softcap; /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal; /* 1: query i sees key j iff j <= i + sk - sq */
    int64_t window; /* 0: unlimited; w: query i sees key j only if |i + sk - sq - j| < w */
} trine_attention_args;

/* Scaled dot-product attention */
TRINE_API trine_status trine_attention(trine_queue *queue, const trine_attention_args *args);

typedef struct trine_attention_backward_args {
    size_t struct_size; /* TRINE_ARGS(attention_backward) */
    const trine_tensor *dout; /* in [b] sq h d */
    const trine_tensor *q; /* in [b] sq h d */
    const trine_tensor *k; /* in [b] sk hk d */
    const trine_tensor *v; /* in [b] sk hk d */
    const trine_tensor *o; /* in [b] sq h d */
    const trine_tensor *lse; /* in [b] h sq */
    const trine_tensor *cu_seqlens_q; /* in, optional nseq+1: packed batch, where each sequence's queries start; then b must be 1 */
    const trine_tensor *cu_seqlens_k; /* in, optional nseq+1: likewise for the keys; both or none */
    const trine_tensor *dq; /* out [b] sq h d */
    const trine_tensor *dk; /* out [b] sk hk d */
    const trine_tensor *dv; /* out [b] sk hk d */
    float scale; /* 0: 1/sqrt(d) */
    float softcap; /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal; /* 1: query i sees key j iff j <= i + sk - sq */
    int64_t window; /* 0: unlimited; w: query i sees key j only if |i + sk - sq - j| < w */
} trine_attention_backward_args;

/* Gradient of attention */
TRINE_API trine_status trine_attention_backward(trine_queue *queue, const trine_attention_backward_args *args);

typedef struct trine_rope_args {
    size_t struct_size; /* TRINE_ARGS(rope) */
    const trine_tensor *x; /* in [b] s h d */
    const trine_tensor *cos; /* in p c; 2c <= d */
    const trine_tensor *sin; /* in p c */
    const trine_tensor *positions; /* in, optional [b] s: row of cos and sin for each token; absent: its index in s */
    const trine_tensor *y; /* out [b] s h d; may be x */
    int32_t interleaved; /* 0: pairs (i, i+c); 1: pairs (2i, 2i+1) */
} trine_rope_args;

/* Rotary position embedding */
TRINE_API trine_status trine_rope(trine_queue *queue, const trine_rope_args *args);

typedef struct trine_rope_backward_args {
    size_t struct_size; /* TRINE_ARGS(rope_backward) */
    const trine_tensor *dy; /* in [b] s h d */
    const trine_tensor *cos; /* in p c */
    const trine_tensor *sin; /* in p c */
    const trine_tensor *positions; /* in, optional [b] s */
    const trine_tensor *dx; /* out [b] s h d; may be dy */
    int32_t interleaved;
} trine_rope_backward_args;

/* Gradient of rope */
TRINE_API trine_status trine_rope_backward(trine_queue *queue, const trine_rope_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
