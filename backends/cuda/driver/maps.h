/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps, by which sm_90a copies boxes. */
#ifndef TRINE_CUDA_MAPS_H
#define TRINE_CUDA_MAPS_H

#include "driver.h"
#include "backends/cuda/tile/map.h"

/* A tensor as copies see it, in boxes of rows of 128 bytes under the 128-byte swizzle. */
typedef struct cuda_map {
    trine_dtype dtype;
    void *data;
    int64_t shape[3], line, batch; /* innermost first; strides in bytes */
    int width, rows;               /* of a box */
    CUtensorMapL2promotion fetch;  /* the bytes that L2 asks memory for at once */
} cuda_map;

/* Patches of images, channels innermost, as copies see them: of so many positions one pixel each, in the order of their
 * numbers, rows of 128 bytes under the same swizzle. Position 0 along an axis begins at place `first`, the last of
 * `positions` at first + (positions - 1) step; what lies outside the image is 0. */
typedef struct cuda_patches {
    trine_dtype dtype;
    void *data;
    int64_t shape[4], stride[3]; /* channels, width, height, images; strides in bytes of all but the first */
    int64_t first[2], positions[2], step[2]; /* along width and height */
    int width, rows;                         /* channels of a box, and its positions */
} cuda_patches;

/* The device's context is current. */
trine_status cuda_map_encode(const cuda_driver *driver, const cuda_map *m, tensor_map *map_out);
trine_status cuda_map_encode_patches(const cuda_driver *driver, const cuda_patches *m, tensor_map *map_out);

/* Can a map have these positions, and copies taps as far as `reach` from a position's first (cuTensorMapEncodeIm2col,
 * and PTX ISA 9.0 on im2col offsets, both for images)? */
static inline bool cuda_patches_fit(const cuda_patches *m, const int64_t reach[2]) {
    enum { CORNER = 128, REACH = 256, STEP = 8 };
    for (int d = 0; d < 2; d++) {
        const int64_t lower = m->first[d], upper = lower + (m->positions[d] - 1) * m->step[d] + 1 - m->shape[1 + d];
        if (lower < -CORNER || lower >= CORNER || upper < -CORNER || upper >= CORNER || reach[d] >= REACH ||
            m->step[d] > STEP)
            return false;
    }
    return true;
}

#endif
