/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward: the one is the other without the mean. */
#ifndef TRINE_CPU_NORM_BACKWARD_H
#define TRINE_CPU_NORM_BACKWARD_H

#include "backends/cpu/core/columns.h"

typedef struct norm_gradient {
    const trine_tensor *dy, *h, *weight, *mean, *rstd, *dresidual, *philox, *dx, *dh, *dweight, *dbias;
    int64_t r, n;
    float weight_offset, p;
    dropout dropout;
    bool stream;
    float *factor; /* weight + offset in f32, zeros from n to the pitch */
} norm_gradient;

/* A thread's buffers: pieces of g = factor dy and of xhat. */
typedef struct norm_pieces {
    row_piece g, hat;
} norm_pieces;

INLINE int norm_sums(const norm_gradient *a) { return (a->dweight != NULL) + (a->dbias != NULL); }

static inline void norm_prepare(const norm_gradient *a) {
    for (int64_t at = 0; a->weight && at < a->n; at += ROW_PIECE)
        row_load(a->factor + at, a->weight->data, at, row_count(a->n, at), a->weight->dtype);
    for (int64_t j = 0; j < a->n; j++) a->factor[j] = a->weight ? a->factor[j] + a->weight_offset : 1;
    for (int64_t j = a->n; j < columns_pitch(a->n); j++) a->factor[j] = 0;
}

/* One row as its steps see it. dweight and dbias are where its terms are added, NULL where they are not. */
typedef struct norm_view {
    const void *dy, *h, *dresidual;
    float mean, rstd, part; /* part: h - mean, of large numbers by halves, which f32 has */
    float sum, product;     /* of g, of g xhat */
    float *dweight, *dbias;
} norm_view;

INLINE void norm_read_as(norm_view *v, norm_pieces *p, const float *factor, int64_t at, int count, trine_dtype R,
                         trine_dtype T) {
    vf acc[ROW_ACC] = { 0 }, acc2[ROW_ACC] = { 0 };
    const float part = v->part, mean = v->mean * part, rstd = v->rstd / part;
    float *dweight = v->dweight, *dbias = v->dbias;
    ROW_EACH(count, j, k, m, {
        const vf dy = row_get(v->dy, T, at + j, m);
        const vf hat = row_mask((row_get(v->h, R, at + j, m) * part - mean) * rstd, m, 0);
        if (dweight) *(vf_any *)(dweight + at + j) += dy * hat;
        if (dbias) *(vf_any *)(dbias + at + j) += dy;
        const vf g = dy * *(const vf_any *)(factor + at + j);
        *row_vector(p->g, j) = g;
        *row_vector(p->hat, j) = hat;
        acc[k] += g;
        acc2[k] = vfma(g, hat, acc2[k]);
    });
    v->sum += row_total(acc);
    v->product += row_total(acc2);
}
INLINE void norm_read_any(norm_view *v, norm_pieces *p, const float *factor, int64_t at, int count, trine_dtype R,
                          trine_dtype T) {
    if (R == TRINE_F32)
        norm_read_as(v, p, factor, at, count, TRINE_F32, T);
    else
        norm_read_as(v, p, factor, at, count, T, T); /* of dy's type, if not f32 */
}

/* g becomes dh = rstd (g - c1 - xhat c2) + dresidual, while the next rows are fetched. */
INLINE void norm_write_as(const norm_view *v, norm_pieces *p, float c1, float c2, int64_t at, int count,
                          const norm_view *next, trine_dtype T, trine_dtype R) {
    const float rstd = v->rstd;
    ROW_EACH(count, j, k, m, {
        row_prefetch(next->dy, T, j, k);
        row_prefetch(next->h, R, j, k);
        vf d = (*row_vector(p->g, j) - c1 - *row_vector(p->hat, j) * c2) * rstd;
        if (v->dresidual) d += row_get(v->dresidual, R, at + j, m);
        *row_vector(p->g, j) = d;
    });
}

static inline norm_view norm_view_of(const norm_gradient *a, int64_t i) {
    return (norm_view){
        .dy = row_at(a->dy, i),
        .h = row_at(a->h, i),
        .dresidual = a->dresidual ? row_at(a->dresidual, i) : NULL,
        .mean = a->mean ? ((const float *)a->mean->data)[i] : 0,
        .rstd = ((const float *)a->rstd->data)[i],
        .part = a->mean && ((const float *)a->rstd->data)[i] < 1 ? 0.5f : 1,
    };
}

/* Sums are dweight and dbias. */
static void norm_row(const void *op, int64_t i, float *const sum[COLUMNS_SUMS]) {
    const norm_gradient *a = op;
    norm_pieces pieces, *p = &pieces;
    const int64_t n = a->n;
    const trine_dtype T = a->dy->dtype, R = a->h->dtype;
    const norm_view next = norm_view_of(a, i + 1 < a->r ? i + 1 : i);
    norm_view v = norm_view_of(a, i);
    v.dweight = sum[0];
    v.dbias = sum[1];
    for (int64_t at = 0; at < n; at += ROW_PIECE) FOR_TYPE(T, norm_read_any, &v, p, a->factor, at, row_count(n, at), R);
    const float c1 = a->mean ? v.sum / (float)n : 0, c2 = v.product / (float)n;
    v.dweight = v.dbias = NULL;
    for (int64_t at = 0; at < n; at += ROW_PIECE) {
        const int count = row_count(n, at);
        if (n > ROW_PIECE) FOR_TYPE(T, norm_read_any, &v, p, a->factor, at, count, R);
        FOR_TYPE(R, norm_write_as, &v, p, c1, c2, at, count, &next, T);
        if (a->dh) row_store(p->g, row_sink_of(a->dh, i, at, a->stream), count, R);
        if (a->p > 0) row_dropout(p->g, &a->dropout, (uint64_t)(i * n + at), count);
        row_store(p->g, row_sink_of(a->dx, i, at, a->stream), count, T);
    }
}

/* The parameters that the arguments of both ops have. */
#define NORM_BACKWARD_PARAMS(args) \
    .weight_offset = (args)->weight_offset, .p = (args)->dropout, \
    .dropout = dropout_of((args)->dropout, (args)->seed, (args)->offset)

/* The op's sizes, tensors and parameters, as it defines them. */
static norm_gradient norm_gradient_of(const trine_call *call);

static size_t norm_backward_workspace(const trine_call *call) {
    const norm_gradient a = norm_gradient_of(call);
    return (size_t)(columns_pitch(a.n) + columns_workspace(call, a.r, a.n, norm_sums(&a))) * sizeof(float);
}

static void norm_backward_edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    columns_edges(edges, row_down(call), row_along(call));
    dropout_edges(edges, row_along(call));
}

static trine_status norm_backward_launch(const trine_call *call) {
    norm_gradient a = norm_gradient_of(call);
    a.stream = row_streams(call);
    if (a.philox) dropout_tell(&a.dropout, a.philox);
    a.factor = call->workspace;
    norm_prepare(&a);
    columns_job job = {
        .op = &a, .row = norm_row, .r = a.r, .n = a.n, .out = { a.dweight, a.dbias }, .stream = a.stream
    };
    columns_run(call, &job, a.factor + columns_pitch(a.n));
    return TRINE_OK;
}

#endif
