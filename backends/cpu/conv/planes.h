/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of small groups on the CPU, whose lanes are positions. A task has some groups and a block of positions
 * of an image. It lays what these read of x out as planes of floats, a channel each, with zeros beyond the edges and,
 * for each residue by the strides, a plane of its own, so that a tap is an offset for all positions of the block. Sums
 * of a few channels by some vectors of positions stay in registers.
 *
 * The order of a sum is that of the patch's elements. */
#ifndef TRINE_CPU_CONV_PLANES_H
#define TRINE_CPU_CONV_PLANES_H

#include "product.h"

/* Taps along height or width at most; channels whose sums share a load of x, and vectors of positions that go with so
 * many; positions along the width of a block at most; channels that are copied together. */
enum { PLANE_TAPS = 32, PLANE_CHANNELS = 4, PLANE_VECTORS = 8, PLANE_WIDTH = 512, PLANE_BESIDE = 16 };

INLINE int plane_vectors(int channels) { return channels == 1 ? 8 : channels == 4 ? 3 : 4; }

/* Place step (p + j + least) + phase of x is what index j of a plane has in a block that begins with position p. */
typedef struct plane_axis {
    int64_t slots, least, reach; /* phases; the first index of a tap; what the last is above it */
    int64_t phase[PLANE_TAPS], slot[PLANE_TAPS], at[PLANE_TAPS];
} plane_axis;

typedef struct planes {
    const conv_product *a;
    plane_axis h, w;
    int64_t together, chunks;        /* groups of a task */
    int64_t high, wide, down, right; /* rows and columns of a block; blocks */
    int64_t pitch, sub, plane;       /* floats of a plane's row; of a phase; of a channel */
    int64_t channels, sums;          /* of a task; floats of a channel's sums */
    int64_t tasks, fixed_bytes, x_bytes, slice;
    int team;
} planes;

static inline int64_t floor_divide(int64_t x, int64_t by) { return x >= 0 ? x / by : -((by - 1 - x) / by); }

static inline void plane_axis_set(plane_axis *p, const conv_axis *axis) {
    int64_t most = INT64_MIN;
    p->slots = 0, p->least = INT64_MAX;
    for (int64_t i = 0; i < axis->taps; i++) {
        const int64_t place = axis->first + i * axis->dilation, at = floor_divide(place, axis->step),
                      phase = place - at * axis->step;
        int64_t slot = 0;
        while (slot < p->slots && p->phase[slot] != phase) slot++;
        if (slot == p->slots) p->phase[p->slots++] = phase;
        p->slot[i] = slot, p->at[i] = at;
        if (at < p->least) p->least = at;
        if (at > most) most = at;
    }
    p->reach = most - p->least;
}

static inline planes planes_of(const conv_product *a, int threads) {
    const conv_axis *axis = a->x.axis;
    const int64_t size = (int64_t)trine_dtype_size(a->type),
                  l2 = cpu_of(a->call)->l2 > 0 ? cpu_of(a->call)->l2 : 262144;
    planes g = { .a = a };
    plane_axis_set(&g.h, &axis[1]), plane_axis_set(&g.w, &axis[2]);
    const bool beside = a->source.channel == size || a->y.view.channel == size;
    g.together = beside ? conv_least(conv_up(PLANE_BESIDE, conv_least(a->x.channels, a->lanes)), a->groups) : 1;
    g.chunks = conv_up(a->groups, g.together), g.channels = g.together * a->x.channels;
    g.right = conv_up(axis[2].positions, PLANE_WIDTH), g.wide = conv_up(axis[2].positions, g.right);
    g.right = conv_up(axis[2].positions, g.wide), g.pitch = g.wide + g.w.reach;
    const int64_t row = (axis[0].taps * g.channels * g.h.slots * g.w.slots + g.together * a->lanes) * g.pitch * 4,
                  others = a->n * axis[0].positions * g.right * g.chunks;
    g.high = l2 / 2 / row - g.h.reach;
    g.high = conv_least(g.high > 1 ? g.high : 1, axis[1].positions);
    while (g.high > 2 * (g.h.reach + 1) && conv_up(axis[1].positions, g.high) * others < 2 * threads)
        g.high = conv_up(g.high, 2);
    g.down = conv_up(axis[1].positions, g.high), g.high = conv_up(axis[1].positions, g.down);
    g.down = conv_up(axis[1].positions, g.high);
    g.sub = (g.high + g.h.reach) * g.pitch + VL, g.plane = g.h.slots * g.w.slots * g.sub;
    g.sums = cpu_round_up(g.high * g.pitch + VL, 24 * VL); /* whole tiles of 3, 4 and 8 vectors */
    g.tasks = others * g.down;
    g.fixed_bytes = cpu_round_up(a->groups * a->lanes * (a->x.elements + 1) * 4 + conv_taps(axis) * 8, 256);
    g.x_bytes = cpu_round_up((axis[0].taps * g.channels * g.plane + 2 * PLANE_VECTORS * VL) * 4, 64);
    g.slice = cpu_round_up(g.x_bytes + (g.together * a->lanes * g.sums + VL) * 4, 256);
    const double flops = 2.0 * (double)a->n * (double)conv_positions(axis) * (double)a->groups * (double)a->lanes *
                         (double)a->x.elements;
    g.team = cpu_team(a->call, g.tasks, (int64_t)fmin(flops / 4, 0x1p62));
    return g;
}

