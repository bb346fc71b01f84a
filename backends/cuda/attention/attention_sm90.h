/* SPDX-License-Identifier: Apache-2.0 */
/* What the host side of attention passes to the kernels for sm_90a. */
#ifndef TRINE_CUDA_ATTENTION_SM90_H
#define TRINE_CUDA_ATTENTION_SM90_H

#include "attention.h"
#include "backends/cuda/tile/map.h"

typedef struct attention_sm90_params {
    tensor_map q_map, k_map, v_map;
    attention_params call; /* tiles: of 64 queries for each consumer */
    bool moved[3];         /* a tensor that copies cannot read, since it does not begin at 16 bytes */
    /* heads of all batches; those whose keys and values are to stay in L2 together */
    int32_t planes, bunch;
    int32_t span, slots; /* of a bunch's tiles and of all, where some of a bunch's last may be empty */
} attention_sm90_params;

/* For heads of up to D columns: D, keys of a tile, consumers of 64 queries each, stages for tiles of k and of v. A
 * softcap's tanh takes more registers; short sequences under a causal mask want small tiles. */
#define ATTENTION_SM90_TILES(X) X(64, 128, 3, 4) X(128, 128, 2, 3) X(256, 80, 2, 2)
#define ATTENTION_SM90_BENT_TILES(X) X(64, 128, 2, 4) X(128, 128, 2, 3) X(256, 64, 2, 2)
#define ATTENTION_SM90_SHORT_TILES(X) X(64, 128, 2, 4)

/* The bytes of all shared memory: q, the stages, a task, barriers. */
#define ATTENTION_SM90_BYTES(D, KEYS, GROUPS, STAGES) \
    ((GROUPS) * 128 * (D) + (STAGES) * 4 * (KEYS) * (D) + 48 + (STAGES) * 32)

#endif
