/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and rotary embedding. */
#ifndef TRINE_ATTENTION_H
#define TRINE_ATTENTION_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_attention_args {
    size_t struct_size;               /* sizeof(trine_attention_args) */
    const trine_tensor *q;            /* in [b] sq h d */
    const trine_tensor *k;            /* in [b] sk hk d */
    const trine_tensor *v;            /* in [b] sk hk d */
    const trine_tensor *cu_seqlens_q; /* in, optional nseq+1: packed batch, where each sequence's queries start;
                                       * then b must be 1 */
    const trine_tensor *cu_seqlens_k; /* in, optional nseq+1: likewise for the keys; both or none */
    const trine_tensor *o;            /* out [b] sq h d */
    const trine_tensor *lse;          /* out, optional [b] h sq */
    float scale;                      /* left 0: 1/sqrt(d); -0.0f is refused */
    float softcap;                    /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal;                   /* 1: query i sees key j iff j <= i + sk - sq */
    int64_t window;                   /* 0: unlimited; w: query i sees key j only if |i + sk - sq - j| < w */
} trine_attention_args;

/* Scaled dot-product attention of several heads, grouped (each key-value head serves h/hk query heads) or not.
 *
 *     s[j]           = scale q[b,i,head] . k[b,j,head/(h/hk)]
 *     z[j]           = s[j], or softcap tanh(s[j]/softcap)
 *     lse[b,head,i]  = log sum_j exp(z[j])
 *     o[b,i,head]    = sum_j exp(z[j] - lse[b,head,i]) v[b,j,head/(h/hk)],  sums over the visible keys j
 *
 * Masks are aligned at the bottom right. Query i does not see key j if causal is set and j > i + sk - sq, or if window
 * is w > 0 and |i + sk - sq - j| >= w. What k and v hold where no query sees them has no effect. A query that sees no
 * key, or only scores of -Inf, has o = 0 and lse = -Inf. A visible NaN makes its row NaN, as does a score of +Inf. No
 * matrix of sq sk elements is ever stored.
 *
 * Packed sequences: with cu_seqlens_q and cu_seqlens_k, b is 1. Sequence n has the queries cu_seqlens_q[n] ..
 * cu_seqlens_q[n+1]-1 and the keys cu_seqlens_k[n] .. cu_seqlens_k[n+1]-1. It sees none of the others', and is masked
 * by its own lengths in the place of sq and sk.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 1; softcap as in Gemma 2.
 *
 * Shapes: q and o are [b] sq h d, k and v [b] sk hk d, lse [b] h sq; b may be left out. The last dimension is
 * contiguous. Other strides are free, so that heads before tokens, or q, k and v in one tensor, are views. h is a
 * multiple of hk > 0; d >= 1.
 * Types: q, k, v and o are all f32, bf16 or f16; lse is f32, cu_seqlens i32. Accumulation is f32, with one rounding at
 * the end. A kernel may round the exponentials to the type of v before their product with it, not those that are
 * summed.
 * Parameters: scale is any finite number; 0 means 1/sqrt(d). softcap >= 0, 0 means none. window >= 0, 0 means
 * unlimited.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of o, 2 sk + 32 units of 2^-24 and one of the type's roundoff, of sum_j p[j] |v[j]|. Of lse, 2 sk + 32
 * units of 2^-24. Besides, what the roundings of the scores, d + 4 units of scale sum |q||k| and more, do through the
 * exponential: spec/attention/attention.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite, or negative where it must not be; cu_seqlens that do not ascend from 0 to sq or sk; an
 * output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict
 * queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_attention(trine_queue *queue, const trine_attention_args *args);

typedef struct trine_attention_backward_args {
    size_t struct_size;               /* sizeof(trine_attention_backward_args) */
    const trine_tensor *dout;         /* in [b] sq h d */
    const trine_tensor *q;            /* in [b] sq h d */
    const trine_tensor *k;            /* in [b] sk hk d */
    const trine_tensor *v;            /* in [b] sk hk d */
    const trine_tensor *o;            /* in [b] sq h d */
    const trine_tensor *lse;          /* in [b] h sq */
    const trine_tensor *cu_seqlens_q; /* in, optional nseq+1: packed batch, where each sequence's queries start;
                                       * then b must be 1 */
    const trine_tensor *cu_seqlens_k; /* in, optional nseq+1: likewise for the keys; both or none */
    const trine_tensor *dq;           /* out [b] sq h d */
    const trine_tensor *dk;           /* out [b] sk hk d */
    const trine_tensor *dv;           /* out [b] sk hk d */
    float scale;                      /* left 0: 1/sqrt(d); -0.0f is refused */
    float softcap;                    /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal;                   /* 1: query i sees key j iff j <= i + sk - sq */
    int64_t window;                   /* 0: unlimited; w: query i sees key j only if |i + sk - sq - j| < w */
} trine_attention_backward_args;

