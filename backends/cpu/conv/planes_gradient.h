/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of the weights of small groups on the CPU, over planes of x and dy: lanes are positions along the width,
 * whose products are summed in registers for a few channels of dy by a few elements of patches. A task has some groups
 * and a slice of the blocks of positions; slices' sums are added in their order.
 *
 * Neither blocks nor slices depend on threads. */
#ifndef TRINE_CPU_CONV_PLANES_GRADIENT_H
#define TRINE_CPU_CONV_PLANES_GRADIENT_H

#include "gradient.h"
#include "planes.h"

/* Elements of a tile; blocks of a slice at least. */
enum { GRADIENT_ELEMENTS = 3, SLICE_BLOCKS = 2 };

typedef struct planes_gradient {
    conv_gradient a;
    planes g;
    int64_t blocks, slices;
} planes_gradient;

static inline planes_gradient planes_gradient_of(const conv_gradient *a, const conv_product *forward) {
    planes_gradient s = { .a = *a, .g = planes_of(forward, 1) };
    planes *g = &s.g;
    s.blocks = g->tasks / g->chunks, s.slices = slices_of(g->chunks, s.blocks, SLICE_BLOCKS);
    s.a.slices = s.slices;
    g->fixed_bytes = cpu_round_up(s.slices * a->groups * a->rows * a->columns * 4 + conv_taps(a->x.axis) * 8 + 8, 256);
    g->tasks = g->chunks * s.slices;
    const double flops = 2.0 * (double)a->positions * (double)a->groups * (double)a->rows * (double)a->columns;
    g->team = cpu_team(a->call, g->tasks, (int64_t)fmin(flops / 4, 0x1p62));
    return s;
}

static inline size_t planes_gradient_bytes(const conv_gradient *a, const conv_product *forward) {
    const planes_gradient s = planes_gradient_of(a, forward);
    return (size_t)(s.g.fixed_bytes + s.g.team * s.g.slice);
}

/* Do planes take fewer multiplications of lanes than a product, copies included? */
static inline bool planes_gradient_takes(const conv_gradient *a, const conv_product *forward) {
    if (!planes_fit(forward)) return false;
    const planes g = planes_of(forward, 1);
    const double rows = (double)cpu_round_up(a->rows, a->high), columns = (double)cpu_round_up(a->columns, a->wide),
                 product = (tile_amx(a->kind) ? rows * columns / 8 : rows * columns) +
                           2 * VL * (double)(a->rows + a->columns),
                 waste = (double)cpu_round_up(g.wide, VL) / (double)g.wide;
    return PLANE_COST * (double)a->rows * (double)a->columns * waste + planes_copies(&g) < product;
}

static inline int64_t *planes_gradient_offsets(const planes_gradient *s) {
    const int64_t floats = s->slices * s->a.groups * s->a.rows * s->a.columns;
    return (int64_t *)(void *)((float *)s->a.call->workspace + floats + floats % 2);
}

/* dy as planes, whose rows are as far apart as those of x. */
INLINE void planes_dy(const planes *g, const plane_task *t, trine_dtype T) {
    const conv_view *v = &g->a->y.view;
    const int64_t channels = t->groups * g->a->lanes;
    for (int64_t row = 0; row < t->high; row++)
        plane_copy(t->y + row * g->pitch, g->sums,
                   v->data + t->n * v->batch + t->d * v->axis[0] + (t->h + row) * v->axis[1] + t->w * v->axis[2] +
                       t->group * g->a->lanes * v->channel,
                   v->axis[2], v->channel, t->wide, channels, T);
}

