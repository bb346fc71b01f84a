/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of softmax's gradient on the CPU. A row that fits a piece is read once, a longer one twice. */
#ifndef TRINE_CPU_SOFTMAX_BACKWARD_H
#define TRINE_CPU_SOFTMAX_BACKWARD_H

#include "backends/cpu/core/parts.h"

/* A row, of which `visible` of n elements are read, and the rows that are read next. */
typedef struct softmax_gradient_row {
    const void *y, *dy, *next_y, *next_dy;
    void *dx, *dz; /* dz: the gradient without scale, NULL if it is not asked for */
    trine_dtype T, of_dz;
    int64_t visible, n;
    float scale;
    bool stream;
} softmax_gradient_row;

/* The sum of the products of pieces of y and of dy. */
INLINE void softmax_gradient_sum_as(float *sum, const softmax_gradient_row *r, int64_t at, int count, trine_dtype T) {
    const void *const y = r->y, *const dy = r->dy;
    vf acc[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        vf p[2], d[2];
        row_get2(p, y, T, at + j, m, T);
        row_get2(d, dy, T, at + j, m, T);
        for (int v = 0; v < 2; v++) acc[k + v] = vfma(p[v], d[v], acc[k + v]);
    });
    *sum = row_total(acc);
}
static inline float softmax_gradient_sum(const softmax_gradient_row *r, int64_t at, int count) {
    float sum;
    FOR_TYPE(r->T, softmax_gradient_sum_as, &sum, r, at, count);
    return sum;
}

/* dz = y (dy - sum) and dx = scale dz, while the next rows are fetched; y and dy are read again, from the caches. */
INLINE void softmax_gradient_write_to(const softmax_gradient_row *r, float sum, int64_t at, int count, bool stream,
                                      bool both, trine_dtype Z, trine_dtype T) {
    const void *const y = r->y, *const dy = r->dy, *const next_y = r->next_y, *const next_dy = r->next_dy;
    const float scale = r->scale;
    row_sink dx = row_sink_at(r->dx, T, at, r->stream), dz = row_sink_at(both ? r->dz : r->dx, Z, at, r->stream);
    dx.stream = stream; /* a constant, as in softmax_write_to */
    ROW_PAIRS(count, j, k, m, {
        vf p[2], d[2];
        row_prefetch2(next_y, T, j, k);
        row_prefetch2(next_dy, T, j, k);
        row_get2(p, y, T, at + j, m, T);
        row_get2(d, dy, T, at + j, m, T);
        for (int v = 0; v < 2; v++) d[v] = p[v] * (d[v] - sum);
        if (both) row_put2(dz, Z, j, m, d, T);
        for (int v = 0; v < 2; v++) d[v] *= scale;
        row_put2(dx, T, j, m, d, T);
    });
}
INLINE void softmax_gradient_write_as(const softmax_gradient_row *r, float sum, int64_t at, int count, trine_dtype T) {
    const bool stream = row_sink_at(r->dx, T, at, r->stream).stream;
    if (r->dz && r->of_dz == TRINE_F32)
        softmax_gradient_write_to(r, sum, at, count, stream, true, TRINE_F32, T);
    else if (r->dz)
        softmax_gradient_write_to(r, sum, at, count, stream, true, T, T);
    else if (stream)
        softmax_gradient_write_to(r, sum, at, count, true, false, T, T);
    else
        softmax_gradient_write_to(r, sum, at, count, false, false, T, T);
}
static inline void softmax_gradient_write(const softmax_gradient_row *r, int64_t at, int count, float sum) {
    FOR_TYPE(r->T, softmax_gradient_write_as, r, sum, at, count);
}

static inline void softmax_gradient_zero(void *row, trine_dtype dtype, int64_t first, int64_t n) {
    const int64_t size = (int64_t)vsize(dtype);
    memset((char *)row + first * size, 0, (size_t)((n - first) * size));
}

static inline void softmax_gradient_finish(const softmax_gradient_row *r) {
    softmax_gradient_zero(r->dx, r->T, r->visible, r->n);
    if (r->dz) softmax_gradient_zero(r->dz, r->of_dz, r->visible, r->n);
}

/* A row of one piece. */
static inline void softmax_gradient_do(const softmax_gradient_row *r) {
    const int count = (int)r->visible;
    softmax_gradient_write(r, 0, count, softmax_gradient_sum(r, 0, count));
    softmax_gradient_finish(r);
}

