/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of attention and its gradient pass to their device sides. */
#ifndef TRINE_CUDA_ATTENTION_H
#define TRINE_CUDA_ATTENTION_H

#include "backends/simt/attention/attention_options.h"

/* Strides in elements; the last dimension, if there is one, is contiguous. */
typedef struct attention_tensor {
    void *data;
    int64_t batch, token, head;
} attention_tensor;

/* What a call attends to, and how. */
typedef struct attention_problem {
    const int32_t *cu_q, *cu_k;     /* NULL: b sequences of sq and sk */
    const int32_t *used_q, *used_k; /* NULL: all tokens of a sequence count */
    int32_t nseq, b, sq, sk, h, group, d;
    int32_t before, after; /* windows to the left and to the right: 0 none; less than sq + sk */
    bool causal;
    bool simple; /* neither windows nor sequences nor used lengths */
    float scale, softcap;
    attention_options options;
} attention_problem;

typedef struct attention_params {
    attention_problem at;
    attention_tensor q, k, v, o, lse; /* lse.data: NULL if absent */
    int32_t tiles, columns;           /* blocks along sq, and along d */
    int32_t bunch;                    /* heads whose tiles go together */
    float unit, spread;               /* a score is `unit` times what the softmax is taken of; spread = unit log2(e) */
    /* scale/softcap: tanh of the product times this is taken first; 0: the product's sign is turned */
    float bend;
    bool bends; /* either of that */
    bool hides; /* some queries may see keys that their neighbours do not */
    bool wide;  /* 16 bytes of a row of q, k, v and o are one aligned access */
} attention_params;

/* Few queries to many keys: tiles of up to 16 rows, `tokens` of `heads` each, that share a head of keys. */
typedef struct attention_decode_params {
    attention_params call;
    float *sums;                                  /* of each tile, part and row; unless there is one part */
    int32_t tokens, heads, head_tiles, row_tiles; /* row_tiles: of a key head, head_tiles for each group of tokens */
    int32_t parts;                                /* of the keys, a block each */
} attention_decode_params;

typedef struct attention_backward_params {
    attention_problem at;
    attention_tensor dout, q, k, v, o, lse, dq, dk, dv;
    attention_tensor delta; /* f32, as lse: dout.o of each row */
    void *dbias, *dsinks;   /* NULL: absent; of the types of bias and sinks */
    int64_t dbias_batch, dbias_head, dbias_query;
    int32_t tiles, columns; /* of this launch: blocks along sq or sk, and along d */
    /* a score in powers of 2 is `spread` times the product, or times tanh(bend product) if that is not 0 */
    float bend, spread;
    bool wide; /* 16 bytes of a row of any tensor but lse and delta are one aligned access */
} attention_backward_params;

/* Beside the tensors, in the workspace:
 * lift, delta: of each row of each head, up to a whole tile of queries: 24 - lse in powers of 2, and dout.o;
 * dq: floats of each tile of queries; `turns` counts the blocks of keys that have added to them;
 * dkv: if heads of a group are divided, floats of dk and dv of each tile of keys and part. */
typedef struct attention_backward_mma_params {
    attention_backward_params call; /* tiles: of queries; columns: tiles of keys */
    float *lift, *dq, *dkv;
    /* spoilt: tiles of keys with NaN or Inf in dk or dv; astray: offsets make no sense */
    int32_t *turns, *spoilt, *ticket, *astray;
    /* parts of groups of heads of all batches; those whose queries are read at the same time */
    int32_t planes, bunch;
    int32_t parts, share; /* of a group; heads of each */
    /* tasks take keys in descending order and queries in ascending order, not the other way round */
    bool rises;
} attention_backward_mma_params;

/* Of this size and more an lse is too coarse for p = exp(z - lse), which is held to 1 (spec/attention/attention.h). */
#define ATTENTION_COARSE 0x1p17f

enum {
    ATTENTION_THREADS = 256, /* of a block of the kernels without tensor cores */
    ATTENTION_SIDE = 64,     /* queries and keys of their tiles */
    ATTENTION_MMA_THREADS = 128,
    ATTENTION_BACKWARD_ENDS = 256, /* of the gradient's launches before and after */
};

/* Decoding: d, and keys that a warp has at hand. */
enum { ATTENTION_DECODE_THREADS = 128 };
#define ATTENTION_DECODE_TILES(X) X(64, 32) X(128, 16)
/* Floats of a row's sums. */
#define ATTENTION_DECODE_RECORD(D) ((D) + 4)

/* The kernels by mma.sync: d, keys of a tile that is copied, matrices of 16 queries in a warp, and stages of a tile of
 * keys and one of values. */
#define ATTENTION_MMA_TILES(X) X(64, 64, 2, 2) X(128, 64, 2, 1) X(256, 64, 1, 1)
/* Those of them that have options. */
#define ATTENTION_MMA_OPTIONS_TILES(X) X(64, 64, 1, 2) X(128, 64, 1, 1) X(256, 64, 1, 1)
/* Their shared memory: so many times 64 queries, and the stages. */
#define ATTENTION_MMA_BYTES(D, KEYS, R, STAGES) (2 * (D) * (ATTENTION_SIDE * (R) + 2 * (KEYS) * (STAGES)))
/* Those of its gradient: a name, d, keys and queries of a tile, stages of these, and warps;
 * and what needs no more than 99 KB of shared memory. */
#define ATTENTION_BACKWARD_MMA_TILES(X) X(mma, 64, 128, 128, 2, 8) X(mma, 128, 128, 64, 2, 8) X(mma, 256, 64, 64, 1, 8)
#define ATTENTION_BACKWARD_SLIM_TILES(X) \
    X(slim, 64, 128, 64, 2, 8) X(slim, 128, 64, 32, 2, 8) X(slim, 256, 32, 32, 1, 4)
/* Their shared memory: k and v; stages of q, dout and their two statistics; p and ds; what keys see. */
#define ATTENTION_BACKWARD_MMA_BYTES(D, KEYS, QUERIES, STAGES) \
    (4 * (D) * (KEYS) + (STAGES) * (QUERIES) * (4 * (D) + 8) + 4 * (QUERIES) * ((KEYS) < 64 ? 64 : (KEYS)) + 8 * (KEYS))

#endif
