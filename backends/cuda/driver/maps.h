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

/* The device's context is current. */
trine_status cuda_map_encode(const cuda_driver *driver, const cuda_map *m, tensor_map *map_out);

#endif
