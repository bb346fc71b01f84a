/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm: the one is the other without the mean. A row that fits a piece is read once; a longer one again for each step,
 * from the caches. */
#ifndef TRINE_CPU_NORM_H
#define TRINE_CPU_NORM_H

#include "row.h"

typedef struct norm {
    const trine_tensor *x, *residual, *weight, *bias, *y, *residual_out, *mean, *rstd;
    int64_t r, n;
    float eps, weight_offset, p;
    bool round; /* before the weight */
    bool stream;
    dropout dropout;
} norm;

/* h = x + residual; adds the sum of h, or of its squares. */
INLINE void norm_read_as(float *sum, float *h, const void *x, const void *residual, int64_t x_at, int64_t at, int count, trine_dtype R, trine_dtype T) {
    vf acc[ROW_ACC] = { 0 };
    ROW_EACH(count, j, k, m, {
        vf v = row_get(x, T, x_at + j, m);
        if (residual) v += row_get(residual, R, at + j, m);
        *row_vector(h, j) = v;
        acc[k] = CENTERED ? acc[k] + v : vfma(v, v, acc[k]);
    });
    *sum += row_total(acc);
}
INLINE void norm_read_any(float *sum, float *h, const void *x, const void *residual, int64_t x_at, int64_t at, int count, trine_dtype R, trine_dtype T) {
    if (R == TRINE_F32)
        norm_read_as(sum, h, x, residual, x_at, at, count, TRINE_F32, T);
    else
        norm_read_as(sum, h, x, residual, x_at, at, count, T, T); /* of x's type, if not f32 */
}

/* After dropout x is in h. */
INLINE void norm_read_dropped(float *sum, float *h, const void *residual, int64_t at, int count, trine_dtype R) {
    norm_read_as(sum, h, h, residual, 0, at, count, R, TRINE_F32);
}

/* h from element `at` of row i on; adds the sum of h, or of its squares if not centered. */
static inline void norm_read(const norm *a, float *h, int64_t i, int64_t at, int count, float *sum) {
    const void *x = row_at(a->x, i), *residual = a->residual ? row_at(a->residual, i) : NULL;
    const trine_dtype R = a->residual ? a->residual->dtype : a->x->dtype;
    if (a->p > 0) {
        row_load(h, x, at, count, a->x->dtype);
        row_dropout(h, &a->dropout, (uint64_t)(i * a->n + at), count);
        FOR_TYPE(R, norm_read_dropped, sum, h, residual, at, count);
        return;
    }
    FOR_TYPE(a->x->dtype, norm_read_any, sum, h, x, residual, at, at, count, R);
}

/* Adds the sums of h - origin and of its square. */
static inline void norm_deviations(float *h, int count, float origin, float *sum, float *squares) {
    vf acc[ROW_ACC] = { 0 }, acc2[ROW_ACC] = { 0 };
    ROW_EACH(count, j, k, m, {
        const vf d = row_mask(*row_vector(h, j) - origin, m, 0);
        acc[k] += d;
        acc2[k] = vfma(d, d, acc2[k]);
    });
    *sum += row_total(acc);
    *squares += row_total(acc2);
}

/* The row's mean (0 if not centered) and 1/sqrt(variance + eps), or of the mean square. Of a row of one piece h is left in the buffer. */
static inline void norm_statistics(const norm *a, float *h, int64_t i, float *mean_out, float *rstd_out) {
    const int64_t n = a->n;
    const float length = (float)n;
    float sum = 0, mean = 0;
    for (int64_t at = 0; at < n; at += ROW_PIECE) norm_read(a, h, i, at, row_count(n, at), &sum);
    float variance = sum / length;
    if (CENTERED) {
        /* The sums of h - origin correct both the mean and the variance for the rounding of the first mean (spec/layer_norm.c). */
        const float origin = sum / length;
        float shift = 0, squares = 0;
        for (int64_t at = 0; at < n; at += ROW_PIECE) {
            if (n > ROW_PIECE) norm_read(a, h, i, at, row_count(n, at), &sum);
            norm_deviations(h, row_count(n, at), origin, &shift, &squares);
        }
        shift /= length;
        mean = isfinite(origin) ? origin + shift : origin;
        variance = squares / length - shift * shift;
        if (variance < 0) variance = 0;
    }
    *mean_out = mean;
    *rstd_out = 1 / sqrtf(variance + a->eps);
}

INLINE vf norm_round(vf v, trine_dtype T) { return T == TRINE_BF16 ? vf_from_bf16(vf_to_bf16(v)) : T == TRINE_F16 ? vf_from_f16(vf_to_f16(v)) : v; }

/* y = (h - mean) rstd (weight + offset) + bias, while the next row is fetched. */
INLINE void norm_write_as(const norm *a, float *h, float mean, float rstd, row_sink y, int count, const void *next_x, const void *next_residual, trine_dtype W,
                          trine_dtype T) {
    const void *weight = a->weight ? a->weight->data : NULL, *bias = a->bias ? a->bias->data : NULL;
    const trine_dtype R = a->residual ? a->residual->dtype : T;
    const float offset = a->weight_offset;
    const bool round = a->round && T != TRINE_F32;
    ROW_EACH(count, j, k, m, {
        row_prefetch(next_x, T, j, k);
        if (next_residual) row_prefetch(next_residual, R, j, k);
        vf v = (*row_vector(h, j) - mean) * rstd;
        if (round) v = norm_round(v, T);
        if (weight) v *= row_get(weight, W, y.at + j, m) + offset;
        if (bias) v += row_get(bias, W, y.at + j, m);
        row_put(y, T, j, m, v);
    });
}
INLINE void norm_write_any(const norm *a, float *h, float mean, float rstd, row_sink y, int count, const void *next_x, const void *next_residual,
                           trine_dtype T) {
    const trine_dtype W = a->weight ? a->weight->dtype : a->bias ? a->bias->dtype : T;
    if (W == TRINE_F32)
        norm_write_as(a, h, mean, rstd, y, count, next_x, next_residual, TRINE_F32, T);
    else
        norm_write_as(a, h, mean, rstd, y, count, next_x, next_residual, T, T); /* of x's type, if not f32 */
}

static inline void norm_row(const norm *a, float *h, int64_t i) {
    float mean, rstd;
    norm_statistics(a, h, i, &mean, &rstd);
    if (a->mean) ((float *)a->mean->data)[i] = mean;
    if (a->rstd) ((float *)a->rstd->data)[i] = rstd;
    const int64_t next = i + 1 < a->r ? i + 1 : i;
    float unused = 0;
    for (int64_t at = 0; at < a->n; at += ROW_PIECE) {
        const int count = row_count(a->n, at);
        if (a->n > ROW_PIECE) norm_read(a, h, i, at, count, &unused);
        if (a->residual_out) row_store(h, row_sink_of(a->residual_out, i, at, a->stream), count, a->residual_out->dtype);
        const row_sink y = row_sink_of(a->y, i, at, a->stream);
        FOR_TYPE(a->y->dtype, norm_write_any, a, h, mean, rstd, y, count, row_at(a->x, next), a->residual ? row_at(a->residual, next) : NULL);
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