/* Gradient of attention, from its output and lse.
 *
 * With z as in trine_attention(), p = exp(z - lse), D[b,i,head] = dout[b,i,head] . o[b,i,head] and ds = p (dout . v -
 * D) (1 - (z/softcap)^2), the last factor only with a softcap, all for visible pairs (i, j) only, and g the key-value
 * head of `head`:
 *
 *     dq[b,i,head] = scale sum_j ds k[b,j,g]
 *     dk[b,j,g]    = scale sum_{i,head} ds q[b,i,head]
 *     dv[b,j,g]    = sum_{i,head} p dout[b,i,head]
 *
 * Where |lse| is 2^17 and more, an f32 lse is too coarse for p, which then counts as 1 at most.
 *
 * Sums over heads are over those of a group. A query with lse = -Inf has dq = 0 and adds nothing to dk and dv, whatever
 * its q and dout hold; so has a pair that is masked.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 2.
 *
 * Shapes: dout, q, o and dq are [b] sq h d, k, v, dk and dv [b] sk hk d, lse is [b] h sq; b may be left out. The last
 * dimension is contiguous, other strides are free.
 * Types: all are f32, bf16 or f16 together; lse is f32. Accumulation is f32, with one rounding at the end. A kernel may
 * round p and ds to that type before their products.
 * Parameters: masks, cu_seqlens and parameters are the forward's.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of dq sk + 16, of dk and dv sq h/hk + 16 units of 2^-24, and one of the type's roundoff, of the sums of
 * the absolute values of their terms. Besides, what the roundings of scores, dout . v and D do:
 * spec/attention/attention_backward.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite, or negative where it must not be; cu_seqlens that do not ascend from 0 to sq or sk; an
 * output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict
 * queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_attention_backward(trine_queue *queue, const trine_attention_backward_args *args);

typedef struct trine_rope_args {
    size_t struct_size;            /* sizeof(trine_rope_args) */
    const trine_tensor *x;         /* in [b] s h d */
    const trine_tensor *cos;       /* in p c; 2c <= d */
    const trine_tensor *sin;       /* in p c */
    const trine_tensor *positions; /* in, optional [b] s: row of cos and sin for each token; absent: its index in s */
    const trine_tensor *y;         /* out [b] s h d; may be x */
    int32_t interleaved;           /* 0: pairs (i, i+c); 1: pairs (2i, 2i+1) */
} trine_rope_args;

/* Rotary position embedding: turns c pairs of elements of each head by the angles of the token's position t, and copies
 * the other d - 2c elements.
 *
 *     y[m] = x[m] cos[t,i] - x[n] sin[t,i]
 *     y[n] = x[n] cos[t,i] + x[m] sin[t,i],  (m, n) = (i, i+c), or (2i, 2i+1) if interleaved, i < c
 *
 * t is positions[b,s], or the token's index in s where positions is absent. cos and sin are any tables.
 *
 * Source: Su et al. 2021, eq. 34.
 *
 * Shapes: x and y are [b] s h d, cos and sin p c with 2c <= d, positions is [b] s; b may be left out. The last
 * dimension is contiguous, other strides are free.
 * Types: x and y are f32, bf16 or f16. cos and sin are f32 or of the same type; positions i32 or i64. Computed in f32,
 * rounded once.
 * Aliasing: y may be x.
 *
 * Error bound: 2.5 units of 2^-24 of |x[m] cos| + |x[n] sin|. Elements that are copied are equal.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a position that is negative or not below p; no positions and s > p; an output that overlaps another tensor
 * otherwise than said), TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue),
 * TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_rope(trine_queue *queue, const trine_rope_args *args);

typedef struct trine_rope_backward_args {
    size_t struct_size;            /* sizeof(trine_rope_backward_args) */
    const trine_tensor *dy;        /* in [b] s h d */
    const trine_tensor *cos;       /* in p c */
    const trine_tensor *sin;       /* in p c */
    const trine_tensor *positions; /* in, optional [b] s */
    const trine_tensor *dx;        /* out [b] s h d; may be dy */
    int32_t interleaved;           /* as in trine_rope_args */
} trine_rope_backward_args;

/* Gradient of rope: the rotation by the opposite angles, with everything else as in trine_rope().
 *
 *     dx[m] = dy[m] cos[t,i] + dy[n] sin[t,i]
 *     dx[n] = dy[n] cos[t,i] - dy[m] sin[t,i]
 *
 * t is positions[b,s], or the token's index in s. It is the transpose of rope's formula, whether or not cos^2 + sin^2 =
 * 1.
 *
 * Source: Su et al. 2021, eq. 34.
 *
 * Shapes: dy and dx are [b] s h d, cos and sin p c with 2c <= d, positions is [b] s; b may be left out. The last
 * dimension is contiguous, other strides are free.
 * Types: dy and dx are f32, bf16 or f16. cos and sin are f32 or of the same type; positions i32 or i64. Computed in
 * f32, rounded once.
 * Aliasing: dx may be dy.
 *
 * Error bound: 2.5 units of 2^-24 of |dy[m] cos| + |dy[n] sin|. Elements that are copied are equal.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: those of trine_rope().
 *
 * Since 0.1. */
TRINE_API trine_status trine_rope_backward(trine_queue *queue, const trine_rope_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