static inline size_t planes_bytes(const conv_product *a) {
    const planes g = planes_of(a, ((const cpu_queue *)a->call->queue)->threads);
    return (size_t)(g.fixed_bytes + g.team * g.slice);
}

static inline bool planes_fit(const conv_product *a) {
    for (int d = 0; d < 3; d++)
        if (a->x.axis[d].taps <= 0 || a->x.axis[d].taps > PLANE_TAPS || a->x.axis[d].positions <= 0) return false;
    return a->type != TRINE_F64 && a->x.channels > 0 && a->lanes > 0 && a->n > 0 && a->groups > 0;
}

/* What a multiplication takes, a product's being 1: of more loads, from planes that L1 does not hold. */
static const double PLANE_COST = 1.5;

/* What copies of x and y take for a position of a group, in multiplications of lanes. */
static inline double planes_copies(const planes *g) {
    const conv_product *a = g->a;
    const double halo = (double)(a->x.axis[0].taps * (g->high + g->h.reach)) / (double)g->high;
    return VL * ((double)a->x.channels * halo + (double)a->lanes);
}

/* Do planes take fewer multiplications of lanes than a product, copies included? The answer must not depend on
 * threads. */
static inline bool planes_takes(const conv_product *a) {
    const int64_t size = (int64_t)trine_dtype_size(a->type);
    if (!planes_fit(a)) return false;
    if (conv_single(a)) return a->source.channel != size && a->source.axis[2] == size;
    const planes g = planes_of(a, 1);
    const int64_t tile_places = plane_vectors((int)conv_least(a->lanes, PLANE_CHANNELS)) * VL;
    /* copying takes about 40 cycles for a run, in each of which 2 VL lanes are multiplied, and so do AMX's squares */
    const double elements = (double)a->x.elements, tile = (double)cpu_round_up(a->lanes, a->wide),
                 copies = a->copied ? VL * (0.5 + 80.0 / (double)a->x.run) : 0,
                 product = elements * (tile_amx(a->kind) ? tile / 8 + copies + VL : tile + copies),
                 waste = (double)cpu_round_up((g.high - 1) * g.pitch + g.wide, tile_places) / (double)(g.high * g.wide);
    return PLANE_COST * elements * (double)a->lanes * waste + planes_copies(&g) < product;
}

/* ---------------------------------------------------------------------------------------------------------- weights */

static inline float *planes_bias(const planes *g) {
    return (float *)g->a->call->workspace + g->a->groups * g->a->lanes * g->a->x.elements;
}
static inline int64_t *planes_offsets(const planes *g) {
    const int64_t floats = g->a->groups * g->a->lanes * (g->a->x.elements + 1);
    return (int64_t *)(void *)((float *)g->a->call->workspace + floats + floats % 2);
}

