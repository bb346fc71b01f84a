/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of softmax's gradient on the CPU. A row that fits a piece is read once, a longer one twice. */
#ifndef TRINE_CPU_SOFTMAX_BACKWARD_H
#define TRINE_CPU_SOFTMAX_BACKWARD_H

#include "backends/cpu/core/row.h"

/* A row, of which `visible` of n elements are read, and the rows that are read next. */
typedef struct softmax_gradient_row {
    const void *y, *dy, *next_y, *next_dy;
    void *dx, *dz; /* dz: the gradient without scale, NULL if it is not asked for */
    trine_dtype T, of_dz;
    int64_t visible, n;
    float scale;
    bool stream;
} softmax_gradient_row;

/* Pieces of y and of dy; adds the sum of their products. */
INLINE void softmax_gradient_read_as(float *sum, float *y, float *dy, const void *y_row, const void *dy_row, int64_t at,
                                     int count, trine_dtype T) {
    vf acc[ROW_ACC] = { 0 };
    ROW_EACH(count, j, k, m, {
        const vf p = row_get(y_row, T, at + j, m), d = row_get(dy_row, T, at + j, m);
        *row_vector(y, j) = p;
        *row_vector(dy, j) = d;
        acc[k] = vfma(p, d, acc[k]);
    });
    *sum += row_total(acc);
}

/* dx = scale y (dy - sum), while the next rows are fetched. */
INLINE void softmax_gradient_write_as(float scale, float sum, float *y, float *dy, row_sink dx, int count,
                                      const void *next_y, const void *next_dy, trine_dtype T) {
    ROW_EACH(count, j, k, m, {
        row_prefetch(next_y, T, j, k);
        row_prefetch(next_dy, T, j, k);
        row_put(dx, T, j, m, *row_vector(y, j) * (*row_vector(dy, j) - sum) * scale);
    });
}

static inline void softmax_gradient_zero(void *row, trine_dtype dtype, int64_t first, int64_t n) {
    const int64_t size = (int64_t)vsize(dtype);
    memset((char *)row + first * size, 0, (size_t)((n - first) * size));
}

static inline void softmax_gradient_do(const softmax_gradient_row *r) {
    row_piece y, dy;
    float sum = 0, unused = 0;
    for (int64_t at = 0; at < r->visible; at += ROW_PIECE)
        FOR_TYPE(r->T, softmax_gradient_read_as, &sum, y, dy, r->y, r->dy, at, row_count(r->visible, at));
    for (int64_t at = 0; at < r->visible; at += ROW_PIECE) {
        const int count = row_count(r->visible, at);
        if (r->visible > ROW_PIECE) FOR_TYPE(r->T, softmax_gradient_read_as, &unused, y, dy, r->y, r->dy, at, count);
        if (r->dz)
            FOR_TYPE(r->of_dz, softmax_gradient_write_as, 1, sum, y, dy, row_sink_at(r->dz, r->of_dz, at, r->stream),
                     count, r->dz, r->dz);
        FOR_TYPE(r->T, softmax_gradient_write_as, r->scale, sum, y, dy, row_sink_at(r->dx, r->T, at, r->stream), count,
                 r->next_y, r->next_dy);
    }
    softmax_gradient_zero(r->dx, r->T, r->visible, r->n);
    if (r->dz) softmax_gradient_zero(r->dz, r->of_dz, r->visible, r->n);
}

enum { SOFTMAX_GRADIENT_CHUNK = 16 }; /* rows */
static inline void softmax_gradient_edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    trine_kernel_edge(edges, row_down(call), SOFTMAX_GRADIENT_CHUNK);
}

/* Rows by chunks: the body does those of chunks first .. last-1. */
static inline void softmax_gradient_run(const trine_call *call, int64_t rows, bool causal, cpu_body *body,
                                        const void *context) {
    const int64_t count = (rows + SOFTMAX_GRADIENT_CHUNK - 1) / SOFTMAX_GRADIENT_CHUNK;
    const int team = cpu_team(call, count, row_bytes(call));
    if (causal) /* rows grow */
        cpu_tasks(call, team, count, body, context);
    else
        cpu_shares(call, team, count, body, context);
}

#endif
