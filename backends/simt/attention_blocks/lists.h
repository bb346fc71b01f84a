/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of attention by lists and its gradient passes to the device side. */
#ifndef TRINE_SIMT_ATTENTION_BLOCKS_LISTS_H
#define TRINE_SIMT_ATTENTION_BLOCKS_LISTS_H

#include "backends/simt/core/params.h"

/* Rows and keys of a tile; columns at most; and entries of a chunk, whose blocks are counted together. */
enum { LISTS_SIDE = 64, LISTS_COLUMNS = 256, LISTS_CHUNK = 2048 };

enum { LISTS_F32, LISTS_BF16, LISTS_F16 }; /* the call's type */

/* Threads of a block by mma.sync, and its shared memory: queries, keys and values of d columns; and what tells of them,
 * twice. */
enum { LISTS_MMA_THREADS = 128, LISTS_MMA_LINES = 9 << 10 };
#define LISTS_MMA_BYTES(d) (3 * LISTS_SIDE * 2 * (d))

/* A tensor of tokens and heads, or of heads and tokens: strides in elements. */
typedef struct lists_tensor {
    void *data; /* NULL: absent */
    int64_t batch, token, head;
} lists_tensor;

/* Of starts, indices and biases: an element of each list, or entry. */
typedef struct lists_rows {
    void *data; /* NULL: absent */
    int64_t batch, head;
} lists_rows;

/* An entry, seen from its block of keys. */
typedef struct lists_visit {
    int32_t list, entry;
} lists_visit;

typedef struct lists_params {
    lists_tensor q, k, v, o, lse;
    lists_rows starts, indices, bias;
    int32_t b, sq, sk, h, hk, hl, d;
    int32_t query_block, key_block, blocks, entries;
    /* Heads of a bundle, which have their list and their keys in common; bundles, and those of a head of keys and of
     * lists; lists of queries that there are; tiles of a list's rows, and of a block of keys; blocks of keys. */
    int32_t bundle, bundles, key_bundles, list_bundles, lists, tiles, key_tiles, key_blocks;
    int32_t type;
    float scale, softcap;
    bool causal;
    bool wide; /* 16 bytes of a row of q, k, v and o are one aligned access */
    /* The gradient's. */
    lists_tensor dout, dq, dk, dv;
    lists_rows dbias;
    float *delta;        /* of b h sq */
    float *partial;      /* of dbias, for each bundle and tile: b bundles tiles entries */
    int32_t *counts;     /* of each chunk: b hl chunks key_blocks */
    int32_t *begins;     /* b hl key_blocks+1 */
    lists_visit *visits; /* b hl entries */
    int32_t chunks;
} lists_params;

#endif
