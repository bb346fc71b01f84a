/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in which lists say what blocks of keys each block of queries sees. */
#ifndef TRINE_ATTENTION_BLOCKS_H
#define TRINE_ATTENTION_BLOCKS_H

#include <trine/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trine_attention_blocks_args {
    size_t struct_size;         /* sizeof(trine_attention_blocks_args) */
    const trine_tensor *q;      /* in [b] sq h d */
    const trine_tensor *k;      /* in [b] sk hk d */
    const trine_tensor *v;      /* in [b] sk hk d */
    const trine_tensor *starts; /* in [b] hl blocks+1, i32: where the list of each block of queries begins in indices */
    const trine_tensor *indices; /* in [b] hl entries, i32: blocks of keys */
    const trine_tensor *bias;    /* in, optional [b] hl entries, f32: added to the scores with all keys of the block */
    const trine_tensor *o;       /* out [b] sq h d */
    const trine_tensor *lse;     /* out, optional [b] h sq */
    float scale;                 /* left 0: 1/sqrt(d); -0.0f is refused */
    float softcap;               /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal;              /* 1: query i sees key j only if j <= i + sk - sq */
    int64_t query_block;         /* queries that share a list */
    int64_t key_block;           /* keys of a block */
} trine_attention_blocks_args;

/* Scaled dot-product attention of each block of queries to the blocks of keys on its list: block-sparse and routed
 * attention. Several heads, grouped (each key-value head serves h/hk query heads) or not.
 *
 *     s[j]           = scale q[b,i,head] . k[b,j,head/(h/hk)]
 *     z[e,j]         = s[j], or softcap tanh(s[j]/softcap), + bias[b,l,e] where that is given
 *     lse[b,head,i]  = log(sum_e sum_j exp(z[e,j])), the natural logarithm
 *     o[b,i,head]    = sum_e sum_j exp(z[e,j] - lse[b,head,i]) v[b,j,head/(h/hk)]
 *
 * with l = head/(h/hl), over the entries e of list r = i/query_block, which are starts[b,l,r] <= e < starts[b,l,r+1],
 * and the keys j of block c = indices[b,l,e], which are c key_block <= j < (c+1) key_block, as far as there are such,
 * and with causal j <= i + sk - sq. Sums go in the order of the list.
 *
 * An entry that is no block of keys, as -1, is passed over. One that stands twice counts twice. A query behind the last
 * list, or that sees no key, or only scores of -Inf, has o = 0 and lse = -Inf. What k and v hold where no query sees
 * them has no effect. A visible NaN makes its row NaN, as does a score of +Inf.
 *
 * A bias of log w makes a block's keys count w times, as means of w keys each do that stand for them (LLSA: fine keys
 * and means of several levels behind each other in k and v). Lists may be those of each head (hl = h), of each head of
 * keys (hl = hk) or of all (hl = 1); of the same lists in the whole batch starts and indices have stride 0 along it.
 * With query_block 1 each query has its own (MoBA); heads that share lists and keys then share the work. Lists of the
 * same length need no others than those that topk gives: starts are its multiples.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 1; lists as in Lu et al. 2025 (MoBA), section 2.2, and Zhu et al. 2023
 * (BiFormer), section 3.2; bias: LLSA (2025); softcap as in Gemma 2.
 *
 * Shapes: q and o are [b] sq h d, k and v [b] sk hk d, lse [b] h sq, starts [b] hl blocks+1, indices and bias [b] hl
 * entries; b may be left out. The last dimension is contiguous, other strides are free. h is a multiple of hk > 0 and
 * of hl > 0; d >= 1, on devices 256 at most.
 * Types: q, k, v and o are all f32, bf16 or f16; starts and indices i32; bias and lse f32. Accumulation is f32, with
 * one rounding at the end. A kernel may round the exponentials to the type of v before their product with it, not those
 * that are summed.
 * Parameters: scale is any finite number; 0 means 1/sqrt(d). softcap >= 0, 0 means none. query_block and key_block are
 * at least 1, and need divide nothing.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: n being the number of keys that a query sees, of o 2 n + 32 units of 2^-24 and one of the type's
 * roundoff, of sum p |v|. Of lse, 2 n + 32 units of 2^-24. Besides, what the roundings of the scores do through the
 * exponential: spec/attention/attention_rows.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: TRINE_ERR_ARGUMENT (a required tensor is NULL; rank, sizes, strides or element types that the above does not
 * admit; a parameter not finite, or negative where it must not be; a block below 1; starts that descend, or are not in
 * [0, entries], on devices: rows of NaN; an output that overlaps another tensor), TRINE_ERR_UNSUPPORTED (the device has
 * no kernel; on devices, d above 256 or tokens beyond 2^30), TRINE_ERR_WORKSPACE (strict queue), TRINE_ERR_MEMORY,
 * TRINE_ERR_DEVICE.
 *
 * Since 0.1. */
