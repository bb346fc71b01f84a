/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, also to a paged cache of keys and values, and rotary embedding. */
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
    const trine_tensor *seqused_q;    /* in, optional nused: queries of each sequence that count, the first ones */
    const trine_tensor *seqused_k;    /* in, optional nused: likewise keys; nused is b, or nseq if that is more */
    const trine_tensor *bias;         /* in, optional [b] [h] [sq] sk: added to scores; any of them may be 1 */
    const trine_tensor *alibi_slopes; /* in, optional [b] h, f32: of what distances take from scores */
    const trine_tensor *sinks;        /* in, optional h: a score of each head that has no value */
    const trine_tensor *philox;       /* in, optional [2], i64: key and stream of dropout, as of trine_dropout() */
    const trine_tensor *o;            /* out [b] sq h d */
    const trine_tensor *lse;          /* out, optional [b] h sq */
    float scale;                      /* left 0: 1/sqrt(d); -0.0f is refused */
    float softcap;                    /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal;                   /* 1: query i sees key j iff j <= i + sk - sq */
    int64_t window;                   /* 0: unlimited; w: query i sees key j only if |i + sk - sq - j| < w */
    int64_t window_left;              /* 0: unlimited; w: only if i + sk - sq - j < w */
    int64_t window_right;             /* 0: unlimited; w: only if j - (i + sk - sq) < w */
    float dropout;                    /* probability of dropping a weight, below 1 */
    uint64_t seed;                    /* dropout's key; 0 where philox is given */
    uint64_t offset;                  /* dropout's stream */
} trine_attention_args;

/* Scaled dot-product attention of several heads, grouped (each key-value head serves h/hk query heads) or not.
 *
 *     s[j]           = scale q[b,i,head] . k[b,j,head/(h/hk)]
 *     z[j]           = s[j], or softcap tanh(s[j]/softcap)
 *                      + bias[b,head,i,j] - alibi_slopes[b,head] |i + sk - sq - j|, where these are given
 *     lse[b,head,i]  = log(sum_j exp(z[j]) + exp(sinks[head])), the last term only with sinks
 *     o[b,i,head]    = sum_j r[j] exp(z[j] - lse[b,head,i]) v[b,j,head/(h/hk)],  sums over the visible keys j
 *
 * Masks are aligned at the bottom right. Query i does not see key j if causal is set and j > i + sk - sq, if window is
 * w > 0 and |i + sk - sq - j| >= w, if window_left is w > 0 and i + sk - sq - j >= w, or if window_right is w > 0 and j
 * - (i + sk - sq) >= w. What k and v hold where no query sees them has no effect, nor has bias there. A query that sees
 * no key, or only scores of -Inf, has o = 0 and lse = -Inf, or, if it has a sink, lse = sinks[head]. A visible NaN
 * makes its row NaN, as does a score of +Inf. No matrix of sq sk elements is ever stored.
 *
 * Packed sequences: with cu_seqlens_q and cu_seqlens_k, b is 1. Sequence n has the queries cu_seqlens_q[n] ..
 * cu_seqlens_q[n+1]-1 and the keys cu_seqlens_k[n] .. cu_seqlens_k[n+1]-1. It sees none of the others', and is masked
 * by its own lengths in the place of sq and sk. Behind the last sequence there may be room.
 *
 * Used lengths: of a sequence, or of a member of the batch if there are no cu_seqlens, only the first seqused_q[n]
 * queries and seqused_k[n] keys count, and these lengths are what its masks are aligned by. A query that does not
 * count, or that is behind the last sequence, has o = 0 and lse = -Inf.
 *
 * Dropout: r[j] is 1. If dropout is p > 0 it is 1/(1 - p), rounded to f32, where trine_dropout() with p, seed, offset
 * and philox keeps element ((b h + head) sq + i) 8 ceil(sk/8) + j, and else 0: the same on every device. lse is as
 * without.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 1; softcap as in Gemma 2; ALiBi: Press et al. 2022, section 3; sinks:
 * Xiao et al. 2024, section 3.2, learnt as in gpt-oss.
 *
 * Shapes: q and o are [b] sq h d, k and v [b] sk hk d, lse [b] h sq; b may be left out. bias is [b] [h] [sq] sk and
 * alibi_slopes [b] h: of both any dimension may be 1, and those in front may be missing. The last dimension is
 * contiguous. Other strides are free, so that heads before tokens, or q, k and v in one tensor, are views. h is a
 * multiple of hk > 0; d >= 1.
 * Types: q, k, v and o are all f32, bf16 or f16; bias and sinks are f32 or of the same type; alibi_slopes and lse are
 * f32, cu_seqlens and seqused i32, philox i64. Accumulation is f32, with one rounding at the end. A kernel may round
 * the exponentials to the type of v before their product with it, not those that are summed.
 * Parameters: scale is any finite number; 0 means 1/sqrt(d). softcap >= 0, 0 means none. windows >= 0, 0 means
 * unlimited. 0 <= dropout < 1. seed must be 0 where philox is given.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of o, 2 sk + 32 units of 2^-24 and one of the type's roundoff, of sum_j p[j] r[j] |v[j]|. Of lse, 2 sk +
 * 32 units of 2^-24. Besides, what the roundings of the scores, d + 4 units of scale sum |q||k| and more, do through
 * the exponential: spec/attention/attention.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite, or negative where it must not be; cu_seqlens that do not ascend from 0 to at most sq
 * or sk, or lengths that exceed their sequence, on devices: rows of NaN; an output that overlaps another tensor),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
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
    const trine_tensor *seqused_q;    /* in, optional nused: queries of each sequence that count, the first ones */
    const trine_tensor *seqused_k;    /* in, optional nused: likewise keys; nused is b, or nseq if that is more */
    const trine_tensor *bias;         /* in, optional [b] [h] [sq] sk: added to scores; any of them may be 1 */
    const trine_tensor *alibi_slopes; /* in, optional [b] h, f32: of what distances take from scores */
    const trine_tensor *sinks;        /* in, optional h: a score of each head that has no value */
    const trine_tensor *philox;       /* in, optional [2], i64: key and stream of dropout, as of trine_dropout() */
    const trine_tensor *dq;           /* out [b] sq h d */
    const trine_tensor *dk;           /* out [b] sk hk d */
    const trine_tensor *dv;           /* out [b] sk hk d */
    const trine_tensor *dbias;        /* out, optional [b] h sq sk */
    const trine_tensor *dsinks;       /* out, optional h */
    float scale;                      /* left 0: 1/sqrt(d); -0.0f is refused */
    float softcap;                    /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal;                   /* 1: query i sees key j iff j <= i + sk - sq */
    int64_t window;                   /* 0: unlimited; w: query i sees key j only if |i + sk - sq - j| < w */
    int64_t window_left;              /* 0: unlimited; w: only if i + sk - sq - j < w */
    int64_t window_right;             /* 0: unlimited; w: only if j - (i + sk - sq) < w */
    float dropout;                    /* probability of dropping a weight, below 1 */
    uint64_t seed;                    /* dropout's key; 0 where philox is given */
    uint64_t offset;                  /* dropout's stream */
} trine_attention_backward_args;

