/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm: the one is the other without the mean. A row that fits a piece is read once; a longer one
 * again for each step, from the caches. */
#ifndef TRINE_CPU_NORM_H
#define TRINE_CPU_NORM_H

#include <float.h>

#include "backends/cpu/core/row.h"

typedef struct norm {
    const trine_tensor *x, *residual, *philox, *weight, *bias, *y, *residual_out, *mean, *rstd;
    int64_t r, n;
    float eps, weight_offset, p;
    bool round; /* before the weight */
    bool stream;
    dropout dropout;
    const float *factor, *shift; /* weight + offset, and bias, in the order of norm_order; NULL: no bias */
} norm;

/* h = x + residual, in the order that suits `order`; adds the sum of h, or of its squares. */
INLINE void norm_read_as(float *sum, float *h, const void *x, const void *residual, int64_t x_at, int64_t at, int count,
                         trine_dtype order, trine_dtype R, trine_dtype T) {
    vf acc[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        vf v[2], more[2];
        row_get2(v, x, T, x_at + j, m, order);
        if (residual != NULL) {
            row_get2(more, residual, R, at + j, m, order);
            v[0] += more[0];
            v[1] += more[1];
        }
        *row_vector(h, j) = v[0];
        *row_vector(h, j + VL) = v[1];
        acc[k] = CENTERED ? acc[k] + v[0] : vfma(v[0], v[0], acc[k]);
        acc[k + 1] = CENTERED ? acc[k + 1] + v[1] : vfma(v[1], v[1], acc[k + 1]);
    });
    *sum += row_total(acc);
}
INLINE void norm_read_any(float *sum, float *h, const void *x, const void *residual, int64_t x_at, int64_t at,
                          int count, trine_dtype R, trine_dtype T) {
    if (residual == NULL)
        norm_read_as(sum, h, x, NULL, x_at, at, count, T, T, T);
    else if (R == TRINE_F32)
        norm_read_as(sum, h, x, residual, x_at, at, count, T, TRINE_F32, T);
    else
        norm_read_as(sum, h, x, residual, x_at, at, count, T, T, T); /* of x's type, if not f32 */
}

/* After dropout x is in h, in order. */
INLINE void norm_read_dropped(float *sum, float *h, const void *residual, int64_t at, int count, trine_dtype R) {
    norm_read_as(sum, h, h, residual, 0, at, count, TRINE_F32, R, TRINE_F32);
}

/* The order of what norm_read left in h. */
static inline trine_dtype norm_order(const norm *a) { return a->p > 0 ? TRINE_F32 : a->x->dtype; }

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
static inline void norm_deviations(float *h, int count, float origin, trine_dtype order, float *sum, float *squares) {
    vf acc[ROW_ACC] = { 0 }, acc2[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        vf d[2] = { *row_vector(h, j) - origin, *row_vector(h, j + VL) - origin };
        row_mask2(d, m, order);
        _Pragma("GCC unroll 2")
        for (int v = 0; v < 2; v++) {
            acc[k + v] += d[v];
            acc2[k + v] = vfma(d[v], d[v], acc2[k + v]);
        }
    });
    *sum += row_total(acc);
    *squares += row_total(acc2);
}

/* h becomes h scale; adds the sum of that, or of its squares. */
static void norm_scale(float *h, int count, float scale, float *sum) {
    vf acc[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        _Pragma("GCC unroll 2")
        for (int v = 0; v < 2; v++) {
            const vf x = *row_vector(h, j + v * VL) *= scale;
            acc[k + v] = CENTERED ? acc[k + v] + x : vfma(x, x, acc[k + v]);
        }
    });
    *sum += row_total(acc);
}

/* A piece of h scale, and its sum. */
static inline void norm_take(const norm *a, float *h, int64_t i, int64_t at, float scale, float *sum) {
    float unscaled = 0;
    norm_read(a, h, i, at, row_count(a->n, at), scale == 1 ? sum : &unscaled);
    if (scale != 1) norm_scale(h, row_count(a->n, at), scale, sum);
}

/* Of h scale, and eps in proportion: the row's mean (0 if not centered), its variance, or mean square, with eps, and
 * what 1/sqrt of that is. Of a row of one piece h scale is left in the buffer. */
typedef struct norm_statistics {
    float scale, mean, square, rstd;
} norm_statistics;

