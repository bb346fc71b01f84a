/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of the weights of single channels on the CPU, and that of the bias. A task has a vector of channels, the
 * taps along the width that are one behind the other in memory, a few at a time, and a slice of the rows of positions;
 * slices' sums are added in their order. */
#ifndef TRINE_CPU_CONV_DEPTHWISE_GRADIENT_H
#define TRINE_CPU_CONV_DEPTHWISE_GRADIENT_H

#include "gradient.h"
#include "spec/places/conv2d_backward.h"

enum { TAPS = 8, SLICE_ROWS = 16 };

typedef struct depthwise_gradient {
    const conv_gradient *a;
    int64_t lines, blocks, taps, slices; /* rows of positions; vectors of channels; runs of taps */
    int64_t apart;                       /* floats of a slice */
} depthwise_gradient;

static inline depthwise_gradient depthwise_gradient_of(const conv_gradient *a) {
    const conv_axis *axis = a->x.axis;
    depthwise_gradient g = { .a = a,
                             .lines = a->n * axis[0].positions * axis[1].positions,
                             .blocks = conv_up(a->groups, VL),
                             .taps = axis[0].taps * axis[1].taps * conv_up(axis[2].taps, TAPS) };
    g.slices = slices_of(g.blocks * g.taps, g.lines, SLICE_ROWS);
    g.apart = conv_taps(axis) * g.blocks * VL;
    return g;
}

static inline size_t depthwise_gradient_bytes(const conv_gradient *a) {
    const depthwise_gradient g = depthwise_gradient_of(a);
    return (size_t)(g.slices * g.apart * (int64_t)sizeof(float));
}

/* The sums of up to TAPS taps along the width, of one row of positions. */
INLINE void depthwise_line(const conv_gradient *a, int64_t line, int64_t channel, int n, const int64_t *tap, int taps,
                           vf *sum, trine_dtype T) {
    const conv_axis *axis = a->x.axis, *w = &axis[2];
    conv_place x, dy;
    if (w->positions == 0) return;
    patches_places(&a->x, line * w->positions, 1, 0, &x);
    patches_places(&a->dy, line * w->positions, 1, 0, &dy);
    const int64_t z = x.at[0] + tap[0] * axis[0].dilation, y = x.at[1] + tap[1] * axis[1].dilation;
    const bool there = z >= 0 && z < axis[0].in && y >= 0 && y < axis[1].in;
    const conv_view *from = &a->x.from, *by = &a->dy.from;
    const char *row = x.image + (there ? z * from->axis[0] + y * from->axis[1] : 0) + channel * from->channel,
               *other = dy.image + dy.at[0] * by->axis[0] + dy.at[1] * by->axis[1] + channel * by->channel;
    for (int64_t q = 0; q < w->positions; q++) {
        const vf d = lanes_load(other + q * by->axis[2], by->channel, n, T);
#pragma GCC unroll 8
        for (int s = 0; s < TAPS; s++) {
            if (s >= taps) break;
            const int64_t at = x.at[2] + q * w->step + (tap[2] + s) * w->dilation;
            const bool inside = there && at >= 0 && at < w->in;
            sum[s] = vfma(d, inside ? lanes_load(row + at * from->axis[2], from->channel, n, T) : vzero(), sum[s]);
        }
    }
}

INLINE void depthwise_gradient_task(const depthwise_gradient *g, int64_t index, trine_dtype T) {
    const conv_gradient *a = g->a;
    const conv_axis *axis = a->x.axis;
    const int64_t runs = conv_up(axis[2].taps, TAPS), block = index % g->blocks, number = index / g->blocks % g->taps,
                  slice = index / (g->blocks * g->taps), first = g->lines * slice / g->slices,
                  last = g->lines * (slice + 1) / g->slices;
    const int64_t tap[3] = { number / (runs * axis[1].taps), number / runs % axis[1].taps, number % runs * TAPS };
    const int taps = (int)conv_least(axis[2].taps - tap[2], TAPS), n = (int)conv_least(a->groups - block * VL, VL);
    vf sum[TAPS];
    for (int s = 0; s < TAPS; s++) sum[s] = vzero();
    for (int64_t line = first; line < last; line++) depthwise_line(a, line, block * VL, n, tap, taps, sum, T);
    float *to = (float *)a->call->workspace + slice * g->apart +
                ((tap[0] * axis[1].taps + tap[1]) * axis[2].taps + tap[2]) * g->blocks * VL + block * VL;
    for (int s = 0; s < taps; s++, to += g->blocks * VL) *(vf_any *)to = sum[s];
}

