/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm: the one is the other without the mean. A row that fits a piece is read once; a longer one again for each step, from the caches. */
#ifndef TRINE_CPU_NORM_H
#define TRINE_CPU_NORM_H

#include "row.h"

typedef struct norm {
    const trine_tensor *x, *residual, *weight, *bias, *y, *residual_out, *mean, *rstd;
    int64_t r, n;
    float eps, weight_offset, p;
    bool centered; /* layer_norm */
    bool round;    /* before the weight */
    bool stream;
    dropout dropout;
} norm;

/* h from element `at` of row i on, padded with zeros. */
static inline void norm_gather(const norm *a, float *h, int64_t i, int64_t at, int count) {
    row_load(h, row_at(a->x, i), at, count, a->x->dtype);
    if (a->p > 0) row_dropout(h, &a->dropout, (uint64_t)(i * a->n + at), count);
    if (a->residual) row_add(h, row_at(a->residual, i), at, count, a->residual->dtype);
    row_pad(h, count, 0);
}

INLINE float norm_sum(const float *h, int count) {
    vf acc[ROW_ACC] = {0};
    ROW_SUM(count, j, k, acc, acc[k] += *(const vf *)(h + j));
    return row_total(acc);
}
INLINE float norm_squares(const float *h, int count) {
    vf acc[ROW_ACC] = {0};
    ROW_SUM(count, j, k, acc, acc[k] = vfma(*(const vf *)(h + j), *(const vf *)(h + j), acc[k]));
    return row_total(acc);
}

/* Adds the sums of h - origin and of its square. */
INLINE void norm_deviations(const float *h, int count, float origin, float *sum, float *squares) {
    vf acc[ROW_ACC] = {0}, acc2[ROW_ACC] = {0};
    ROW_SUM(count, j, k, acc, {
        const vf d = *(const vf *)(h + j) - origin;
        acc[k] += d;
        acc2[k] = vfma(d, d, acc2[k]);
    });
    *sum += row_total(acc);
    *squares += row_total(acc2);
}

INLINE void norm_scale(float *h, int count, float mean, float rstd) {
    for (int j = 0; j < count; j += VL) *row_vector(h, j) = (*row_vector(h, j) - mean) * rstd;
}
INLINE void norm_round_as(float *h, int count, trine_dtype T) {
    if (T == TRINE_F32) return;
    for (int j = 0; j < count; j += VL) {
        const vf v = *row_vector(h, j);
        *row_vector(h, j) = T == TRINE_BF16 ? vf_from_bf16(vf_to_bf16(v)) : vf_from_f16(vf_to_f16(v));
    }
}

/* The row's mean (0 if not centered) and 1/sqrt(variance + eps), or of the mean square. In a row of one piece h is left in the buffer. */
static inline void norm_statistics(const norm *a, float *h, int64_t i, float *mean_out, float *rstd_out) {
    const int64_t n = a->n;
    const float length = (float)n;
    float sum = 0, squares = 0, mean = 0;
    for (int64_t at = 0; at < n; at += ROW_PIECE) {
        const int count = row_count(n, at);
        norm_gather(a, h, i, at, count);
        if (a->centered) sum += norm_sum(h, count);
        else squares += norm_squares(h, count);
    }
    float variance = squares / length;
    if (a->centered) {
        /* The sums of h - origin correct both the mean and the variance for the rounding of the first mean (spec/layer_norm.c). */
        const float origin = sum / length;
        sum = 0;
        for (int64_t at = 0; at < n; at += ROW_PIECE) {
            const int count = row_count(n, at);
            if (n > ROW_PIECE) norm_gather(a, h, i, at, count);
            row_pad(h, count, origin);
            norm_deviations(h, count, origin, &sum, &squares);
        }
        const float shift = sum / length;
        mean = isfinite(origin) ? origin + shift : origin;
        variance = squares / length - shift * shift;
        if (variance < 0) variance = 0;
    }
    *mean_out = mean;
    *rstd_out = 1 / sqrtf(variance + a->eps);
}

static inline void norm_row(const norm *a, float *h, int64_t i) {
    float mean, rstd;
    norm_statistics(a, h, i, &mean, &rstd);
    if (a->mean) ((float *)a->mean->data)[i] = mean;
    if (a->rstd) ((float *)a->rstd->data)[i] = rstd;
    for (int64_t at = 0; at < a->n; at += ROW_PIECE) {
        const int count = row_count(a->n, at);
        if (a->n > ROW_PIECE) norm_gather(a, h, i, at, count);
        if (a->residual_out) row_store(h, row_at(a->residual_out, i), at, count, a->residual_out->dtype, a->stream);
        norm_scale(h, count, mean, rstd);
        if (a->round) FOR_TYPE(a->y->dtype, norm_round_as, h, count);
        if (a->weight) row_multiply(h, a->weight->data, at, count, a->weight_offset, a->weight->dtype);
        if (a->bias) row_add(h, a->bias->data, at, count, a->bias->dtype);
        row_store(h, row_at(a->y, i), at, count, a->y->dtype, a->stream);
    }
}

static inline void norm_rows(const trine_call *call, norm *a) {
    a->r = call->dim[0];
    a->n = call->dim[1];
    a->stream = row_streams(call);
    const int team = cpu_team(call, a->r, row_bytes(call));
#pragma omp parallel num_threads(team) if (team > 1)
    {
        row_piece h;
        int64_t first, last;
        cpu_share(a->r, omp_get_thread_num(), omp_get_num_threads(), &first, &last);
        for (int64_t i = first; i < last; i++) norm_row(a, h, i);
        if (a->stream) stream_fence();
    }
}

#endif
