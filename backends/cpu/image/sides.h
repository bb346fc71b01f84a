/* SPDX-License-Identifier: Apache-2.0 */
/* Which pixels of a side make one of the output, and by what weights, on the CPU. */
#ifndef TRINE_CPU_IMAGE_SIDES_H
#define TRINE_CPU_IMAGE_SIDES_H

#include <trine/image.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

/* A side of `in` pixels made one of `out`. */
typedef struct side {
    int64_t in, out;
    int32_t filter, coordinates;
    bool antialias;
    float cubic;
} side;

/* Pixels first .. first + count - 1. */
typedef struct span {
    int64_t first, count;
} span;

static inline side side_of(const trine_crop_resize_normalize_args *args, int64_t in, int64_t out) {
    const bool curved = args->filter == TRINE_RESIZE_BILINEAR || args->filter == TRINE_RESIZE_BICUBIC;
    return (side){ in, out, args->filter, args->coordinates, args->antialias && curved, args->cubic };
}

/* The most pixels that one of the output is made of, whatever part of `in` there is. */
static inline int64_t side_most(const side *s) {
    const int64_t each = s->out > 0 && s->in > s->out ? (s->in + s->out - 1) / s->out : 1,
                  reach = s->filter == TRINE_RESIZE_BICUBIC ? 2 : 1;
    if (s->filter == TRINE_RESIZE_AREA) return each + 1;
    if (s->antialias) return 2 * reach * each + 1;
    return s->filter == TRINE_RESIZE_NEAREST ? 1 : 2 * reach;
}

INLINE int64_t side_floor(int64_t a, int64_t b) { return a / b - (a % b < 0); }
INLINE int64_t side_within(int64_t at, int64_t n) { return at < 0 ? 0 : at < n ? at : n - 1; }

INLINE float side_cubic(float t, float m) {
    const float a = fabsf(t);
    return a <= 1 ? (1 - a) * (1 + a - (m + 2) * (a * a)) : a < 2 ? m * (a - 1) * ((a - 2) * (a - 2)) : 0;
}

INLINE float side_weight(const side *s, int64_t part, int64_t whole) {
    const float t = (float)part / (float)whole;
    return s->filter == TRINE_RESIZE_BICUBIC ? side_cubic(t, s->cubic) : t;
}

static inline span side_area(const side *s, int64_t at, float *weight) {
    const int64_t low = at * s->in, high = low + s->in, first = low / s->out, last = (high + s->out - 1) / s->out;
    for (int64_t i = first; i < last; i++) {
        const int64_t from = i * s->out > low ? i * s->out : low,
                      to = (i + 1) * s->out < high ? (i + 1) * s->out : high;
        weight[i - first] = (float)(to - from) / (float)s->in;
    }
    return (span){ first, last - first };
}

/* All within reach, whose weights are divided by their sum. */
static inline span side_antialiased(const side *s, int64_t at, float *weight) {
    const int64_t wide = s->in > s->out ? s->in : s->out, middle = (2 * at + 1) * s->in,
                  reach = (s->filter == TRINE_RESIZE_BICUBIC ? 4 : 2) * wide;
    /* (2 i + 1) out between middle - reach and middle + reach, both not */
    const int64_t low = side_floor(middle - reach - s->out, 2 * s->out) + 1,
                  high = -side_floor(s->out - middle - reach, 2 * s->out), first = low > 0 ? low : 0,
                  last = high < s->in ? high : s->in;
    float sum = 0;
    for (int64_t i = first; i < last; i++) {
        const int64_t off = (2 * i + 1) * s->out - middle, far = off < 0 ? -off : off;
        const float w = side_weight(s, s->filter == TRINE_RESIZE_BICUBIC ? far : 2 * wide - far, 2 * wide);
        weight[i - first] = w;
        sum += w;
    }
    for (int64_t i = 0; i < last - first; i++) weight[i] /= sum;
    return (span){ first, last - first };
}

/* The pixels and weights of pixel `at`: what lies beyond the side is added to its ends. */
static inline span side_span(const side *s, int64_t at, float *weight) {
    if (s->filter == TRINE_RESIZE_AREA) return side_area(s, at, weight);
    if (s->antialias) return side_antialiased(s, at, weight);
    int64_t num = (2 * at + 1) * s->in - s->out, den = 2 * s->out;
    if (s->coordinates == TRINE_COORDINATES_ALIGN_CORNERS) num = at * (s->in - 1), den = s->out > 1 ? s->out - 1 : 1;
    if (s->coordinates == TRINE_COORDINATES_ASYMMETRIC) num = at * s->in, den = s->out;
    const int64_t down = side_floor(num, den), rest = num - down * den;
    weight[0] = 1;
    if (s->filter == TRINE_RESIZE_NEAREST) {
        const bool up = s->coordinates != TRINE_COORDINATES_ASYMMETRIC && 2 * rest >= den;
        return (span){ side_within(down + up, s->in), 1 };
    }
    if (rest == 0) return (span){ side_within(down, s->in), 1 };
    const int before = s->filter == TRINE_RESIZE_BICUBIC ? 1 : 0, count = 2 + 2 * before;
    const int64_t first = side_within(down - before, s->in), last = side_within(down + 1 + before, s->in);
    for (int i = 0; i < count; i++) weight[i] = 0;
    for (int i = 0; i < count; i++) {
        const int64_t place = down - before + i, off = place * den - num, far = off < 0 ? -off : off;
        weight[side_within(place, s->in) - first] += side_weight(s, before ? far : den - far, den);
    }
    return (span){ first, last - first + 1 };
}

#endif
