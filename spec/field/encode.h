/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of hash_encode and of its gradient share: the corners of a place, with their weights. */
#ifndef TRINE_SPEC_FIELD_ENCODE_H
#define TRINE_SPEC_FIELD_ENCODE_H

#include "grid.h"
#include "spec/near.h"

typedef struct grid {
    const double *x, *table, *offsets;
    int64_t n, d, e, f, l;
    float scale[GRID_LEVELS];
    bool smooth;
} grid;

/* A place in a level: rows of its corners, weights along the axes, and their slopes. */
typedef struct grid_cell {
    int64_t corners;
    int64_t row[GRID_CORNERS];
    double along[GRID_DIMS][2], slope[GRID_DIMS];
    bool none, astray; /* a level without rows; a place that is NaN */
} grid_cell;

static inline grid grid_of(const trine_ref *ref, float per_level_scale, int32_t base_resolution,
                           int32_t interpolation) {
    grid g = { .x = trine_ref_value(ref, "x"),
               .table = trine_ref_value(ref, "table"),
               .offsets = trine_ref_value(ref, "offsets"),
               .n = trine_ref_dim(ref, "n"),
               .d = trine_ref_dim(ref, "d"),
               .e = trine_ref_dim(ref, "e"),
               .f = trine_ref_dim(ref, "f"),
               .l = trine_ref_dim(ref, "l"),
               .smooth = interpolation == TRINE_INTERPOLATION_SMOOTHSTEP };
    grid_scales(base_resolution, per_level_scale, g.l, g.scale);
    return g;
}

static inline double grid_smooth(const grid *g, double t) { return g->smooth ? t * t * (3 - 2 * t) : t; }

static inline grid_cell grid_cell_of(const grid *g, int64_t i, int64_t level) {
    static const uint32_t prime[GRID_DIMS] = GRID_PRIMES;
    const int64_t first = (int64_t)g->offsets[level], m = (int64_t)g->offsets[level + 1] - first;
    grid_cell c = { .corners = (int64_t)1 << g->d, .none = m <= 0 };
    uint32_t at[GRID_DIMS] = { 0 };
    for (int64_t k = 0; k < g->d; k++) {
        const double x = g->x[i * g->d + k], inside = x < 0 ? 0 : x > 1 ? 1 : x;
        c.astray |= isnan(x) != 0;
        if (isnan(x)) continue;
        /* a product of two f32 is exact in f64, and so is what their sum rounds from */
        const float product = (float)(inside * g->scale[level]), p = (float)(product + 0.5);
        at[k] = (uint32_t)p;
        const double t = (double)p - at[k];
        c.along[k][0] = grid_smooth(g, 1 - t), c.along[k][1] = grid_smooth(g, t);
        c.slope[k] = x < 0 || x > 1 ? 0 : g->scale[level] * (g->smooth ? 6 * t * (1 - t) : 1);
    }
    if (c.none || c.astray) return c;
    const uint32_t resolution = grid_resolution(g->scale[level]);
    const bool dense = grid_dense(resolution, g->d, (uint32_t)m);
    for (int64_t q = 0; q < c.corners; q++) {
        uint32_t sum = 0, hash = 0, stride = 1;
        for (int64_t k = 0; k < g->d; k++) {
            const uint32_t corner = at[k] + (q >> k & 1);
            sum += corner * stride;
            hash ^= corner * prime[k];
            stride *= resolution;
        }
        c.row[q] = first + (dense ? sum : hash) % (uint32_t)m;
    }
    return c;
}

/* The weight of a corner; but for axis `without`, of which the sign of its slope. */
static inline double grid_weight(const grid *g, const grid_cell *c, int64_t q, int64_t without) {
    double w = 1;
    for (int64_t k = 0; k < g->d; k++) w *= k != without ? c->along[k][q >> k & 1] : q >> k & 1 ? 1 : -1;
    return w;
}

#define GRID_PARAMS \
    PARAM(per_level_scale, F32, .values = "2 1.5 1.3819 1", .fallback = 2, .min = 1, .max = 16, \
          .doc = "growth of the resolution from each level to the next"), \
        PARAM(base_resolution, I32, .values = "4 16 1 3", .fallback = 16, .min = 0, .max = 1 << 24, \
              .doc = "resolution of the first level"), \
        PARAM(interpolation, ENUM, .values = "linear smoothstep", .doc = "TRINE_INTERPOLATION_*: along each axis")
#define GRID_REQUIRE "d >= 2", "d <= 4", "f >= 1", "f <= 8", "l <= 32", "e <= 2147483647"
#define GRID_TYPES { "T=f32|bf16|f16 I=i32|i64" }
#define GRID_SIZES { "n: 7 0 1 33 300", "d: 3 2 4", "e: 500 0 1 64 4096", "l: 4 1 2 9 0", "f: 2 1 4 8 3" }

#endif
