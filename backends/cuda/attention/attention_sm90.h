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

/* For heads of up to D columns: D, queries and keys of a tile, stages for tiles of k and of v, blocks of which an SM is
 * full; microseconds of a step of keys, and of what else a tile takes, in an SM that is full (H200). */
#define ATTENTION_SM90_TILES(X) \
    X(64, 192, 128, 4, 1, 1.85, 2.40) \
    X(64, 128, 208, 3, 1, 2.11, 1.64) \
    X(64, 64, 128, 3, 2, 1.36, 1.60) \
    X(64, 64, 64, 4, 3, 1.00, 2.09) \
    X(96, 192, 80, 3, 1, 1.43, 2.43) \
    X(96, 128, 128, 3, 1, 1.54, 1.95) \
    X(96, 64, 64, 3, 2, 1.01, 2.16) \
    X(128, 128, 128, 3, 1, 1.69, 2.82) \
    X(128, 128, 112, 3, 1, 1.51, 2.82) \
    X(128, 64, 64, 3, 2, 1.06, 2.68) \
    X(256, 128, 80, 2, 1, 1.57, 9.0)
/* With a softcap, whose tanh takes more registers and most of the time. */
#define ATTENTION_SM90_BENT_TILES(X) \
    X(64, 128, 128, 4, 1, 4.6, 3) X(128, 128, 128, 3, 1, 5.0, 3) X(256, 128, 64, 2, 1, 3.3, 9)
/* Queries and keys of all of them. */
#define ATTENTION_SM90_SHAPES(X) \
    X(192, 128) X(192, 80) X(128, 208) X(128, 128) X(128, 112) X(128, 80) X(128, 64) X(64, 128) X(64, 64)

/* A row of shared memory is of panels of 64 columns. */
#define ATTENTION_SM90_PANELS(D) (((D) + 63) / 64)
/* Consumers look up what a tile is of until it is written, when the producer may be two ahead. */
enum { ATTENTION_SM90_TASKS = 4 };
/* The bytes of all shared memory: q, the stages, tasks, barriers. */
#define ATTENTION_SM90_BYTES(D, QUERIES, KEYS, STAGES) \
    (ATTENTION_SM90_PANELS(D) * 128 * ((QUERIES) + 2 * (STAGES) * (KEYS)) + 32 * ATTENTION_SM90_TASKS + 16 + \
     (STAGES) * 32)

#endif