INLINE void planes_weights(const planes *g, int64_t first, int64_t last, trine_dtype T) {
    const conv_product *a = g->a;
    const conv_weights *w = &a->w;
    const int64_t channels = a->x.channels, high = a->x.axis[1].taps, wide = a->x.axis[2].taps;
    for (int64_t k = first; k < last; k++) {
        const char *from = w->data + k / a->lanes * w->group + k % a->lanes * w->lane;
        float *to = (float *)a->call->workspace + k * a->x.elements;
        for (int64_t number = 0; number < conv_taps(a->x.axis); number++) {
            const int64_t tap[3] = { number / (wide * high), number / wide % high, number % wide };
            const char *at = from;
            for (int d = 0; d < 3; d++) at += (w->first[d] + tap[d] * w->step[d]) * w->tap[d];
            for (int64_t c = 0; c < channels; c++) *to++ = sload(at + c * w->channel, T, 0);
        }
        planes_bias(g)[k] = a->bias ? sload(a->bias->data, a->bias->dtype, k * a->bias->stride[0]) : 0;
    }
}
static inline void planes_weights_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const planes *g = context;
    (void)thread;
    FOR_TYPE(g->a->type, planes_weights, g, first, last);
}

static inline void planes_offsets_set(const planes *g, int64_t *to) {
    const conv_axis *axis = g->a->x.axis;
    for (int64_t t = 0; t < axis[0].taps; t++)
        for (int64_t i = 0; i < axis[1].taps; i++)
            for (int64_t j = 0; j < axis[2].taps; j++)
                *to++ = t * g->channels * g->plane + (g->h.slot[i] * g->w.slots + g->w.slot[j]) * g->sub +
                        (g->h.at[i] - g->h.least) * g->pitch + g->w.at[j] - g->w.least;
}

/* ----------------------------------------------------------------------------------------------------------- copies */

/* A task: its image and place along the depth, and the first of its positions and groups. */
typedef struct plane_task {
    int64_t n, d, h, w, group, groups, high, wide;
    float *x, *y;
} plane_task;

static inline void plane_task_set(const planes *g, plane_task *t, int64_t chunk, int64_t block) {
    const conv_axis *axis = g->a->x.axis;
    const int64_t place = block / (g->right * g->down);
    t->group = chunk * g->together, t->groups = conv_least(g->a->groups - t->group, g->together);
    t->w = block % g->right * g->wide, t->wide = conv_least(axis[2].positions - t->w, g->wide);
    t->h = block / g->right % g->down * g->high, t->high = conv_least(axis[1].positions - t->h, g->high);
    t->d = place % axis[0].positions, t->n = place / axis[0].positions;
}

/* Every second element of the two. */
INLINE vf plane_evens(vf a, vf b) {
#if VB == 64
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif VB == 32
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}

/* `count` elements, `step` bytes apart, as floats; it may write up to a vector more. */
INLINE void plane_line(float *to, const char *from, int64_t step, int64_t count, trine_dtype T) {
    const int64_t size = (int64_t)vsize(T);
    int64_t i = 0;
    for (; step == size && i + VL <= count; i += VL) vstore(to + i, TRINE_F32, 0, vload(from, T, i));
    for (; step == 2 * size && i + VL < count; i += VL)
        vstore(to + i, TRINE_F32, 0, plane_evens(vload(from, T, 2 * i), vload(from, T, 2 * i + VL)));
    if (T != TRINE_F32 && step == size && i < count)
        vstore(to + i, TRINE_F32, 0, vloadn(from, T, i, (int)(count - i), 0));
    else
        for (; i < count; i++) to[i] = sload(from + i * step, T, 0);
}

/* `count` places of `channels` channels from `from` on, `step` bytes apart, to rows of planes; it may write up to a
 * vector more than a row. */
INLINE void plane_copy(float *to, int64_t plane, const char *from, int64_t step, int64_t channel, int64_t count,
                       int64_t channels, trine_dtype T) {
    const int64_t size = (int64_t)vsize(T);
    if (channel != size) {
        for (int64_t c = 0; c < channels; c++) plane_line(to + c * plane, from + c * channel, step, count, T);
        return;
    }
    for (int64_t i = 0; i < count; i += VL)
        for (int64_t c = 0; c < channels; c += VL) {
            const int places = (int)conv_least(count - i, VL), n = (int)conv_least(channels - c, VL);
            vi r[VL];
#pragma GCC unroll 16
            for (int k = 0; k < VL; k++)
                r[k] = k < places ? (vi)lanes_load(from + (i + k) * step + c * size, size, n, T) : (vi){ 0 };
            unit_transpose(r, UNIT_F32);
#pragma GCC unroll 16
            for (int k = 0; k < VL; k++)
                if (k < n) vstore(to + (c + k) * plane + i, TRINE_F32, 0, (vf)r[k]);
        }
}