/* `count` channels of dy by `some` elements; `x` has where each of these begins. */
INLINE void gradient_tile(const planes *g, const plane_task *t, const float *const *x, const float *dy, float *to,
                          bool begun, const int count, const int some) {
    vf s[PLANE_CHANNELS][GRADIENT_ELEMENTS];
    const int64_t whole = t->wide / VL * VL;
    const vi there = viota() < (int)(t->wide - whole);
#pragma GCC unroll 4
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int e = 0; e < some; e++) s[r][e] = vzero();
    for (int64_t row = 0; row < t->high * g->pitch; row += g->pitch) {
        for (int64_t i = row; i < row + whole; i += VL) {
            vf value[GRADIENT_ELEMENTS];
#pragma GCC unroll 4
            for (int e = 0; e < some; e++) value[e] = vload(x[e] + i, TRINE_F32, 0);
#pragma GCC unroll 4
            for (int r = 0; r < count; r++) {
                const vf by = vload(dy + r * g->sums + i, TRINE_F32, 0);
#pragma GCC unroll 4
                for (int e = 0; e < some; e++) s[r][e] = vfma(by, value[e], s[r][e]);
            }
        }
        if (whole == t->wide) continue;
        const int64_t i = row + whole;
        vf value[GRADIENT_ELEMENTS];
#pragma GCC unroll 4
        for (int e = 0; e < some; e++) value[e] = (vf)(there & (vi)vload(x[e] + i, TRINE_F32, 0));
#pragma GCC unroll 4
        for (int r = 0; r < count; r++) {
            const vf by = (vf)(there & (vi)vload(dy + r * g->sums + i, TRINE_F32, 0));
#pragma GCC unroll 4
            for (int e = 0; e < some; e++) s[r][e] = vfma(by, value[e], s[r][e]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < count; r++)
#pragma GCC unroll 4
        for (int e = 0; e < some; e++) {
            float *at = to + r * g->a->x.elements + e;
            *at = begun ? *at + vhsum(s[r][e]) : vhsum(s[r][e]);
        }
}

INLINE void gradient_tiles(const planes_gradient *s, const plane_task *t, int64_t group, int64_t lane, float *sums,
                           bool begun, const int count) {
    const planes *g = &s->g;
    const conv_product *a = g->a;
    const int64_t *offset = planes_gradient_offsets(s), channels = a->x.channels, elements = a->x.elements;
    const float *x = t->x + group * channels * g->plane, *dy = t->y + (group * a->lanes + lane) * g->sums;
    float *to = sums + ((t->group + group) * a->lanes + lane) * elements;
    int64_t tap = 0, channel = 0;
    for (int64_t e = 0, some; e < elements; e += some) {
        const float *from[GRADIENT_ELEMENTS];
        some = elements - e >= GRADIENT_ELEMENTS ? GRADIENT_ELEMENTS : 1;
        for (int64_t i = 0; i < some; i++) {
            from[i] = x + offset[tap] + channel * g->plane;
            if (++channel == channels) channel = 0, tap++;
        }
        if (some == GRADIENT_ELEMENTS)
            gradient_tile(g, t, from, dy, to + e, begun, count, GRADIENT_ELEMENTS);
        else
            gradient_tile(g, t, from, dy, to + e, begun, count, 1);
    }
}

static inline void gradient_group(const planes_gradient *s, const plane_task *t, int64_t group, float *sums,
                                  bool begun) {
    const int64_t lanes = s->g.a->lanes, blocks = conv_up(lanes, PLANE_CHANNELS);
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t lane = lanes * b / blocks;
        switch (lanes * (b + 1) / blocks - lane) {
        case 1: gradient_tiles(s, t, group, lane, sums, begun, 1); break;
        case 2: gradient_tiles(s, t, group, lane, sums, begun, 2); break;
        case 3: gradient_tiles(s, t, group, lane, sums, begun, 3); break;
        default: gradient_tiles(s, t, group, lane, sums, begun, 4);
        }
    }
}

static inline void planes_gradient_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const planes_gradient *s = context;
    const planes *g = &s->g;
    const conv_product *a = g->a;
    char *memory = (char *)a->call->workspace + g->fixed_bytes + thread * g->slice;
    plane_task t = { .x = (float *)(void *)memory, .y = (float *)(void *)(memory + g->x_bytes) };
    for (int64_t i = first; i < last; i++) {
        const int64_t slice = i / g->chunks, from = s->blocks * slice / s->slices,
                      to = s->blocks * (slice + 1) / s->slices;
        float *sums = (float *)a->call->workspace + slice * s->a.groups * s->a.rows * s->a.columns;
        for (int64_t block = from; block < to; block++) {
            plane_task_set(g, &t, i % g->chunks, block);
            FOR_TYPE(a->type, planes_fill, g, &t);
            FOR_TYPE(a->type, planes_dy, g, &t);
            for (int64_t group = 0; group < t.groups; group++) gradient_group(s, &t, group, sums, block > from);
        }
    }
}

static inline void planes_gradient_run(const conv_gradient *a, const conv_product *forward) {
    const planes_gradient s = planes_gradient_of(a, forward);
    planes_offsets_set(&s.g, planes_gradient_offsets(&s));
    cpu_tasks(a->call, s.g.team, s.g.tasks, planes_gradient_tasks, &s);
    cpu_shares(a->call, s.g.team, a->groups * a->rows, gradient_puts, &s.a);
}

#endif
