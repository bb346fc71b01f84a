/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of attention's gradient passes to the kernels for sm_90a. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_SM90_H
#define TRINE_CUDA_ATTENTION_BACKWARD_SM90_H

#include "attention.h"
#include "backends/cuda/tile/map.h"

/* Beside the tensors, in the workspace:
 * lift, delta: of each row of each head, up to a whole tile of queries: 24 - lse in powers of 2, and dout.o;
 * dq: floats of each tile of queries, 64 by 64 for each consumer; `turns` counts the blocks of keys that have added to
 * them;
 * dkv: if heads of a group are divided, floats of dk and dv of each tile of keys and part. */
typedef struct attention_backward_sm90_params {
    tensor_map dout_map, q_map, k_map, v_map;
    attention_backward_params call; /* tiles: of queries; columns: tiles of keys */
    float *lift, *dq, *dkv;
    /* spoilt: tiles of keys with NaN or Inf in dk or dv; astray: offsets make no sense */
    int32_t *turns, *spoilt, *ticket, *astray;
    /* dout, q, k, v: a tensor that copies cannot read, since it does not begin at 16 bytes */
    bool moved[4];
    /* parts of groups of heads, and of columns, of all batches; those whose queries are read at the same time */
    int32_t planes, bunch;
    int32_t parts, share; /* of a group; heads of each */
} attention_backward_sm90_params;

enum { ATTENTION_BACKWARD_KEYS = 128, ATTENTION_BACKWARD_THREADS = 384 };

/* For heads of up to D columns: D, queries of a tile. */
#define ATTENTION_BACKWARD_SM90_TILES(X) X(64, 128) X(128, 64) X(256, 64)

/* The columns of dq, dk and dv that a block sums. */
#define ATTENTION_BACKWARD_WIDTH(D) ((D) < 128 ? (D) : 128)

/* The bytes of all shared memory: k and v; stages of q, dout, ds, lift and delta; dq, if it has room of its own;
 * the task, barriers. */
#define ATTENTION_BACKWARD_SM90_BYTES(D, QUERIES) \
    (512 * (D) + 16 + 8 * 11 + (QUERIES) * 8 + \
     ((D) > 128 ? (QUERIES) * (768 + 512 + 256 + 4) + 8 * 6 : (QUERIES) * (8 * (D) + 512 + 8) + 65536 + 8 * 8))

#endif
