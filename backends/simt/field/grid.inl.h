/* SPDX-License-Identifier: Apache-2.0 */
/* Device side that hash_encode and its gradient share: a thread has a place, in one level or in all. */
#ifndef TRINE_SIMT_FIELD_GRID_INL_H
#define TRINE_SIMT_FIELD_GRID_INL_H

#include "grid.h"
#include "backends/simt/core/quotient.h"

/* Rows from `first` on; m is 0 of a level without rows, and of one whose offsets are astray. */
struct grid_level {
    int64_t first;
    uint32_t m, resolution;
    float scale;
    bool dense, astray;

    DEVICE grid_level(const grid_params &p, int64_t level, int d) {
        first = load_integer(p.offsets, p.wide_offsets, level);
        const int64_t end = load_integer(p.offsets, p.wide_offsets, level + 1);
        astray = first < 0 || end < first || end > p.e;
        m = astray ? 0 : (uint32_t)(end - first);
        scale = p.scale[level];
        resolution = (uint32_t)scale;
        resolution += ((float)resolution < scale) + 1;
        uint64_t corners = 1;
        for (int k = 0; k < d && corners <= m; k++) corners *= resolution;
        dense = corners <= m;
    }
};

/* A place in a level: the corner below it, weights along the axes, and their slopes. */
template <int D> struct grid_place {
    uint32_t at[D];
    float along[D][2], slope[D];
    bool astray; /* NaN */

    DEVICE grid_place(const grid_params &p, const grid_level &v, int64_t i) {
        astray = false;
#pragma unroll
        for (int k = 0; k < D; k++) {
            const float x = ((const float *)p.x.data)[i * p.x.row + k];
            const bool nan = x != x, outside = x < 0.0f || x > 1.0f;
            const float inside = nan || x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
            const float place = product(inside, v.scale) + 0.5f;
            at[k] = (uint32_t)place;
            const float t = place - (float)at[k], rest = 1.0f - t;
            astray |= nan;
            along[k][0] = p.smooth ? rest * rest * (3.0f - 2.0f * rest) : rest;
            along[k][1] = p.smooth ? t * t * (3.0f - 2.0f * t) : t;
            slope[k] = outside ? 0.0f : p.smooth ? 6.0f * t * rest * v.scale : v.scale;
        }
    }

    /* The row of a corner, counted from the level's first, which has some. */
    DEVICE uint32_t row(const grid_level &v, int q) const {
        constexpr uint32_t prime[4] = GRID_PRIMES;
        uint32_t sum = 0, stride = 1;
#pragma unroll
        for (int k = 0; k < D; k++) {
            const uint32_t corner = at[k] + (q >> k & 1);
            sum = v.dense ? sum + corner * stride : sum ^ corner * prime[k];
            stride *= v.resolution;
        }
        if ((v.m & (v.m - 1)) == 0) return sum & (v.m - 1);
        return sum < v.m ? sum : sum % v.m;
    }

    /* The weight of a corner; but for axis `without`, if there is one, of which the sign of its slope. */
    DEVICE float weight(int q, int without = -1) const {
        float w = 1;
#pragma unroll
        for (int k = 0; k < D; k++) w *= k != without ? along[k][q >> k & 1] : q >> k & 1 ? 1.0f : -1.0f;
        return w;
    }
};

/* Features k < f of row `row` of an array of rows, and 0 behind them. */
template <class T> DEVICE void grid_load(float (&v)[GRID_FEATURES], const void *data, int64_t at, int64_t f) {
#pragma unroll
    for (int k = 0; k < GRID_FEATURES; k++) v[k] = k < f ? load_one<T>(data, at + k) : 0.0f;
}

#endif