static inline void plane_zeros(const planes *g, float *to, int64_t channels, int64_t first, int64_t last) {
    for (int64_t c = 0; c < channels && first < last; c++)
        memset(to + c * g->plane + first, 0, (size_t)(last - first) * 4);
}

/* All that the task reads of x. */
INLINE void planes_fill(const planes *g, const plane_task *t, trine_dtype T) {
    const conv_product *a = g->a;
    const conv_axis *axis = a->x.axis;
    const conv_view *s = &a->source;
    const int64_t channels = t->groups * a->x.channels, step = axis[2].step;
    const char *image = s->data + t->n * s->batch + t->group * a->x.channels * s->channel;
    for (int64_t tap = 0; tap < axis[0].taps; tap++)
        for (int64_t i = 0; i < g->h.slots; i++)
            for (int64_t row = 0; row < t->high + g->h.reach; row++)
                for (int64_t j = 0; j < g->w.slots; j++) {
                    const int64_t z = axis[0].first + t->d * axis[0].step + tap * axis[0].dilation,
                                  y = (t->h + row + g->h.least) * axis[1].step + g->h.phase[i],
                                  x = (t->w + g->w.least) * step + g->w.phase[j];
                    const bool there = z >= 0 && z < axis[0].in && y >= 0 && y < axis[1].in;
                    const int64_t low = there ? conv_clamp(-floor_divide(x, step), g->pitch) : g->pitch,
                                  high = there ? conv_clamp(-floor_divide(x - axis[2].in, step), g->pitch) : g->pitch;
                    float *to = t->x + tap * g->channels * g->plane + (i * g->w.slots + j) * g->sub + row * g->pitch;
                    plane_zeros(g, to, channels, 0, low);
                    if (low < high)
                        plane_copy(to + low, g->plane,
                                   image + z * s->axis[0] + y * s->axis[1] + (x + low * step) * s->axis[2],
                                   step * s->axis[2], s->channel, high - low, channels, T);
                    plane_zeros(g, to, channels, high, g->pitch);
                }
}

/* The task's sums to where they belong. */
INLINE void planes_put(const planes *g, const plane_task *t, trine_dtype T) {
    const conv_target *y = &g->a->y;
    const int64_t size = (int64_t)vsize(T), apart = y->view.channel, step = y->step[2] * y->view.axis[2],
                  channels = t->groups * g->a->lanes;
    for (int64_t row = 0; row < t->high; row++) {
        const float *from = t->y + row * g->pitch;
        char *to = y->view.data + t->n * y->view.batch + t->group * g->a->lanes * apart +
                   (y->first[0] + t->d * y->step[0]) * y->view.axis[0] +
                   (y->first[1] + (t->h + row) * y->step[1]) * y->view.axis[1] +
                   (y->first[2] + t->w * y->step[2]) * y->view.axis[2];
        if (apart != size) {
            for (int64_t c = 0; c < channels; c++) {
                int64_t i = 0;
                for (; step == size && i + VL <= t->wide; i += VL)
                    vstore(to + c * apart, T, i, vload(from + c * g->sums + i, TRINE_F32, 0));
                if (T != TRINE_F32 && step == size && i < t->wide) {
                    vstoren(to + c * apart, T, i, (int)(t->wide - i), vload(from + c * g->sums + i, TRINE_F32, 0));
                    continue;
                }
                for (; i < t->wide; i++) sstore(to + c * apart + i * step, T, 0, from[c * g->sums + i]);
            }
            continue;
        }
        for (int64_t i = 0; i < t->wide; i += VL)
            for (int64_t c = 0; c < channels; c += VL) {
                const int places = (int)conv_least(t->wide - i, VL), n = (int)conv_least(channels - c, VL);
                vi r[VL];
#pragma GCC unroll 16
                for (int k = 0; k < VL; k++)
                    r[k] = k < n ? (vi)vload(from + (c + k) * g->sums + i, TRINE_F32, 0) : (vi){ 0 };
                unit_transpose(r, UNIT_F32);
#pragma GCC unroll 16
                for (int k = 0; k < VL; k++)
                    if (k < places) lanes_store(to + (i + k) * step + c * size, size, n, (vf)r[k], T);
            }
    }
}

