/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm_backward and layer_norm_backward: the one is the other without the mean. */
#ifndef TRINE_CPU_NORM_BACKWARD_H
#define TRINE_CPU_NORM_BACKWARD_H

#include "columns.h"

typedef struct norm_gradient {
    const trine_tensor *dy, *h, *weight, *mean, *rstd, *dresidual, *dx, *dh, *dweight, *dbias;
    int64_t r, n;
    float weight_offset, p;
    dropout dropout;
    bool stream;
} norm_gradient;

/* A thread's buffers: pieces of dy and of xhat. */
typedef struct norm_pieces {
    row_piece dy, hat;
} norm_pieces;

/* Workspace in floats: partial sums of every block, then of the current run of each thread; as many again for dbias. */
INLINE int64_t norm_sums(const norm_gradient *a) { return (a->dweight != NULL) + (a->dbias != NULL); }
static inline int norm_team(const trine_call *call, int64_t r) { return cpu_team(call, columns_blocks(r), row_bytes(call)); }
static inline size_t norm_workspace(const trine_call *call, const norm_gradient *a) {
    const int64_t r = call->dim[0], n = call->dim[1];
    return (size_t)(norm_sums(a) * columns_pitch(n) * (columns_blocks(r) + norm_team(call, r))) * sizeof(float);
}

static inline void norm_gather(const norm_gradient *a, norm_pieces *m, int64_t i, int64_t at, int count) {
    const float mean = a->mean ? ((const float *)a->mean->data)[i] : 0, rstd = ((const float *)a->rstd->data)[i];
    row_load(m->dy, row_at(a->dy, i), at, count, a->dy->dtype);
    row_load(m->hat, row_at(a->h, i), at, count, a->h->dtype);
    for (int j = 0; j < count; j += VL) *row_vector(m->hat, j) = (*row_vector(m->hat, j) - mean) * rstd;
}

/* dweight += dy xhat, dbias += dy over a piece. */
static inline void norm_accumulate(const norm_pieces *restrict m, float *restrict dweight, float *restrict dbias, int count) {
    if (dweight)
        for (int j = 0; j < count; j++) dweight[j] += m->dy[j] * m->hat[j];
    if (dbias)
        for (int j = 0; j < count; j++) dbias[j] += m->dy[j];
}

/* dy becomes g = w dy; adds the sums of g and of g xhat. */
static inline void norm_weigh(const norm_gradient *a, norm_pieces *m, int64_t at, int count, float *sum, float *product) {
    if (a->weight) row_multiply(m->dy, a->weight->data, at, count, a->weight_offset, a->weight->dtype);
    row_pad(m->dy, count, 0);
    row_pad(m->hat, count, 0);
    vf acc[ROW_ACC] = {0}, acc2[ROW_ACC] = {0};
    ROW_SUM(count, j, k, acc, {
        acc[k] += *row_vector(m->dy, j);
        acc2[k] = vfma(*row_vector(m->dy, j), *row_vector(m->hat, j), acc2[k]);
    });
    *sum += row_total(acc);
    *product += row_total(acc2);
}

/* One row; dweight and dbias are where its terms are added, or NULL. */
static inline void norm_row(const norm_gradient *a, norm_pieces *m, int64_t i, float *dweight, float *dbias) {
    const int64_t n = a->n;
    float sum = 0, product = 0;
    for (int64_t at = 0; at < n; at += ROW_PIECE) {
        const int count = row_count(n, at);
        norm_gather(a, m, i, at, count);
        norm_accumulate(m, dweight ? dweight + at : NULL, dbias ? dbias + at : NULL, count);
        norm_weigh(a, m, at, count, &sum, &product);
    }
    const float rstd = ((const float *)a->rstd->data)[i], c1 = a->mean ? sum / (float)n : 0, c2 = product / (float)n;
    for (int64_t at = 0; at < n; at += ROW_PIECE) {
        const int count = row_count(n, at);
        if (n > ROW_PIECE) {
            norm_gather(a, m, i, at, count);
            if (a->weight) row_multiply(m->dy, a->weight->data, at, count, a->weight_offset, a->weight->dtype);
        }
        for (int j = 0; j < count; j += VL)
            *row_vector(m->dy, j) = (*row_vector(m->dy, j) - c1 - *row_vector(m->hat, j) * c2) * rstd;
        if (a->dresidual) row_add(m->dy, row_at(a->dresidual, i), at, count, a->dresidual->dtype);
        if (a->dh) row_store(m->dy, row_at(a->dh, i), at, count, a->dh->dtype, a->stream);
        if (a->p > 0) row_dropout(m->dy, &a->dropout, (uint64_t)(i * n + at), count);
        row_store(m->dy, row_at(a->dx, i), at, count, a->dx->dtype, a->stream);
    }
}

/* The rows of block b. The sums of a run of rows are in `run`, those of the blocks in `partial`: of dweight and of dbias, NULL where not asked for. */
static inline void norm_block(const norm_gradient *a, norm_pieces *m, int64_t b, float *const partial[2], float *const run[2]) {
    const int64_t pitch = columns_pitch(a->n), first = b * columns_rows(a->r);
    const int64_t last = first + columns_rows(a->r) < a->r ? first + columns_rows(a->r) : a->r;
    for (int k = 0; k < 2; k++)
        if (partial[k]) memset(partial[k] + b * pitch, 0, (size_t)a->n * sizeof(float));
    for (int64_t i = first; i < last; i += COLUMNS_RUN) {
        for (int k = 0; k < 2; k++)
            if (run[k]) memset(run[k], 0, (size_t)a->n * sizeof(float));
        for (int64_t row = i; row < last && row < i + COLUMNS_RUN; row++) norm_row(a, m, row, run[0], run[1]);
        for (int k = 0; k < 2; k++)
            if (run[k]) columns_add(partial[k] + b * pitch, run[k], a->n);
    }
}

static inline void norm_rows(const trine_call *call, norm_gradient *a) {
    a->r = call->dim[0];
    a->n = call->dim[1];
    a->stream = row_streams(call);
    const int64_t blocks = columns_blocks(a->r), pitch = columns_pitch(a->n);
    const int team = norm_team(call, a->r);
    const trine_tensor *out[2] = {a->dweight, a->dbias};
    float *partial[2] = {0}, *runs[2] = {0}, *next = call->workspace;
    for (int k = 0; k < 2; k++) {
        if (!out[k]) continue;
        partial[k] = next;
        runs[k] = next + blocks * pitch;
        next = runs[k] + team * pitch;
    }
#pragma omp parallel num_threads(team) if (team > 1)
    {
        norm_pieces m;
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        float *const run[2] = {runs[0] ? runs[0] + thread * pitch : NULL, runs[1] ? runs[1] + thread * pitch : NULL};
        int64_t first, last;
        cpu_share(blocks, thread, threads, &first, &last);
        for (int64_t b = first; b < last; b++) norm_block(a, &m, b, partial, run);
        if (a->stream) stream_fence();
#pragma omp barrier
        cpu_share(pitch / 16, thread, threads, &first, &last);
        last = last * 16 < a->n ? last * 16 : a->n;
        for (int k = 0; k < 2; k++)
            if (out[k]) columns_finish(partial[k], blocks, pitch, first * 16, last, out[k]);
    }
}

#endif
