/* SPDX-License-Identifier: Apache-2.0 */
/* What the host passes to device code: plain data of one layout on both sides. */
#ifndef TRINE_SIMT_PARAMS_H
#define TRINE_SIMT_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "ahead.h"

enum { SIMT_THREADS = 256 }; /* of a block, where nothing else is said */

/* What numbers are divided by: those below 2^31 by a product with a multiplier (Granlund and Montgomery 1994). */
typedef struct simt_divisor {
    int64_t by;
    uint32_t multiplier;
    int32_t shift;
} simt_divisor;

/* Dropout's generator, threshold and scale. */
enum { SIMT_PHILOX_ROUNDS = 10 };
#define SIMT_PHILOX_KEY_0 0x9e3779b9u /* what a round adds to the key */
#define SIMT_PHILOX_KEY_1 0xbb67ae85u
typedef struct simt_dropout {
    uint32_t key[SIMT_PHILOX_ROUNDS][2], offset[2];
    uint32_t last; /* an element is kept iff its word is at most this */
    float scale;
    float p; /* 0: keep all */
} simt_dropout;

/* A walk over tensors of one logical shape, dimensions merged wherever all tensors allow. A thread takes one unit: a
 * vector of the last dimension, or one element. Of the output a vector is 16 bytes at most, so that a warp's stores
 * have no gaps: 32 bytes of f32 lost 9 % of copying on an H200. */
enum { SIMT_WALK_TENSORS = 5, SIMT_WALK_RANK = 4 };
enum { SIMT_WALK_FROM, SIMT_WALK_TO }; /* places in a walk from one tensor to another */
typedef struct simt_walk {
    int64_t units;                          /* of all */
    int64_t n;                              /* elements of the last dimension */
    simt_divisor row_units;                 /* of the last dimension */
    simt_divisor shape[SIMT_WALK_RANK - 1]; /* of the others, the innermost last; 1 in front */
    int64_t stride[SIMT_WALK_TENSORS][SIMT_WALK_RANK - 1];
    int64_t step[SIMT_WALK_TENSORS]; /* stride of the last dimension; 0: broadcast */
    void *data[SIMT_WALK_TENSORS];   /* NULL: absent */
    simt_ahead ahead;                /* of the first */
    /* of a unit: 1, or if the last dimension is contiguous or broadcast and every row aligned 4 or 8 */
    int32_t length;
} simt_walk;

/* A matrix of rows, or a batch of them. */
typedef struct simt_rows {
    void *data;         /* NULL: absent */
    int64_t batch, row; /* strides, in elements */
} simt_rows;

/* Rows in shared memory, each in one block or in parts in the blocks of a cluster (cuda/row_part.h): blocks, and the
 * elements of one, a multiple of 8 if there are several. Shapes of blocks: threads, and how many an SM holds, which
 * says how long a part may be; about 128 bytes of it are a thread's. */
typedef struct simt_part {
    int blocks, length;
} simt_part;
enum { SIMT_PART_BYTES = 228 << 10 }; /* of an SM's shared memory, at most */
#define SIMT_MIDDLE_SHAPES(SHAPE) SHAPE(128, 12) SHAPE(256, 6)
#define SIMT_LONG_SHAPES(SHAPE) SIMT_MIDDLE_SHAPES(SHAPE) SHAPE(512, 3) SHAPE(512, 2)
#define SIMT_PART_SHAPES(SHAPE) SHAPE(64, 24) SIMT_LONG_SHAPES(SHAPE)

/* Rows through shared memory (cuda/ring.h): threads of an SM's blocks, bytes of an SM's rings, and behind a ring where
 * a gradient holds a weight; blocks of a cluster at most, of wide ones too, which are for devices whose blocks have
 * such rings. */
enum {
    SIMT_RING_THREADS = 512,
    SIMT_RING_BYTES = 192 << 10,
    SIMT_RING_BEHIND = 32 << 10,
    SIMT_RING_MOST = 8,
    SIMT_RING_WIDE = 16,
    SIMT_RING_ROWS = 3
};
/* Blocks that an SM holds. */
#define SIMT_RING_HELD(threads) (SIMT_RING_THREADS / (threads))
/* A cluster divides rows of three tensors if an SM holds no more of its blocks than so many: of others each has whole
 * rows. And the most blocks of a cluster, for whose sums a ring's function has room and which the host may launch. */
enum { SIMT_RING_DIVIDED = 3 };
#define SIMT_RING_BLOCKS(threads, three) \
    (!(three)                                      ? SIMT_RING_MOST \
     : SIMT_RING_HELD(threads) > SIMT_RING_DIVIDED ? 1 \
     : (threads) == SIMT_RING_THREADS              ? SIMT_RING_WIDE \
                                                   : SIMT_RING_MOST)
typedef struct simt_ring {
    int blocks, part; /* of a cluster; columns of a block */
    int rows, turns;  /* that a ring holds; of a cluster, of the last ones perhaps one less */
    int64_t clusters;
    bool whole; /* rows are whole vectors (row.h) */
} simt_ring;

#endif