static inline norm_statistics norm_find(const norm *a, float *h, int64_t i, float scale) {
    const int64_t n = a->n;
    const float length = (float)n;
    float sum = 0, mean = 0;
    for (int64_t at = 0; at < n; at += ROW_PIECE) norm_take(a, h, i, at, scale, &sum);
    float variance = sum / length;
    if (CENTERED) {
        /* The sums of h - origin correct both the mean and the variance for the rounding of the first mean
         * (spec/norm/layer_norm.c). */
        const float origin = sum / length;
        float shift = 0, squares = 0;
        for (int64_t at = 0; at < n; at += ROW_PIECE) {
            if (n > ROW_PIECE) norm_take(a, h, i, at, scale, &sum);
            norm_deviations(h, row_count(n, at), origin, norm_order(a), &shift, &squares);
        }
        shift /= length;
        mean = isfinite(origin) ? origin + shift : origin;
        variance = squares / length - shift * shift;
        if (variance < 0) variance = 0;
    }
    float eps = a->eps * scale * scale;
    if (scale < 1 && eps < FLT_MIN) eps = FLT_MIN; /* of a spread of 0 */
    return (norm_statistics){ scale, mean, variance + eps, 1 / sqrtf(variance + eps) };
}

/* The powers of two of spec/norm/norm.h. A row about a mean far from zero is as it is:
 * its spread is no less than the mean's last bit, or 0. */
static norm_statistics norm_find_scaled(const norm *a, float *h, int64_t i, float mean, float square) {
    return norm_find(a, h, i, square < 1 && fabsf(mean) < 1 ? 0x1p96f : square < 1 ? 1 : 0x1p-96f);
}
static inline norm_statistics norm_statistics_of(const norm *a, float *h, int64_t i) {
    const norm_statistics s = norm_find(a, h, i, 1);
    return s.square >= 0x1p-100f && s.square <= 0x1p126f ? s : norm_find_scaled(a, h, i, s.mean, s.square);
}

INLINE vf norm_round(vf v, trine_dtype T) {
    return T == TRINE_BF16 ? vf_from_bf16(vf_to_bf16(v)) : T == TRINE_F16 ? vf_from_f16(vf_to_f16(v)) : v;
}

/* y = (h - mean) rstd factor + shift, while the next row is fetched. */
INLINE void norm_write_as(const norm *a, float *h, float mean, float rstd, row_sink y, int count, const void *next_x,
                          const void *next_residual, bool round, bool stream, trine_dtype order, trine_dtype T) {
    const float *factor = a->factor + y.at, *shift = CENTERED ? a->shift + y.at : NULL;
    const trine_dtype R = a->residual ? a->residual->dtype : T;
    y.stream = stream;
    ROW_PAIRS(count, j, k, m, {
        vf v[2] = { (*row_vector(h, j) - mean) * rstd, (*row_vector(h, j + VL) - mean) * rstd };
        row_prefetch2(next_x, T, j, k);
        row_prefetch2(next_residual, R, j, k);
        if (round) v[0] = norm_round(v[0], T), v[1] = norm_round(v[1], T);
        v[0] *= *(const vf_any *)(factor + j);
        v[1] *= *(const vf_any *)(factor + j + VL);
        if (CENTERED) v[0] += *(const vf_any *)(shift + j), v[1] += *(const vf_any *)(shift + j + VL);
        row_put2(y, T, j, m, v, order);
    });
}
INLINE void norm_write_any(const norm *a, float *h, float mean, float rstd, row_sink y, int count, const void *next_x,
                           const void *next_residual, trine_dtype T) {
    const bool round = a->round && T != TRINE_F32;
    if (norm_order(a) == TRINE_F32) {
        norm_write_as(a, h, mean, rstd, y, count, next_x, next_residual, round, y.stream, TRINE_F32, T);
    } else if (round) {
        norm_write_as(a, h, mean, rstd, y, count, next_x, next_residual, true, y.stream, T, T);
    } else if (y.stream) {
        norm_write_as(a, h, mean, rstd, y, count, next_x, next_residual, false, true, T, T);
    } else {
        norm_write_as(a, h, mean, rstd, y, count, next_x, next_residual, false, false, T, T);
    }
}

/* residual_out = h. */
INLINE void norm_store_as(float *h, row_sink sink, int count, trine_dtype order, trine_dtype R) {
    ROW_PAIRS(count, j, k, m, {
        const vf v[2] = { *row_vector(h, j), *row_vector(h, j + VL) };
        row_put2(sink, R, j, m, v, order);
    });
}

/* A mean is none beyond what it is of. */
static inline float norm_unscaled(float mean, float scale) {
    const float x = mean / scale;
    return isfinite(mean) && isinf(x) ? copysignf(FLT_MAX, x) : x;
}