/* The rows of an op, which says what row i is. */
typedef struct softmax_gradients {
    softmax_gradient_row (*row)(const void *op, int64_t i);
    const void *op;
    int64_t rows, n;
    bool causal, stream;
} softmax_gradients;

enum { SOFTMAX_GRADIENT_SUM, SOFTMAX_GRADIENT_WRITE }; /* passes over rows of several pieces */

static inline void softmax_gradient_begin(const void *op, parts_row *row) {
    const softmax_gradients *a = op;
    row->length = a->row(a->op, row->i).visible;
}
static inline void softmax_gradient_piece(const void *op, const parts_row *row, int64_t at, int count, float *h,
                                          double *result) {
    const softmax_gradients *a = op;
    softmax_gradient_row r = a->row(a->op, row->i);
    (void)h;
    if (row->pass == SOFTMAX_GRADIENT_SUM) {
        result[0] = softmax_gradient_sum(&r, at, count);
        return;
    }
    r.next_y = (const char *)r.y + at * (int64_t)vsize(r.T); /* in the cache already */
    r.next_dy = (const char *)r.dy + at * (int64_t)vsize(r.T);
    softmax_gradient_write(&r, at, count, (float)row->number[0]);
}
static inline void softmax_gradient_add(const void *op, parts_row *row, const double *result) {
    (void)op;
    row->number[0] += result[0];
}
static inline bool softmax_gradient_end(const void *op, parts_row *row) {
    const softmax_gradients *a = op;
    row->last = row->pass++ == SOFTMAX_GRADIENT_SUM;
    if (row->last) return true;
    const softmax_gradient_row r = a->row(a->op, row->i);
    softmax_gradient_finish(&r);
    return false;
}

static inline parts softmax_gradient_parts(const trine_call *call, const softmax_gradients *a) {
    return (parts){ .op = a,
                    .rows = a->rows,
                    .n = a->n,
                    .bytes = row_bytes(call),
                    .in_turn = a->causal,
                    .stream = a->stream,
                    .begin = softmax_gradient_begin,
                    .piece = softmax_gradient_piece,
                    .add = softmax_gradient_add,
                    .end = softmax_gradient_end };
}

static inline size_t softmax_gradient_workspace(const trine_call *call, int64_t rows, int64_t n) {
    const softmax_gradients a = { .rows = rows, .n = n };
    const parts job = softmax_gradient_parts(call, &a);
    return n > ROW_PIECE ? parts_workspace(call, &job) : 0;
}

/* Rows of a chunk: of few elements a thread takes several at a time. */
enum { SOFTMAX_GRADIENT_CHUNK = 16 };
static inline int64_t softmax_gradient_chunk(int64_t n) {
    const int64_t rows = n > 0 ? ROW_PIECE / 2 / n : SOFTMAX_GRADIENT_CHUNK;
    return rows < 1 ? 1 : rows < SOFTMAX_GRADIENT_CHUNK ? rows : SOFTMAX_GRADIENT_CHUNK;
}
static inline void softmax_gradient_edges(const trine_call *call, trine_kernel_edges *edges) {
    parts_row_edges(call, edges);
    trine_kernel_edge(edges, row_down(call), softmax_gradient_chunk(call->dim[row_along(call)]));
}

static inline void softmax_gradient_chunks(const void *context, int64_t first, int64_t last, int thread) {
    const softmax_gradients *a = context;
    const int64_t rows = softmax_gradient_chunk(a->n), end = last * rows < a->rows ? last * rows : a->rows;
    (void)thread;
    for (int64_t i = first * rows; i < end; i++) {
        const softmax_gradient_row r = a->row(a->op, i);
        softmax_gradient_do(&r);
    }
    if (a->stream) stream_fence();
}

static inline void softmax_gradient_run(const trine_call *call, const softmax_gradients *a) {
    if (a->n > ROW_PIECE) {
        const parts job = softmax_gradient_parts(call, a);
        parts_run(call, &job, call->workspace);
        return;
    }
    const int64_t rows = softmax_gradient_chunk(a->n), count = (a->rows + rows - 1) / rows;
    cpu_run(call, cpu_team(call, count, row_bytes(call)), count, a->causal, softmax_gradient_chunks, a);
}

#endif
