/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of convolutions by mma.sync, which the host chooses from. */
#ifndef TRINE_CUDA_CONV_MMA_SHAPES_H
#define TRINE_CUDA_CONV_MMA_SHAPES_H

enum {
    CONV_MMA_THREADS = 128,
    CONV_MMA_STAGES = 3,
    CONV_MMA_STEP = 64 /* elements of patches, or positions, of a step: 128 bytes */
};
#define CONV_MMA_BYTES(rows, columns) (((rows) + (columns)) * 128 * CONV_MMA_STAGES)
/* Of a forward's rows of positions, besides. */
#define CONV_MMA_TABLE(rows) ((rows) * 20)

/* Rows, columns, and blocks that an SM holds: of gradients, and of the forward. */
#define CONV_MMA_GRADIENT_SHAPES(SHAPE) SHAPE(128, 128, 2) SHAPE(64, 64, 4)
#define CONV_MMA_SHAPES(SHAPE) CONV_MMA_GRADIENT_SHAPES(SHAPE) SHAPE(128, 64, 3)

#endif
