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

static void norm_prepare(const void *context, int64_t first, int64_t last, int thread) {
    const norm_gradient *a = context;
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t at = k * ROW_PIECE;
        const int count = row_count(a->n, at);
        float *const factor = a->factor + at;
        if (a->weight) row_load(factor, a->weight->data, at, count, a->weight->dtype);
        for (int j = 0; j < count; j++) factor[j] = a->weight ? factor[j] + a->weight_offset : 1;
        for (int64_t j = at + count; j < columns_pitch(a->n) && count < ROW_PIECE; j++) a->factor[j] = 0;
    }
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
    float *dweight = v->dweight, *dbias = v->dbias; /* of the piece's columns */
    ROW_EACH(count, j, k, m, {
        const vf dy = row_get(v->dy, T, at + j, m);
        const vf hat = row_mask((row_get(v->h, R, at + j, m) * part - mean) * rstd, m, 0);
        if (dweight) *(vf_any *)(dweight + j) += dy * hat;
        if (dbias) *(vf_any *)(dbias + j) += dy;
        const vf g = dy * *(const vf_any *)(factor + at + j);
        if (p != NULL) {
            *row_vector(p->g, j) = g;
            *row_vector(p->hat, j) = hat;
        }
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

static inline void norm_write(const norm_gradient *a, const norm_view *v, norm_pieces *p, int64_t i, int64_t at,
                              int count, float sum, float product, const norm_view *next) {
    const trine_dtype T = a->dy->dtype, R = a->h->dtype;
    const float c1 = a->mean ? sum / (float)a->n : 0, c2 = product / (float)a->n;
    FOR_TYPE(R, norm_write_as, v, p, c1, c2, at, count, next, T);
    if (a->dh) row_store(p->g, row_sink_of(a->dh, i, at, a->stream), count, R);
    if (a->p > 0) row_dropout(p->g, &a->dropout, (uint64_t)(i * a->n + at), count);
    row_store(p->g, row_sink_of(a->dx, i, at, a->stream), count, T);
}

/* Sums are dweight and dbias. */
static void norm_row(const void *op, int64_t i, float *const sum[COLUMNS_SUMS]) {
    const norm_gradient *a = op;
    norm_pieces pieces;
    const int n = (int)a->n;
    const norm_view next = norm_view_of(a, i + 1 < a->r ? i + 1 : i);
    norm_view v = norm_view_of(a, i);
    v.dweight = sum[0];
    v.dbias = sum[1];
    FOR_TYPE(a->dy->dtype, norm_read_any, &v, &pieces, a->factor, 0, n, a->h->dtype);
    norm_write(a, &v, &pieces, i, 0, n, v.sum, v.product, &next);
}

/* Of rows of several pieces: the sums of g and of g xhat. */
static void norm_measure(const void *op, int64_t i, int64_t at, int count, double *result) {
    const norm_gradient *a = op;
    norm_view v = norm_view_of(a, i);
    FOR_TYPE(a->dy->dtype, norm_read_any, &v, NULL, a->factor, at, count, a->h->dtype);
    result[0] = v.sum;
    result[1] = v.product;
}

/* A piece at once, where dx is all that is written. */
INLINE void norm_put_as(const norm_view *v, const float *factor, float c1, float c2, row_sink dx, int count,
                        trine_dtype R, trine_dtype T) {
    const float part = v->part, mean = v->mean * part, rstd = v->rstd / part, whole = v->rstd;
    float *const dweight = v->dweight, *const dbias = v->dbias;
    const int64_t at = dx.at;
    ROW_EACH(count, j, k, m, {
        const vf dy = row_get(v->dy, T, at + j, m);
        const vf hat = row_mask((row_get(v->h, R, at + j, m) * part - mean) * rstd, m, 0);
        if (dweight) *(vf_any *)(dweight + j) += dy * hat;
        if (dbias) *(vf_any *)(dbias + j) += dy;
        vf d = (dy * *(const vf_any *)(factor + at + j) - c1 - hat * c2) * whole;
        if (v->dresidual) d += row_get(v->dresidual, R, at + j, m);
        row_put(dx, T, j, m, d);
    });
}
INLINE void norm_put_any(const norm_view *v, const float *factor, float c1, float c2, row_sink dx, int count,
                         trine_dtype R, trine_dtype T) {
    if (R == TRINE_F32)
        norm_put_as(v, factor, c1, c2, dx, count, TRINE_F32, T);
    else
        norm_put_as(v, factor, c1, c2, dx, count, T, T);
}

static void norm_piece(const void *op, int64_t i, int64_t at, int count, const double *total,
                       float *const sum[COLUMNS_SUMS]) {
    const norm_gradient *a = op;
    const float g = (float)total[0], product = (float)total[1];
    norm_view v = norm_view_of(a, i);
    v.dweight = sum[0];
    v.dbias = sum[1];
    if (a->dh == NULL && a->p == 0) {
        FOR_TYPE(a->dy->dtype, norm_put_any, &v, a->factor, a->mean ? g / (float)a->n : 0, product / (float)a->n,
                 row_sink_of(a->dx, i, at, a->stream), count, a->h->dtype);
        return;
    }
    norm_pieces pieces;
    norm_view here = v;
    here.dy = (const char *)v.dy + at * (int64_t)vsize(a->dy->dtype); /* in the cache */
    here.h = (const char *)v.h + at * (int64_t)vsize(a->h->dtype);
    FOR_TYPE(a->dy->dtype, norm_read_any, &v, &pieces, a->factor, at, count, a->h->dtype);
    norm_write(a, &v, &pieces, i, at, count, g, product, &here);
}

/* The parameters that the arguments of both ops have. */
#define NORM_BACKWARD_PARAMS(args) \
    .weight_offset = (args)->weight_offset, .p = (args)->dropout, \
    .dropout = dropout_of((args)->dropout, (args)->seed, (args)->offset)

/* The op's sizes, tensors and parameters, as it defines them. */
static norm_gradient norm_gradient_of(const trine_call *call);

static size_t norm_backward_workspace(const trine_call *call) {
    const norm_gradient a = norm_gradient_of(call);
    return (size_t)columns_pitch(a.n) * sizeof(float) + columns_workspace(call, a.r, a.n, norm_sums(&a));
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
    const int64_t pieces = columns_pieces(a.n);
    const int team = pieces < PARTS_LEAST ? 1 : cpu_team(call, pieces, a.n * (int64_t)sizeof(float));
    cpu_shares(call, team, pieces, norm_prepare, &a);
    columns_job job = { .op = &a,
                        .row = norm_row,
                        .measure = norm_measure,
                        .piece = norm_piece,
                        .r = a.r,
                        .n = a.n,
                        .out = { a.dweight, a.dbias },
                        .stream = a.stream };
    columns_run(call, &job, a.factor + columns_pitch(a.n));
    return TRINE_OK;
}

#endif
