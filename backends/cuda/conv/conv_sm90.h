/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of convolutions pass to their kernels for sm_90a. */
#ifndef TRINE_CUDA_CONV_SM90_H
#define TRINE_CUDA_CONV_SM90_H

#include "backends/cuda/matmul/rows_sm90.h"
#include "backends/simt/conv/conv.h"

/* An axis of one residue's positions: position i of them begins at place first + i step, from where tap t is
 * from + t on further, 0 or more; that is tap tap + t every of the weights. It is written at place to + i apart. */
typedef struct conv_sm90_axis {
    int32_t positions, taps, first, step, from, on, tap, every, to, apart;
} conv_sm90_axis;

typedef struct conv_sm90_params {
    tensor_map x, w; /* patches; weights by channel or lane, by the other of these, and by tap */
    conv_params of;
    conv_sm90_axis height, width;
    int32_t rows, pairs;   /* positions of all images; pairs of tiles of them */
    int32_t right;         /* tiles of a group's lanes */
    int32_t units;         /* pairs of tiles of all slices and groups */
    int32_t chunks, steps; /* of 64 channels: of a tap, and of all taps */
    int32_t each;          /* steps of a slice */
    bool whole;            /* what is written in rows is whole pieces of 16 bytes */
    matmul_operand hand;   /* weights, if they or patches do not begin at 16 bytes; data NULL: copies read both */
} conv_sm90_params;

enum { CONV_SM90_STEP = 64, CONV_SM90_NARROW = 64, CONV_SM90_BARRIER = 4 /* of the producer */ };

/* Positions and lanes of a tile: 64 positions are a warpgroup's. */
#define CONV_SM90_SHAPES(SHAPE) \
    SHAPE(128, 64) SHAPE(128, 128) SHAPE(128, 192) SHAPE(128, 256) SHAPE(192, 128) SHAPE(192, 192)
#define CONV_SM90_THREADS(rows) (128 + (rows) * 2)

#endif
