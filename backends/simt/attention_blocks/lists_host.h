/* SPDX-License-Identifier: Apache-2.0 */
/* Attention by lists and its gradient: from a call to what devices get. */
#ifndef TRINE_SIMT_ATTENTION_BLOCKS_LISTS_HOST_H
#define TRINE_SIMT_ATTENTION_BLOCKS_LISTS_HOST_H

#include <math.h>

#include "lists.h"
#include "backends/simt/core/host.h"
#include "spec/attention_blocks/lists_places.h"

/* The parameters of both ops, and where they have the tensors that both have. */
typedef struct lists_asked {
    float scale, softcap;
    bool causal;
    int64_t query_block, key_block;
    int q, k, v, o, lse, starts, indices, bias;
} lists_asked;
#define LISTS_ASKED(args, OP) \
    (lists_asked) { \
        (args)->scale, (args)->softcap, (args)->causal != 0, (args)->query_block, (args)->key_block, OP##_Q, OP##_K, \
            OP##_V, OP##_O, OP##_LSE, OP##_STARTS, OP##_INDICES, OP##_BIAS \
    }

static inline const char *lists_refuse(const trine_call *call) {
    static const int counts[] = { ATTENTION_BLOCKS_DIM_B,  ATTENTION_BLOCKS_DIM_H,      ATTENTION_BLOCKS_DIM_SQ,
                                  ATTENTION_BLOCKS_DIM_SK, ATTENTION_BLOCKS_DIM_BLOCKS, ATTENTION_BLOCKS_DIM_ENTRIES };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (call->dim[counts[i]] > 1 << 30) return "a size beyond 2^30";
    return call->dim[ATTENTION_BLOCKS_DIM_D] > LISTS_COLUMNS ? "more than 256 columns" : NULL;
}

/* Of a tensor b s h d. */
static inline lists_tensor lists_tokens(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    return (lists_tensor){ t->data, t->stride[0], t->stride[1], t->stride[2] };
}
/* Of one b h s. */
static inline lists_tensor lists_statistics(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (lists_tensor){ 0 };
    return (lists_tensor){ t->data, t->stride[0], t->stride[2], t->stride[1] };
}
static inline lists_rows lists_entries(const trine_call *call, int tensor) {
    const trine_tensor *t = &call->tensor[tensor];
    if (!simt_present(call, tensor)) return (lists_rows){ 0 };
    return (lists_rows){ t->data, t->stride[0], t->stride[1] };
}

static inline int32_t lists_divisor(int64_t a, int64_t b) {
    while (b > 0) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return (int32_t)(a > 0 ? a : 1);
}

static inline lists_params lists_params_of(const trine_call *call, lists_asked asked) {
    const int64_t *dim = call->dim, sq = dim[ATTENTION_BLOCKS_DIM_SQ], sk = dim[ATTENTION_BLOCKS_DIM_SK],
                  h = dim[ATTENTION_BLOCKS_DIM_H], hk = dim[ATTENTION_BLOCKS_DIM_HK], hl = dim[ATTENTION_BLOCKS_DIM_HL],
                  d = dim[ATTENTION_BLOCKS_DIM_D], most_q = sq > 0 ? sq : 1, most_k = sk > 0 ? sk : 1,
                  query_block = asked.query_block < most_q ? asked.query_block : most_q,
                  key_block = asked.key_block < most_k ? asked.key_block : most_k;
    lists_params p = { .b = (int32_t)dim[ATTENTION_BLOCKS_DIM_B],
                       .sq = (int32_t)sq,
                       .sk = (int32_t)sk,
                       .h = (int32_t)h,
                       .hk = (int32_t)hk,
                       .hl = (int32_t)hl,
                       .d = (int32_t)d,
                       .query_block = (int32_t)query_block,
                       .key_block = (int32_t)key_block,
                       .blocks = (int32_t)dim[ATTENTION_BLOCKS_DIM_BLOCKS],
                       .entries = (int32_t)dim[ATTENTION_BLOCKS_DIM_ENTRIES],
                       .bundle = lists_divisor(h / hk, h / hl),
                       .softcap = asked.softcap,
                       .causal = asked.causal };
    p.bundles = (int32_t)(h / p.bundle), p.key_bundles = (int32_t)(h / hk / p.bundle);
    p.list_bundles = (int32_t)(h / hl / p.bundle);
    p.lists = (int32_t)simt_blocks(sq, query_block), p.key_blocks = (int32_t)simt_blocks(sk, key_block);
    p.tiles = (int32_t)simt_blocks(query_block * p.bundle, LISTS_SIDE);
    p.key_tiles = (int32_t)simt_blocks(key_block, LISTS_SIDE);
    const trine_dtype T = call->type[ATTENTION_BLOCKS_TYPE_T];
    p.type = T == TRINE_F32 ? LISTS_F32 : T == TRINE_BF16 ? LISTS_BF16 : LISTS_F16;
    p.scale = asked.scale != 0 ? asked.scale : (float)(1 / sqrt((double)d));
    p.q = lists_tokens(call, asked.q), p.k = lists_tokens(call, asked.k), p.v = lists_tokens(call, asked.v);
    p.o = lists_tokens(call, asked.o), p.lse = lists_statistics(call, asked.lse);
    p.starts = lists_entries(call, asked.starts), p.indices = lists_entries(call, asked.indices);
    p.bias = lists_entries(call, asked.bias);
    return p;
}

/* The last part of an entry's name: the columns that its threads have room for. */
static inline int lists_variant(const trine_call *call) {
    const int64_t d = call->dim[ATTENTION_BLOCKS_DIM_D];
    return d <= 64 ? 64 : d <= 128 ? 128 : LISTS_COLUMNS;
}

static inline void lists_edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t h = call->dim[ATTENTION_BLOCKS_DIM_H], bundle = lists_divisor(h / call->dim[ATTENTION_BLOCKS_DIM_HK],
                                                                                h / call->dim[ATTENTION_BLOCKS_DIM_HL]);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_D, 64);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_D, 128);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SQ, LISTS_SIDE / bundle);
    trine_kernel_edge(edges, ATTENTION_BLOCKS_DIM_SK, LISTS_SIDE);
}

#endif
