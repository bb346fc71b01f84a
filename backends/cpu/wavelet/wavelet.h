/* SPDX-License-Identifier: Apache-2.0 */
/* What dwt and idwt share on the CPU: sizes, strides and rooms. A task makes a row of the result, of each band: first
 * down the columns, as sums of whole rows, then along the row. */
#ifndef TRINE_CPU_WAVELET_H
#define TRINE_CPU_WAVELET_H

#include <stdbool.h>
#include <string.h>

#include <trine/wavelet.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/wavelet/edge.h"
#include "spec/wavelet/filters.h"

typedef struct wavelet {
    const trine_call *call;
    wavelet_filters filters;
    int edge;
    int64_t n, h, w, k, p, q;
    char *x, *y;
    int64_t x_step[3], y_step[4]; /* bytes */
    int64_t size;                 /* of an element */
    char *room;
    int64_t slice; /* bytes of a thread's part of it */
} wavelet;

/* Rows that a sum is of, with their weights. */
enum { WAVELET_ROWS = WAVELET_TERMS * WAVELET_TAPS };
typedef struct wavelet_rows {
    const char *row[WAVELET_ROWS];
    double weight[2][WAVELET_ROWS];
    int count;
} wavelet_rows;

static inline wavelet wavelet_of(const trine_call *call, const trine_tensor *x, const trine_tensor *y,
                                 wavelet_filters filters, int edge) {
    const int64_t size = (int64_t)trine_dtype_size(x->dtype);
    wavelet a = { .call = call,
                  .filters = filters,
                  .edge = edge,
                  .n = x->shape[0],
                  .h = x->shape[1],
                  .w = x->shape[2],
                  .k = y->shape[1],
                  .p = y->shape[2],
                  .q = y->shape[3],
                  .x = x->data,
                  .y = y->data,
                  .size = size,
                  .room = call->workspace };
    for (int d = 0; d < 3; d++) a.x_step[d] = x->stride[d] * size;
    for (int d = 0; d < 4; d++) a.y_step[d] = y->stride[d] * size;
    return a;
}

static inline int64_t wavelet_bytes(const wavelet *a) {
    const double bytes = ((double)a->n * (double)a->h * (double)a->w +
                          (double)a->n * (double)a->k * (double)a->p * (double)a->q * a->filters.taps / 4) *
                         (double)a->size;
    return (int64_t)fmin(bytes, 0x1p62);
}

#endif