static inline void depthwise_gradient_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const depthwise_gradient *g = context;
    (void)thread;
    for (int64_t i = first; i < last; i++) FOR_TYPE(g->a->type, depthwise_gradient_task, g, i);
}

INLINE void depthwise_gradient_put(const depthwise_gradient *g, trine_dtype T) {
    const conv_gradient *a = g->a;
    const conv_axis *axis = a->x.axis;
    for (int64_t number = 0; number < conv_taps(axis); number++)
        for (int64_t c = 0; c < a->groups; c++) {
            const float *from = (const float *)a->call->workspace + number * g->blocks * VL + c;
            float sum = 0;
            for (int64_t s = 0; s < g->slices; s++) sum += from[s * g->apart];
            sstore(a->to.data + c * a->to.batch + number / (axis[1].taps * axis[2].taps) * a->to.axis[0] +
                       number / axis[2].taps % axis[1].taps * a->to.axis[1] + number % axis[2].taps * a->to.axis[2],
                   T, 0, sum);
        }
}

static inline void depthwise_gradient_run(const conv_gradient *a) {
    const depthwise_gradient g = depthwise_gradient_of(a);
    cpu_tasks(a->call, a->team, g.slices * g.blocks * g.taps, depthwise_gradient_tasks, &g);
    FOR_TYPE(a->type, depthwise_gradient_put, &g);
}

/* -------------------------------------------------------------------------------------------------- of the bias */

typedef struct bias_gradient {
    const trine_call *call;
    const trine_tensor *dbias;
    patches dy;
    int64_t n, k;
} bias_gradient;

/* A vector of channels, or one channel by vectors along the width. */
INLINE void bias_channels(const bias_gradient *b, int64_t k, int n, trine_dtype T) {
    const conv_axis *axis = b->dy.axis;
    const conv_view *from = &b->dy.from;
    const bool across = from->channel != b->dy.size;
    vf sum = vzero();
    for (int64_t line = 0; line < b->n * axis[0].positions * axis[1].positions; line++) {
        const int64_t h = line % axis[1].positions, d = line / axis[1].positions % axis[0].positions;
        const char *row = from->data + line / (axis[1].positions * axis[0].positions) * from->batch +
                          d * from->axis[0] + h * from->axis[1] + k * from->channel;
        if (across)
            for (int64_t q = 0; q < axis[2].positions; q += VL)
                sum +=
                    lanes_load(row + q * from->axis[2], from->axis[2], (int)conv_least(axis[2].positions - q, VL), T);
        else
            for (int64_t q = 0; q < axis[2].positions; q++)
                sum += lanes_load(row + q * from->axis[2], from->channel, n, T);
    }
    const int64_t step = b->dbias->stride[0];
    char *to = (char *)b->dbias->data + k * step * (int64_t)vsize(b->dbias->dtype);
    const trine_dtype out = b->dbias->dtype == T ? T : TRINE_F32;
    if (across) sum[0] = vhsum(sum);
    lanes_store(to, step * (int64_t)vsize(out), across ? 1 : n, sum, out);
}

static inline void bias_channel_f64(const bias_gradient *b, int64_t k) {
    const conv_axis *axis = b->dy.axis;
    double sum = 0;
    for (int64_t i = 0; i < b->n * conv_positions(axis); i++) {
        conv_place place;
        patches_places(&b->dy, i, 1, 0, &place);
        const char *at = place.image + k * b->dy.from.channel;
        for (int d = 0; d < 3; d++) at += place.at[d] * b->dy.from.axis[d];
        sum += *(const double *)(const void *)at;
    }
    ((double *)b->dbias->data)[k * b->dbias->stride[0]] = sum;
}

static inline void bias_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const bias_gradient *b = context;
    const trine_dtype type = b->call->tensor[CONV2D_BACKWARD_DY].dtype;
    const bool across = b->dy.from.channel != b->dy.size;
    (void)thread;
    for (int64_t i = first; i < last; i++)
        for (int64_t k = i * VL; k < conv_least((i + 1) * VL, b->k); k += across || type == TRINE_F64 ? 1 : VL) {
            if (type == TRINE_F64)
                bias_channel_f64(b, k);
            else
                FOR_TYPE(type, bias_channels, b, k, (int)conv_least(b->k - k, VL));
        }
}

static inline void bias_gradient_run(const bias_gradient *b) {
    const int64_t bytes = b->n * conv_positions(b->dy.axis) * b->k * b->dy.size, tasks = conv_up(b->k, VL);
    cpu_tasks(b->call, cpu_team(b->call, tasks, bytes), tasks, bias_tasks, b);
}

#endif