/* Gradient of attention, from its output and lse.
 *
 * With z, t = tanh(s/softcap) and r as in trine_attention(), p = exp(z - lse), D[b,i,head] = dout[b,i,head] .
 * o[b,i,head] and ds = p (r dout . v - D) (1 - t^2), the last factor only with a softcap, all for visible pairs (i, j)
 * only, and g the key-value head of `head`:
 *
 *     dq[b,i,head]      = scale sum_j ds k[b,j,g]
 *     dk[b,j,g]         = scale sum_{i,head} ds q[b,i,head]
 *     dv[b,j,g]         = sum_{i,head} p r dout[b,i,head]
 *     dbias[b,head,i,j] = p (r dout . v - D), and 0 where j is not visible
 *     dsinks[head]      = -sum_{b,i} exp(sinks[head] - lse) D
 *
 * Where |lse| is 2^17 and more, an f32 lse is too coarse for p, which then counts as 1 at most.
 *
 * Sums over heads are over those of a group. A query with lse = -Inf has dq = 0 and adds nothing to dk, dv and dsinks,
 * whatever its q and dout hold; so has a pair that is masked. dbias is whole: that of a bias of which dimensions are 1
 * is its sum over these. Slopes have no gradient.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 2.
 *
 * Shapes: dout, q, o and dq are [b] sq h d, k, v, dk and dv [b] sk hk d, lse is [b] h sq, dbias [b] h sq sk; b may be
 * left out. The last dimension is contiguous, other strides are free. dbias asks for bias, dsinks for sinks.
 * Types: q, k, v, o, dout, dq, dk and dv are f32, bf16 or f16 together; bias, dbias, sinks and dsinks are f32 or of the
 * same type; lse is f32. Accumulation is f32, with one rounding at the end. A kernel may round p and ds to that type
 * before their products.
 * Parameters: masks, cu_seqlens, seqused, bias, alibi_slopes, sinks and parameters are the forward's.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of dq sk + 16, of dk and dv sq h/hk + 16, of dbias 1 and of dsinks b sq + 16 units of 2^-24, and of dq,
 * dk and dv one of the type's roundoff, of the sums of the absolute values of their terms. Besides, what the roundings
 * of scores, dout . v and D do: spec/attention/attention_backward.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: those of trine_attention().
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

typedef struct trine_kv_cache_write_args {
    size_t struct_size;          /* sizeof(trine_kv_cache_write_args) */
    const trine_tensor *k;       /* in t hk d */
    const trine_tensor *v;       /* in, optional t hk dv */
    const trine_tensor *slots;   /* in t: where each token goes, page number times page size and place in the page */
    const trine_tensor *k_scale; /* in, optional hk, or 1: what keys are divided by */
    const trine_tensor *v_scale; /* in, optional hk, or 1: likewise values */
    const trine_tensor *k_cache; /* in and out pages page hk d */
    const trine_tensor *v_cache; /* in and out, optional pages page hk dv; both v and v_cache or none */
} trine_kv_cache_write_args;

