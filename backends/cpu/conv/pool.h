/* SPDX-License-Identifier: Apache-2.0 */
/* What pooling and its gradient share on the CPU: windows, and the largest of one. */
#ifndef TRINE_CPU_CONV_POOL_H
#define TRINE_CPU_CONV_POOL_H

#include <trine/conv.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"

typedef struct pool_axis {
    int64_t in, out, kernel, stride, pad, dilation;
} pool_axis;

/* Strides of an array of images in bytes. */
typedef struct pool_view {
    char *data;
    int64_t n, h, w, c;
} pool_view;

typedef struct pool {
    const trine_call *call;
    pool_axis h, w;
    pool_view x, y, other; /* other: indices, or dx; data NULL: none */
    int64_t n, c;
    trine_dtype type;
    int32_t kind;
    int64_t slice; /* bytes of a thread's part of the workspace */
} pool;

static inline pool_view pool_view_of(const trine_tensor *t) {
    const int64_t size = t ? (int64_t)trine_dtype_size(t->dtype) : 0;
    if (!t) return (pool_view){ 0 };
    return (pool_view){ t->data, t->stride[0] * size, t->stride[1] * size, t->stride[2] * size, t->stride[3] * size };
}

/* Of the arguments of either op. */
#define POOL_OF(call, args, X, Y, OTHER) \
    { .call = (call), \
      .h = { (call)->tensor[X].shape[1], (call)->tensor[Y].shape[1], (args)->kernel_h, \
             (args)->stride_h ? (args)->stride_h : (args)->kernel_h, (args)->pad_top, (args)->dilation_h }, \
      .w = { (call)->tensor[X].shape[2], (call)->tensor[Y].shape[2], (args)->kernel_w, \
             (args)->stride_w ? (args)->stride_w : (args)->kernel_w, (args)->pad_left, (args)->dilation_w }, \
      .x = pool_view_of(&(call)->tensor[X]), \
      .y = pool_view_of(&(call)->tensor[Y]), \
      .other = pool_view_of(trine_call_given(call, OTHER)), \
      .n = (call)->tensor[X].shape[0], \
      .c = (call)->tensor[X].shape[3], \
      .type = (call)->tensor[X].dtype, \
      .kind = (args)->kind }

/* The part of window `at` that is within: places first, first + dilation, ..., so many. */
typedef struct pool_part {
    int64_t first, count;
} pool_part;

static inline pool_part pool_part_of(const pool_axis *a, int64_t at) {
    const int64_t start = at * a->stride - a->pad;
    const int64_t skipped = start < 0 ? (-start + a->dilation - 1) / a->dilation : 0,
                  first = start + skipped * a->dilation;
    const int64_t most = first < a->in ? (a->in - 1 - first) / a->dilation + 1 : 0,
                  left = a->kernel > skipped ? a->kernel - skipped : 0;
    return (pool_part){ first, most < left ? most : left };
}

/* The largest of a window by channels, and its number among those within, -1 if there are none: of equal ones the
 * first, of several NaN the last. */
typedef struct pool_best {
    vf most;
    vi number;
} pool_best;

INLINE pool_best pool_largest(const char *image, const pool_view *x, const pool *a, pool_part h, pool_part w, int n,
                              trine_dtype T) {
    pool_best best = { vset(-INFINITY), viset(h.count > 0 && w.count > 0 ? 0 : -1) };
    int32_t number = 0;
    for (int64_t i = 0; i < h.count; i++) {
        const char *at = image + (h.first + i * a->h.dilation) * x->h + w.first * x->w;
        for (int64_t j = 0; j < w.count; j++, at += a->w.dilation * x->w, number++) {
            const vf v = n == VL ? vload(at, T, 0) : vloadn(at, T, 0, n, 0);
            const vi wins = (v > best.most) | (v != v);
            best.most = vsel(wins, v, best.most);
            best.number = visel(wins, viset(number), best.number);
        }
    }
    return best;
}

/* The place in its image of element `number` of those within a window. */
static inline int64_t pool_place(const pool *a, pool_part h, pool_part w, int64_t number) {
    return number < 0
               ? -1
               : (h.first + number / w.count * a->h.dilation) * a->w.in + w.first + number % w.count * a->w.dilation;
}

/* One element of any type, as a double. */
static inline double pool_get(const char *at, trine_dtype type) {
    return type == TRINE_F64 ? *(const double *)(const void *)at : (double)sload(at, type, 0);
}
static inline void pool_set(char *at, trine_dtype type, double x) {
    if (type == TRINE_F64)
        *(double *)(void *)at = x;
    else
        sstore(at, type, 0, (float)x);
}

/* The same of one channel at a time, with any strides. */
static inline int64_t pool_largest_one(const char *image, const pool *a, pool_part h, pool_part w, double *most_out) {
    double most = -INFINITY;
    int64_t number = 0, best = h.count > 0 && w.count > 0 ? 0 : -1;
    for (int64_t i = 0; i < h.count; i++)
        for (int64_t j = 0; j < w.count; j++, number++) {
            const double v = pool_get(
                image + (h.first + i * a->h.dilation) * a->x.h + (w.first + j * a->w.dilation) * a->x.w, a->type);
            if (v > most || v != v) most = v, best = number;
        }
    *most_out = most;
    return best;
}

static inline bool pool_by_channels(const pool *a) {
    return a->type != TRINE_F64 && a->x.c == (int64_t)trine_dtype_size(a->type) && a->c > 1;
}

static inline int64_t pool_bytes(const pool *a) {
    const double bytes =
        ((double)a->n * (double)a->h.in * (double)a->w.in + (double)a->n * (double)a->h.out * (double)a->w.out * 4) *
        (double)a->c * 4;
    return (int64_t)fmin(bytes, 0x1p62);
}

#endif