/* -------------------------------------------------------------------------------------------------------- summing */

/* `count` channels of a group by plane_vectors(count) vectors of positions. */
INLINE void planes_tile(const planes *g, const float *x, const float *w, const float *bias, float *to,
                        const int count) {
    const conv_product *a = g->a;
    const int vectors = plane_vectors(count);
    const int64_t elements = a->x.elements, taps = conv_taps(a->x.axis), channels = a->x.channels,
                  *offset = planes_offsets(g);
    vf s[PLANE_CHANNELS][PLANE_VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < count; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) s[r][v] = vzero();
    for (int64_t tap = 0; tap < taps; tap++) {
        const float *at = x + offset[tap];
        for (int64_t c = 0; c < channels; c++, at += g->plane, w++) {
            vf value[PLANE_VECTORS];
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) value[v] = vload(at + v * VL, TRINE_F32, 0);
#pragma GCC unroll 4
            for (int r = 0; r < count; r++) {
                const vf by = vset(w[r * elements]);
#pragma GCC unroll 8
                for (int v = 0; v < vectors; v++) s[r][v] = vfma(by, value[v], s[r][v]);
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < count; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) vstore(to + r * g->sums + v * VL, TRINE_F32, 0, s[r][v] + vset(bias[r]));
}

INLINE void planes_tiles(const planes *g, const plane_task *t, int64_t group, int64_t lane, const int count) {
    const conv_product *a = g->a;
    const int64_t k = (t->group + group) * a->lanes + lane, places = (t->high - 1) * g->pitch + t->wide;
    const float *x = t->x + group * a->x.channels * g->plane,
                *w = (const float *)a->call->workspace + k * a->x.elements;
    float *to = t->y + (group * a->lanes + lane) * g->sums;
    for (int64_t i = 0; i < places; i += plane_vectors(count) * VL)
        planes_tile(g, x + i, w, planes_bias(g) + k, to + i, count);
}

static inline void planes_group(const planes *g, const plane_task *t, int64_t group) {
    const int64_t lanes = g->a->lanes, blocks = conv_up(lanes, PLANE_CHANNELS);
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t lane = lanes * b / blocks;
        switch (lanes * (b + 1) / blocks - lane) {
        case 1: planes_tiles(g, t, group, lane, 1); break;
        case 2: planes_tiles(g, t, group, lane, 2); break;
        case 3: planes_tiles(g, t, group, lane, 3); break;
        default: planes_tiles(g, t, group, lane, 4);
        }
    }
}

static inline void planes_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const planes *g = context;
    const conv_product *a = g->a;
    char *memory = (char *)a->call->workspace + g->fixed_bytes + thread * g->slice;
    plane_task t = { .x = (float *)(void *)memory, .y = (float *)(void *)(memory + g->x_bytes) };
    for (int64_t i = first; i < last; i++) {
        plane_task_set(g, &t, i % g->chunks, i / g->chunks);
        FOR_TYPE(a->type, planes_fill, g, &t);
        for (int64_t group = 0; group < t.groups; group++) planes_group(g, &t, group);
        FOR_TYPE(a->type, planes_put, g, &t);
    }
}

static inline void planes_run(const conv_product *a) {
    const planes g = planes_of(a, ((const cpu_queue *)a->call->queue)->threads);
    planes_offsets_set(&g, planes_offsets(&g));
    const int64_t rows = a->groups * a->lanes;
    cpu_shares(a->call, cpu_team(a->call, rows, rows * a->x.elements * 4), rows, planes_weights_tasks, &g);
    cpu_tasks(a->call, g.team, g.tasks, planes_tasks, &g);
}

#endif