static inline void norm_row(const norm *a, float *h, int64_t i) {
    const norm_statistics s = norm_statistics_of(a, h, i);
    if (a->mean) ((float *)a->mean->data)[i] = norm_unscaled(s.mean, s.scale);
    if (a->rstd) ((float *)a->rstd->data)[i] = s.rstd * s.scale;
    const int64_t next = i + 1 < a->r ? i + 1 : i;
    float unused = 0;
    for (int64_t at = 0; at < a->n; at += ROW_PIECE) {
        const int count = row_count(a->n, at);
        if (a->n > ROW_PIECE || s.scale != 1) norm_read(a, h, i, at, count, &unused);
        if (a->residual_out)
            FOR_TYPE(a->residual_out->dtype, norm_store_as, h, row_sink_of(a->residual_out, i, at, a->stream), count,
                     norm_order(a));
        if (s.scale != 1) norm_scale(h, count, s.scale, &unused);
        const row_sink y = row_sink_of(a->y, i, at, a->stream);
        FOR_TYPE(a->y->dtype, norm_write_any, a, h, s.mean, s.rstd, y, count, row_at(a->x, next),
                 row_at(a->residual ? a->residual : a->x, next));
    }
}

/* ---------------------------------------------------------------------------------------------------------- weights */

/* A parameter plus `offset` as floats in the order of h; `offset` itself where there is none. */
INLINE void norm_parameter_as(float *out, const void *data, int count, float offset, trine_dtype order, trine_dtype W) {
    ROW_PAIRS(count, j, k, m, {
        vf v[2] = { 0 };
        if (data != NULL) row_get2(v, data, W, j, m, order);
        *row_vector(out, j) = v[0] + offset;
        *row_vector(out, j + VL) = v[1] + offset;
    });
}

/* A parameter that is used where it lies: floats in their order, to the end of a step. */
INLINE bool norm_usable(const norm *a, const trine_tensor *t, float offset) {
    return t && t->dtype == TRINE_F32 && norm_order(a) != TRINE_BF16 && offset == 0 && a->n % (2 * VL) == 0;
}

/* `t` for the rows, prepared in *memory if it must be. */
static inline const float *norm_parameter(const norm *a, const trine_tensor *t, float offset, float **memory) {
    if (norm_usable(a, t, offset)) return t->data;
    float *out = *memory;
    *memory += cpu_round_up(a->n, 2 * VL);
    for (int64_t at = 0; at < a->n; at += ROW_PIECE) {
        const int count = row_count(a->n, at);
        const trine_dtype W = t ? t->dtype : TRINE_F32;
        const void *data = t ? (const char *)t->data + at * (int64_t)vsize(W) : NULL;
        if (norm_order(a) == TRINE_BF16)
            FOR_TYPE(W, norm_parameter_as, out + at, data, count, offset, TRINE_BF16);
        else
            FOR_TYPE(W, norm_parameter_as, out + at, data, count, offset, TRINE_F32);
    }
    return out;
}

/* The parameters that the arguments of both ops have. */
#define NORM_PARAMS(args) \
    .eps = (args)->eps, .weight_offset = (args)->weight_offset, .p = (args)->dropout, \
    .round = (args)->rounding == TRINE_ROUND_BEFORE_WEIGHT, \
    .dropout = dropout_of((args)->dropout, (args)->seed, (args)->offset)

/* The op's sizes, tensors and parameters, as it defines them. */
static norm norm_of(const trine_call *call);

static size_t norm_workspace(const trine_call *call) {
    const norm op = norm_of(call), *a = &op;
    const bool factor = !norm_usable(a, a->weight, a->weight_offset), shift = CENTERED && !norm_usable(a, a->bias, 0);
    return call->empty ? 0 : (size_t)((factor + shift) * cpu_round_up(a->n, 2 * VL)) * sizeof(float);
}

static void norm_edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    dropout_edges(edges, row_along(call));
}

static void norm_rows(const void *context, int64_t first, int64_t last, int thread) {
    const norm *a = context;
    row_piece h;
    (void)thread;
    for (int64_t i = first; i < last; i++) norm_row(a, h, i);
    if (a->stream) stream_fence();
}

static trine_status norm_launch(const trine_call *call) {
    norm a = norm_of(call);
    float *memory = call->workspace;
    a.stream = row_streams(call);
    if (a.philox) dropout_tell(&a.dropout, a.philox);
    a.factor = norm_parameter(&a, a.weight, a.weight ? a.weight_offset : 1, &memory);
    if (CENTERED) a.shift = norm_parameter(&a, a.bias, 0, &memory);
    cpu_shares(call, cpu_team(call, a.r, row_bytes(call)), a.r, norm_rows, &a);
    return TRINE_OK;
}

#endif
