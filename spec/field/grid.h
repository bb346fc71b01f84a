/* SPDX-License-Identifier: Apache-2.0 */
/* The grids of a hash encoding: their scales, which the host computes for all kernels, and of references the corners of
 * a place. */
#ifndef TRINE_SPEC_FIELD_GRID_H
#define TRINE_SPEC_FIELD_GRID_H

#include <stdint.h>

enum { GRID_LEVELS = 32, GRID_DIMS = 4, GRID_CORNERS = 1 << GRID_DIMS, GRID_FEATURES = 8 };

/* Factors of the coordinates in a hash; Muller et al. 2022, section 3. */
#define GRID_PRIMES { 1u, 2654435761u, 805459861u, 3674653429u }

/* s[l] of each of `levels`. */
static inline void grid_scales(int32_t base_resolution, float per_level_scale, int64_t levels, float *scale) {
    double resolution = base_resolution;
    for (int64_t l = 0; l < levels; l++) {
        const double bounded = resolution < 0x1p24 ? resolution : 0x1p24;
        scale[l] = (float)(bounded - 1);
        resolution = bounded * per_level_scale;
    }
}

/* r of a level. */
static inline uint32_t grid_resolution(float scale) {
    const uint32_t whole = (uint32_t)scale;
    return whole + ((float)whole < scale) + 1;
}

/* Has a level of m rows one for each corner? */
static inline int grid_dense(uint32_t resolution, int64_t dims, uint32_t m) {
    uint64_t corners = 1;
    for (int64_t k = 0; k < dims && corners <= m; k++) corners *= resolution;
    return corners <= m;
}

#endif
