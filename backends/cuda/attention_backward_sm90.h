/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of attention's gradient passes to the kernels for sm_90a. */
#ifndef TRINE_CUDA_ATTENTION_BACKWARD_SM90_H
#define TRINE_CUDA_ATTENTION_BACKWARD_SM90_H

#include "attention.h"
#include "tile/map.h"

/* Beside the tensors, in the workspace:
 * lift, delta: of each row of each head, up to a whole tile of queries: 24 - lse in powers of 2, and dout.o;
 * dq: floats of each tile of queries, as two warpgroups have them, of which `turns` counts those that have been added;
 * dkv: if heads of a group are divided, floats of dk and dv of each tile of keys and part. */
typedef struct attention_backward_sm90_params {
    tensor_map dout_map, q_map, k_map, v_map;
    attention_backward_params call; /* tiles: of queries; columns: tiles of keys */
    float *lift, *dq, *dkv;
    int32_t *turns, *spoilt, *ticket, *astray; /* spoilt: tiles of keys with NaN or Inf in dk or dv; astray: offsets make no sense */
    bool moved[4];                             /* dout, q, k, v: a tensor that copies cannot read, since it does not begin at 16 bytes */
    int32_t planes, bunch;                     /* parts of groups of heads of all batches; those whose queries are read at the same time */
    int32_t parts, share;                      /* of a group; heads of each */
} attention_backward_sm90_params;

enum { ATTENTION_BACKWARD_KEYS = 128, ATTENTION_BACKWARD_THREADS = 384, ATTENTION_BACKWARD_ENDS = 256 };

/* For heads of up to D columns: D, queries of a tile, stages of q and dout. */
#define ATTENTION_BACKWARD_SM90_TILES(X) X(64, 128, 2) X(128, 64, 2)

/* The bytes of all shared memory: k, v, stages of q and dout, two tiles of ds, dq, statistics of the stages, the task, barriers. */
#define ATTENTION_BACKWARD_SM90_BYTES(D, QUERIES, STAGES) \
    (512 * (D) + (STAGES) * 4 * (QUERIES) * (D) + 512 * (QUERIES) + 4 * (QUERIES) * (D) + (STAGES) * 8 * (QUERIES) + 16 + 56 + (STAGES) * 32)

#endif