/* Writes the keys and values of tokens into a paged cache, from which trine_attention_decode() reads them.
 *
 *     k_cache[slots[i]/page, slots[i]%page, g] = k[i,g] / k_scale[g]
 *     v_cache[slots[i]/page, slots[i]%page, g] = v[i,g] / v_scale[g]
 *
 * rounded to the cache's type, a missing scale being 1. A token whose slot is not in [0, pages page), as -1, is passed
 * over. Of tokens with the same slot the last one is written. What no token is written to stays as it is.
 *
 * Models that keep one latent vector for keys and values (multi-head latent attention) write it as k, without v.
 *
 * Source: Kwon et al. 2023 (PagedAttention).
 *
 * Shapes: k is t hk d, v t hk dv, slots t; k_cache is pages page hk d, v_cache pages page hk dv. k_scale and v_scale
 * are hk, or 1 for one scale of all heads. The last dimension is contiguous, other strides are free, so that a cache
 * with heads before places (HND) is a permuted view of pages hk page d, and k and v may be parts of one tensor.
 * Types: k and v are f32, bf16 or f16; both caches are of the same type, or both e4m3 or i8; slots i32 or i64; scales
 * f32. The quotient is computed in f32, and that is rounded to nearest even. e4m3 and i8 saturate, Inf too; i8 has 0
 * for NaN. Without a scale elements that keep their type are copied.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: none, the result is exact.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; v without v_cache, v_cache or v_scale without v; rank, sizes,
 * strides or element types that the above does not admit; an output that overlaps another tensor),
 * TRINE_ERR_UNSUPPORTED (the device has no kernel), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_kv_cache_write(trine_queue *queue, const trine_kv_cache_write_args *args);

typedef struct trine_attention_decode_args {
    size_t struct_size;              /* sizeof(trine_attention_decode_args) */
    const trine_tensor *q;           /* in b sq h d: of each sequence the last sq tokens */
    const trine_tensor *k_cache;     /* in pages page hk d */
    const trine_tensor *v_cache;     /* in, optional pages page hk dv; absent: the first dv columns of the keys */
    const trine_tensor *block_table; /* in b maxpages, i32: the pages of each sequence, in the order of its tokens */
    const trine_tensor *lengths;     /* in b, i32: keys of each sequence, those of its sq tokens included */
    const trine_tensor *sinks;       /* in, optional h: a score of each head that has no value */
    const trine_tensor *k_scale;     /* in, optional hk, or 1: what keys of the cache are multiplied by */
    const trine_tensor *v_scale;     /* in, optional hk, or 1: likewise values */
    const trine_tensor *out;         /* out b sq h dv */
    const trine_tensor *lse;         /* out, optional b h sq */
    float scale;                     /* left 0: 1/sqrt(d); -0.0f is refused */
    float softcap;                   /* 0: none; c: scores become c tanh(score/c) */
    int64_t window_left;             /* 0: unlimited; w: query i sees key j only if lengths - sq + i - j < w */
} trine_attention_decode_args;