TRINE_API trine_status trine_attention_blocks(trine_queue *queue, const trine_attention_blocks_args *args);

typedef struct trine_attention_blocks_backward_args {
    size_t struct_size;          /* sizeof(trine_attention_blocks_backward_args) */
    const trine_tensor *dout;    /* in [b] sq h d */
    const trine_tensor *q;       /* in [b] sq h d */
    const trine_tensor *k;       /* in [b] sk hk d */
    const trine_tensor *v;       /* in [b] sk hk d */
    const trine_tensor *o;       /* in [b] sq h d */
    const trine_tensor *lse;     /* in [b] h sq */
    const trine_tensor *starts;  /* in [b] hl blocks+1, i32 */
    const trine_tensor *indices; /* in [b] hl entries, i32 */
    const trine_tensor *bias;    /* in, optional [b] hl entries, f32 */
    const trine_tensor *dq;      /* out [b] sq h d */
    const trine_tensor *dk;      /* out [b] sk hk d */
    const trine_tensor *dv;      /* out [b] sk hk d */
    const trine_tensor *dbias;   /* out, optional [b] hl entries, f32 */
    float scale;                 /* left 0: 1/sqrt(d); -0.0f is refused */
    float softcap;               /* 0: none; c: scores become c tanh(score/c) */
    int32_t causal;              /* 1: query i sees key j only if j <= i + sk - sq */
    int64_t query_block;         /* queries that share a list */
    int64_t key_block;           /* keys of a block */
} trine_attention_blocks_backward_args;

/* Gradient of attention by lists of blocks, from the o and lse that trine_attention_blocks() gave.
 *
 *     p[i,e,j]    = exp(z[i,e,j] - lse[b,head,i]),  at most 1 where |lse| >= 2^17
 *     D[i]        = dout[b,i,head] . o[b,i,head]
 *     dz[i,e,j]   = p[i,e,j] (dout[b,i,head] . v[b,j,head/(h/hk)] - D[i])
 *     ds[i,e,j]   = dz[i,e,j], or with a softcap dz[i,e,j] (1 - tanh(s/softcap)^2)
 *     dq[b,i,head]  = scale sum ds[i,e,j] k[b,j,head/(h/hk)]   over the pairs that query i sees
 *     dk[b,j,g]     = scale sum ds[i,e,j] q[b,i,head]          over the pairs that have key j, of all heads of group g
 *     dv[b,j,g]     = sum p[i,e,j] dout[b,i,head]              likewise
 *     dbias[b,l,e]  = sum dz[i,e,j]                            over the pairs of entry e, of all heads with list head l
 *
 * for the pairs of a query and a key of an entry that trine_attention_blocks() visits. A row whose lse is -Inf gives
 * nothing to any of them, whatever its q and dout hold; so has a pair that is masked. An entry that is on no list, or
 * is no block, has dbias 0. Lists have no gradient.
 *
 * The lists of the queries that see a block of keys are made on the device, in the workspace, in order.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 2.
 *
 * Shapes: dout, q, o and dq are [b] sq h d, k, v, dk and dv [b] sk hk d, lse is [b] h sq, starts [b] hl blocks+1,
 * indices, bias and dbias [b] hl entries; b may be left out. The last dimension is contiguous, other strides are free.
 * dbias asks for bias.
 * Types: q, k, v, o, dout, dq, dk and dv are f32, bf16 or f16 together; starts and indices i32; lse, bias and dbias are
 * f32. Accumulation is f32, with one rounding at the end. A kernel may round p and ds to the type of q before their
 * products.
 * Parameters: those of trine_attention_blocks(), as there.
 * Aliasing: no output may overlap another tensor.
 *
 * Error bound: for each output, as many units of 2^-24 as its sum has terms, and 16, and of dq, dk and dv one of the
 * type's roundoff, of the sums of the absolute values of their terms. Besides, what the roundings of scores, dout . v
 * and D do: spec/attention/attention_gradient.h.
 * Deterministic: the same bits for any number of threads.
 *
 * Errors: those of trine_attention_blocks(); on devices, starts that descend or are out of range: rows of NaN in dq,
 * and nothing in dk, dv and dbias.
 *
 * Since 0.1. */
TRINE_API trine_status trine_attention_blocks_backward(trine_queue *queue,
                                                       const trine_attention_blocks_backward_args *args);

#ifdef __cplusplus
}
#endif

#endif
