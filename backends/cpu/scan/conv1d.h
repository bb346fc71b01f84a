/* SPDX-License-Identifier: Apache-2.0 */
/* What conv1d_causal and its gradient share on the CPU: taps of a block of channels by columns, and the steps that they
 * meet. */
#ifndef TRINE_CPU_CONV1D_H
#define TRINE_CPU_CONV1D_H

#include "backends/cpu/core/vec_math.h"
#include "scan.h"

enum {
    CONV_MOST = 8,    /* taps */
    CONV_WIDE = 2048, /* channels of a block, of up to 4 taps, else half of that: what a stack has room for */
    CONV_FLOATS = 8192
};

typedef struct conv {
    scan all;
    int64_t k;
    const trine_tensor *x, *weight, *bias, *x0; /* bias, x0: NULL if absent */
    bool silu;
} conv;

/* Taps and bias of a task's channels, in memory that the caller has, aligned as vectors: k rows of `pitch`, and one. */
typedef struct conv_taps {
    float *weight, *bias;
    int64_t pitch;
} conv_taps;

static inline void conv_taps_of(const conv *c, const scan_task *a, conv_taps *taps) {
    const trine_dtype W = c->weight->dtype;
    taps->pitch = c->all.width;
    for (int64_t j = 0; j < a->channels; j++)
        for (int64_t i = 0; i < c->k; i++)
            taps->weight[i * taps->pitch + j] = sload(c->weight->data, W, (a->channel + j) * c->weight->stride[0] + i);
    for (int64_t j = 0; j < a->channels; j++) taps->bias[j] = c->bias ? sload(c->bias->data, W, a->channel + j) : 0;
}

/* A sequence's row `row` of a tensor of states. */
INLINE char *conv_state(const scan_task *a, const trine_tensor *t, int64_t row, trine_dtype T) {
    return (char *)t->data + (a->sequence * t->stride[0] + row * t->stride[1] + a->channel) * (int64_t)vsize(T);
}

/* What step t's taps meet, first to last, and from which tap on there is something. */
typedef struct conv_window {
    const char *row[CONV_MOST];
    int64_t from;
} conv_window;

/* Calls body(..., from, k) for a window, with constants where it is whole and of as many taps as are common. */
#define CONV_EACH(w, taps, body, ...) \
    do { \
        if ((w)->from == 0 && (taps) == 4) \
            body(__VA_ARGS__, 0, 4); \
        else if ((w)->from == 0 && (taps) == 3) \
            body(__VA_ARGS__, 0, 3); \
        else if ((w)->from == 0 && (taps) == 2) \
            body(__VA_ARGS__, 0, 2); \
        else \
            body(__VA_ARGS__, (w)->from, taps); \
    } while (0)

INLINE conv_window conv_window_of(const conv *c, const scan_task *a, int64_t t, trine_dtype T) {
    conv_window w = { .from = c->x0 || t >= c->k - 1 ? 0 : c->k - 1 - t };
    for (int64_t i = w.from; i < c->k; i++) {
        const int64_t at = t - c->k + 1 + i;
        w.row[i] = at >= 0 ? scan_row(&c->all, a, c->x, at, T) : conv_state(a, c->x0, c->k - 1 + at, T);
    }
    return w;
}

/* The sum of taps from .. k-1, which are constants wherever speed matters, as the type is. */
INLINE vf conv_sum(const conv_taps *taps, const conv_window *w, int64_t from, int64_t k, int64_t j, int m,
                   trine_dtype T) {
    vf z = *(const vf *)(taps->bias + j);
    for (int64_t i = from; i < k; i++)
        z = vfma(*(const vf *)(taps->weight + i * taps->pitch + j), scan_get(w->row[i], T, j, m), z);
    return z;
}

#endif