/* Attention of the last tokens of sequences to all of their keys and values, which are in a paged cache. Several heads,
 * grouped (each key-value head serves h/hk query heads) or not.
 *
 *     K[j], V[j]     = k_scale k_cache[block_table[b,j/page], j%page, g], v_scale v_cache[...],  g = head/(h/hk)
 *     s[j]           = scale q[b,i,head] . K[j]
 *     z[j]           = s[j], or softcap tanh(s[j]/softcap)
 *     lse[b,head,i]  = log(sum_j exp(z[j]) + exp(sinks[head])), the last term only with sinks; the natural logarithm
 *     out[b,i,head]  = sum_j exp(z[j] - lse[b,head,i]) V[j],  sums over the visible keys j
 *
 * Key j < lengths[b] is visible to query i if j <= lengths[b] - sq + i, if window_left is 0 or w with lengths[b] - sq +
 * i - j < w, and if its page is there: where block_table has a number that is not in [0, pages), the keys of that page
 * are not. What the cache holds elsewhere has no effect, nor has block_table behind a sequence's end. A length below 0
 * counts as 0, one beyond maxpages page as that. A query that sees no key, or only scores of -Inf, has out = 0 and lse
 * = -Inf, or, if it has a sink, lse = sinks[head]. A visible NaN makes its row NaN, as does a score of +Inf.
 *
 * Without v_cache the values are the first dv elements of the keys, k_scale included, as multi-head latent attention
 * has them (DeepSeek-V2: d 576, dv 512).
 *
 * States of the same queries over other keys, as those of a prefix that sequences share, are merged by
 * trine_attention_merge().
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 1; Kwon et al. 2023 (PagedAttention); DeepSeek-AI 2024 (DeepSeek-V2),
 * section 2.1.2; softcap as in Gemma 2; sinks as in gpt-oss.
 *
 * Shapes: q is b sq h d, out b sq h dv, lse b h sq, k_cache pages page hk d, v_cache pages page hk dv, block_table b
 * maxpages, lengths b, sinks h. k_scale and v_scale are hk, or 1 for one scale of all heads. The last dimension is
 * contiguous, other strides are free, so that a cache with heads before places (HND) is a permuted view of pages hk
 * page d. h is a multiple of hk > 0; d and dv >= 1; without v_cache dv <= d. On devices d and dv are 768 at most.
 * Types: q and out are f32, bf16 or f16; both caches are of that type, or both e4m3 or i8; sinks are f32 or of q's
 * type; scales and lse f32, block_table and lengths i32. Accumulation is f32, with one rounding at the end. A kernel
 * may round the exponentials to q's type before their product with the values, not those that are summed.
 * Parameters: scale is any finite number; 0 means 1/sqrt(d). softcap >= 0, 0 means none. window_left >= 0, 0 means
 * unlimited.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: of out, 2 maxpages page + 32 units of 2^-24 and one of the type's roundoff, of sum_j p[j] |V[j]|. Of
 * lse, 2 maxpages page + 32 units of 2^-24. Besides, what the roundings of the scores do through the exponential:
 * spec/attention/attention_decode.c.
 * Deterministic: the same bits for any number of threads. A sequence's result depends on its own tokens alone: it has
 * the same bits in any batch.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; v_scale without v_cache; rank, sizes, strides or element types
 * that the above does not admit; a parameter not finite, or negative where it must not be; an output that overlaps
 * another tensor), TRINE_ERR_UNSUPPORTED (the device has no kernel; on devices, d or dv above 768), TRINE_ERR_WORKSPACE
 * (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_attention_decode(trine_queue *queue, const trine_attention_decode_args *args);

typedef struct trine_attention_merge_args {
    size_t struct_size;        /* sizeof(trine_attention_merge_args) */
    const trine_tensor *out_a; /* in [b] sq h d */
    const trine_tensor *lse_a; /* in [b] h sq */
    const trine_tensor *out_b; /* in [b] sq h d */
    const trine_tensor *lse_b; /* in [b] h sq */
    const trine_tensor *out;   /* out [b] sq h d; may be out_a or out_b */
    const trine_tensor *lse;   /* out, optional [b] h sq; may be lse_a or lse_b */
} trine_attention_merge_args;

/* Merges two states of attention, of the same queries over keys of their own, into that over the keys of both.
 *
 *     out[b,i,head] = (exp(A) out_a[b,i,head] + exp(B) out_b[b,i,head]) / (exp(A) + exp(B))
 *     lse[b,head,i] = log(exp(A) + exp(B)),  A = lse_a[b,head,i], B = lse_b[b,head,i]
 *
 * lse is a natural logarithm, as trine_attention() and trine_attention_decode() have it. A state whose lse is -Inf has
 * no weight, whatever its out holds; of two such, out = 0 and lse = -Inf. An lse of NaN or +Inf makes its row NaN. A
 * sink may count in one of the states only.
 *
 * Source: Dao 2023 (FlashAttention-2), section 3.1.1; Juravsky et al. 2024 (Hydragen).
 *
 * Shapes: out_a, out_b and out are [b] sq h d, lse_a, lse_b and lse [b] h sq; b may be left out. The last dimension is
 * contiguous, other strides are free. Rows without more structure are sq = 1, h rows.
 * Types: out_a and out_b are f32, bf16 or f16, the same; out is of that type, or, if they are f32, any of the three;
 * lse_a, lse_b and lse are f32. Computed in f32, rounded once.
 * Aliasing: out may be out_a or out_b, lse may be lse_a or lse_b.
 *
 * Error bound: of out, 24 units of 2^-24 of the sum of the absolute values of both terms; of lse, 24 units of 2^-24.
 * Besides, 3 |A - B| units of 2^-24 of the smaller weight: spec/attention/attention_merge.c.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; an output that overlaps another tensor otherwise than said), TRINE_ERR_UNSUPPORTED (the device has no kernel),
 * TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY, TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_attention_merge(trine_queue *queue, const trine_attention_merge_args *args);

#ifdef __cplusplus
}
#endif

#endif
