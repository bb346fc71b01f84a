/* SPDX-License-Identifier: Apache-2.0 */
/* What hash_encode and its gradient share on the CPU: a vector has one axis of as many places, whose corners in a level
 * are found together; features are read one by one. */
#ifndef TRINE_CPU_FIELD_GRID_H
#define TRINE_CPU_FIELD_GRID_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/field/grid.h"

enum { GRID_BLOCK = 256 /* places of a task, whose levels are taken one after the other */ };

typedef struct grids {
    const trine_call *call;
    const trine_tensor *x, *table, *offsets, *y; /* y: or dy */
    const trine_tensor *dx, *dtable;             /* NULL: not wanted */
    int64_t n, d, e, f, l;
    float scale[GRID_LEVELS];
    bool smooth;
    float *sum;  /* of a gradient: rows of the table in f32, */
    int64_t row; /* so many elements apart */
    int parts;   /* that a level's rows are divided into */
} grids;

typedef struct grid_level {
    int64_t first;
    uint32_t m, resolution;
    float scale;
    bool dense;
} grid_level;

/* Places in a level: the corner below each, weights along the axes, and their slopes. */
typedef struct grid_places {
    vu at[GRID_DIMS];
    vf along[GRID_DIMS][2], slope[GRID_DIMS];
    vi astray; /* NaN */
} grid_places;

static inline int64_t grid_offset(const grids *g, int64_t level) {
    return g->offsets->dtype == TRINE_I64 ? ((const int64_t *)g->offsets->data)[level]
                                          : ((const int32_t *)g->offsets->data)[level];
}

static inline grid_level grid_level_of(const grids *g, int64_t level) {
    grid_level v = { .first = grid_offset(g, level), .scale = g->scale[level] };
    v.m = (uint32_t)(grid_offset(g, level + 1) - v.first);
    v.resolution = grid_resolution(v.scale);
    v.dense = grid_dense(v.resolution, g->d, v.m);
    return v;
}

/* Offsets that are none are told of before anything is written. */
static inline trine_status grid_check(const grids *g) {
    const char *op = g->call->plan->spec->name;
    int64_t before = 0;
    for (int64_t level = 0; level <= g->l; level++) {
        const int64_t at = grid_offset(g, level);
        if (at < before || at > g->e)
            return g->call->host->error(
                TRINE_ERR_ARGUMENT, "%s: offsets[%" PRId64 "] is %" PRId64 ", but must be in %" PRId64 " .. %" PRId64,
                op, level, at, before, g->e);
        before = at;
    }
    return TRINE_OK;
}

/* The coordinates of up to VL places; of the first in place of those that there are not. */
INLINE void grid_coordinates(const grids *g, int64_t i, int count, int d, vf *x) {
    const float *from = (const float *)g->x->data + i * g->x->stride[0];
    for (int k = 0; k < d; k++) {
        float axis[VL];
        for (int lane = 0; lane < VL; lane++) axis[lane] = from[(lane < count ? lane : 0) * g->x->stride[0] + k];
        x[k] = vload(axis, TRINE_F32, 0);
    }
}

INLINE vf grid_weight_along(vf t, bool smooth) { return smooth ? t * t * (3.0f - 2.0f * t) : t; }

INLINE grid_places grid_places_of(const grids *g, const grid_level *v, const vf *x, int d) {
    grid_places p;
    p.astray = viset(0);
    for (int k = 0; k < d; k++) {
        const vi nan = x[k] != x[k], outside = (x[k] < 0.0f) | (x[k] > 1.0f);
        const vf inside = vmin(vset(1), vmax(vsel(nan, vzero(), x[k]), vzero())),
                 at = vproduct(inside, vset(v->scale)) + 0.5f;
        const vi cell = __builtin_convertvector(at, vi);
        const vf t = at - __builtin_convertvector(cell, vf), rest = 1.0f - t;
        p.astray |= nan;
        p.at[k] = (vu)cell;
        p.along[k][0] = grid_weight_along(rest, g->smooth), p.along[k][1] = grid_weight_along(t, g->smooth);
        p.slope[k] = vsel(outside, vzero(), g->smooth ? 6.0f * t * rest * v->scale : vset(v->scale));
    }
    return p;
}

/* Rows of a corner, counted from the level's first. */
INLINE vu grid_rows(const grid_level *v, const grid_places *p, int q, int d) {
    static const uint32_t prime[GRID_DIMS] = GRID_PRIMES;
    vu sum = { 0 };
    uint32_t stride = 1;
    for (int k = 0; k < d; k++) {
        const vu corner = p->at[k] + (uint32_t)(q >> k & 1);
        sum = v->dense ? sum + corner * stride : sum ^ corner * prime[k];
        stride *= v->resolution;
    }
    if ((v->m & (v->m - 1)) == 0) return sum & (v->m - 1);
    if (v->dense && !vany((vi)(sum >= v->m))) return sum;
    for (int lane = 0; lane < VL; lane++) sum[lane] %= v->m;
    return sum;
}

/* The weight of a corner; but for axis `without`, if there is one, of which the sign of its slope. */
INLINE vf grid_weight(const grid_places *p, int q, int d, int without) {
    vf w = vset(without >= 0 && (q >> without & 1) == 0 ? -1.0f : 1.0f);
    for (int k = 0; k < d; k++)
        if (k != without) w *= p->along[k][q >> k & 1];
    return w;
}

/* Feature k of a row of each lane; element k of `level` of VL places from i on. */
INLINE vf grid_gather(const trine_tensor *table, const grid_level *v, vu row, int64_t k, trine_dtype T) {
    const int64_t first = v->first * table->stride[0] + k;
    float x[VL];
    uint16_t h[VL];
    for (int lane = 0; lane < VL; lane++) {
        const int64_t at = first + row[lane] * table->stride[0];
        if (T == TRINE_F32)
            x[lane] = ((const float *)table->data)[at];
        else
            h[lane] = ((const uint16_t *)table->data)[at];
    }
    return T == TRINE_F32 ? vload(x, T, 0) : vload(h, T, 0);
}
INLINE int64_t grid_place(const trine_tensor *y, int64_t i, int64_t level, int64_t k) {
    return i * y->stride[0] + level * y->stride[1] + k;
}

static inline grids grids_of(const trine_call *call, const trine_tensor *x, const trine_tensor *table,
                             const trine_tensor *offsets, const trine_tensor *y, float per_level_scale,
                             int32_t base_resolution) {
    grids g = { .call = call, .x = x, .table = table, .offsets = offsets, .y = y };
    g.n = y->shape[0], g.l = y->shape[1], g.f = y->shape[2], g.d = x->shape[1], g.e = table->shape[0];
    grid_scales(base_resolution, per_level_scale, g.l, g.scale);
    return g;
}

/* Calls body(..., d, T) with constants. */
#define GRID_DIMS_OF(body, T, ...) \
    do { \
        if (g->d == 2) \
            body(__VA_ARGS__, 2, T); \
        else if (g->d == 3) \
            body(__VA_ARGS__, 3, T); \
        else \
            body(__VA_ARGS__, 4, T); \
    } while (0)
#define FOR_GRID(body, ...) \
    do { \
        if (g->table->dtype == TRINE_F32) \
            GRID_DIMS_OF(body, TRINE_F32, __VA_ARGS__); \
        else if (g->table->dtype == TRINE_BF16) \
            GRID_DIMS_OF(body, TRINE_BF16, __VA_ARGS__); \
        else \
            GRID_DIMS_OF(body, TRINE_F16, __VA_ARGS__); \
    } while (0)

#endif
