/* SPDX-License-Identifier: Apache-2.0 */
/* rms_norm and layer_norm: the one is the other without the mean. A row that fits a piece is read once; a longer one
 * twice, of whose pieces each has its own mean and squares first. */
#ifndef TRINE_CPU_NORM_H
#define TRINE_CPU_NORM_H

#include <float.h>

#include "backends/cpu/core/parts.h"

typedef struct norm {
    const trine_tensor *x, *residual, *philox, *weight, *bias, *y, *residual_out, *mean, *rstd;
    int64_t r, n;
    float eps, weight_offset, p;
    bool round; /* before the weight */
    bool stream;
    dropout dropout;
    /* weight + offset, and bias, in the order of norm_order, for rows of one piece; NULL: no bias */
    const float *factor, *shift;
} norm;

/* h = x + residual, in the order that suits `order`, unless it is NULL; adds the sum of h, or of its squares. */
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
        if (h != NULL) {
            *row_vector(h, j) = v[0];
            *row_vector(h, j + VL) = v[1];
        }
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
static inline void norm_deviations(const float *h, int count, float origin, trine_dtype order, float *sum,
                                   float *squares) {
    vf acc[ROW_ACC] = { 0 }, acc2[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        vf d[2] = { *(const vf_any *)(h + j) - origin, *(const vf_any *)(h + j + VL) - origin };
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

/* Where h scale is x as it lies in memory, floats to the end of a step: it is used there. NULL: it is not. */
static inline const float *norm_direct(const norm *a, int64_t i, int64_t at, int count, float scale) {
    return a->x->dtype == TRINE_F32 && a->residual == NULL && a->p == 0 && scale == 1 && count % (2 * VL) == 0
               ? (const float *)row_at(a->x, i) + at
               : NULL;
}

/* A piece of h scale, in `room` if it is not there already, and its sum. */
static inline const float *norm_take(const norm *a, float *room, int64_t i, int64_t at, int count, float scale,
                                     float *sum) {
    const float *h = norm_direct(a, i, at, count, scale);
    float unscaled = 0;
    if (h != NULL) {
        norm_read_as(sum, NULL, h, NULL, 0, 0, count, TRINE_F32, TRINE_F32, TRINE_F32);
        return h;
    }
    norm_read(a, room, i, at, count, scale == 1 ? sum : &unscaled);
    if (scale != 1) norm_scale(room, count, scale, sum);
    return room;
}

/* Of h scale, and eps in proportion: the row's mean (0 if not centered), its variance, or mean square, with eps, and
 * what 1/sqrt of that is. Of a row of one piece h scale is left in the room, if norm_direct() has it not. */
typedef struct norm_statistics {
    float scale, mean, square, rstd;
} norm_statistics;

static inline norm_statistics norm_settle(const norm *a, float scale, float mean, float variance) {
    float eps = a->eps * scale * scale;
    if (scale < 1 && eps < FLT_MIN) eps = FLT_MIN; /* of a spread of 0 */
    return (norm_statistics){ scale, mean, variance + eps, 1 / sqrtf(variance + eps) };
}

static inline norm_statistics norm_find(const norm *a, float *room, int64_t i, float scale) {
    const int n = (int)a->n;
    const float length = (float)n;
    float sum = 0, mean = 0;
    const float *const h = norm_take(a, room, i, 0, n, scale, &sum);
    float variance = sum / length;
    if (CENTERED) {
        /* The sums of h - origin correct both the mean and the variance for the rounding of the first mean
         * (spec/norm/layer_norm.c). */
        const float origin = sum / length;
        float shift = 0, squares = 0;
        norm_deviations(h, n, origin, norm_order(a), &shift, &squares);
        shift /= length;
        mean = isfinite(origin) ? origin + shift : origin;
        variance = squares / length - shift * shift;
        if (variance < 0) variance = 0;
    }
    return norm_settle(a, scale, mean, variance);
}

/* The powers of two of spec/norm/norm.h. A row about a mean far from zero is as it is:
 * its spread is no less than the mean's last bit, or 0. */
static inline float norm_rescale(const norm_statistics *s) {
    return s->square < 1 && fabsf(s->mean) < 1 ? 0x1p96f : s->square < 1 ? 1 : 0x1p-96f;
}
static inline bool norm_settled(const norm_statistics *s) { return s->square >= 0x1p-100f && s->square <= 0x1p126f; }
static norm_statistics norm_find_scaled(const norm *a, float *h, int64_t i, norm_statistics s) {
    return norm_find(a, h, i, norm_rescale(&s));
}
static inline norm_statistics norm_statistics_of(const norm *a, float *h, int64_t i) {
    const norm_statistics s = norm_find(a, h, i, 1);
    return norm_settled(&s) ? s : norm_find_scaled(a, h, i, s);
}

INLINE vf norm_round(vf v, trine_dtype T) {
    return T == TRINE_BF16 ? vf_from_bf16(vf_to_bf16(v)) : T == TRINE_F16 ? vf_from_f16(vf_to_f16(v)) : v;
}

/* A parameter plus `offset` as floats in the order of h; `offset` itself where there is none. */
INLINE void norm_parameter_as(float *out, const void *data, int count, float offset, trine_dtype order, trine_dtype W) {
    ROW_PAIRS(count, j, k, m, {
        vf v[2] = { 0 };
        if (data != NULL) row_get2(v, data, W, j, m, order);
        *row_vector(out, j) = v[0] + offset;
        *row_vector(out, j + VL) = v[1] + offset;
    });
}

/* Where a parameter's piece lies as floats in the order of h, to the end of a step, it is used there. */
INLINE bool norm_usable(const norm *a, const trine_tensor *t, float offset, int count) {
    return t && t->dtype == TRINE_F32 && norm_order(a) != TRINE_BF16 && offset == 0 && count % (2 * VL) == 0;
}

/* Elements at .. at+count-1 of a parameter plus `offset`, in `room` if they must be made. */
static inline const float *norm_parameter(const norm *a, const trine_tensor *t, float offset, int64_t at, int count,
                                          float *room) {
    if (norm_usable(a, t, offset, count)) return (const float *)t->data + at;
    const trine_dtype W = t ? t->dtype : TRINE_F32;
    const void *data = t ? (const char *)t->data + at * (int64_t)vsize(W) : NULL;
    if (norm_order(a) == TRINE_BF16)
        FOR_TYPE(W, norm_parameter_as, room, data, count, offset, TRINE_BF16);
    else
        FOR_TYPE(W, norm_parameter_as, room, data, count, offset, TRINE_F32);
    return room;
}
static inline float norm_offset(const norm *a) { return a->weight ? a->weight_offset : 1; }

/* y = (h - mean) rstd factor + shift, while the next row is fetched. */
INLINE void norm_write_as(const norm *a, const float *h, const float *factor, const float *shift, float mean,
                          float rstd, row_sink y, int count, const void *next_x, const void *next_residual, bool round,
                          bool stream, trine_dtype order, trine_dtype T) {
    const trine_dtype R = a->residual ? a->residual->dtype : T;
    y.stream = stream;
    ROW_PAIRS(count, j, k, m, {
        vf v[2] = { (*(const vf_any *)(h + j) - mean) * rstd, (*(const vf_any *)(h + j + VL) - mean) * rstd };
        row_prefetch2(next_x, T, j, k);
        row_prefetch2(next_residual, R, j, k);
        if (round) v[0] = norm_round(v[0], T), v[1] = norm_round(v[1], T);
        v[0] *= *(const vf_any *)(factor + j);
        v[1] *= *(const vf_any *)(factor + j + VL);
        if (CENTERED) v[0] += *(const vf_any *)(shift + j), v[1] += *(const vf_any *)(shift + j + VL);
        row_put2(y, T, j, m, v, order);
    });
}
INLINE void norm_write_any(const norm *a, const float *h, const float *factor, const float *shift, float mean,
                           float rstd, row_sink y, int count, const void *next_x, const void *next_residual,
                           trine_dtype T) {
    const bool round = a->round && T != TRINE_F32;
    if (T == TRINE_F32 && y.stream) { /* constants: a branch in the loop costs more than the store */
        norm_write_as(a, h, factor, shift, mean, rstd, y, count, next_x, next_residual, false, true, TRINE_F32, T);
    } else if (T == TRINE_F32) {
        norm_write_as(a, h, factor, shift, mean, rstd, y, count, next_x, next_residual, false, false, TRINE_F32, T);
    } else if (norm_order(a) == TRINE_F32) {
        norm_write_as(a, h, factor, shift, mean, rstd, y, count, next_x, next_residual, round, y.stream, TRINE_F32, T);
    } else if (round) {
        norm_write_as(a, h, factor, shift, mean, rstd, y, count, next_x, next_residual, true, y.stream, T, T);
    } else if (y.stream) {
        norm_write_as(a, h, factor, shift, mean, rstd, y, count, next_x, next_residual, false, true, T, T);
    } else {
        norm_write_as(a, h, factor, shift, mean, rstd, y, count, next_x, next_residual, false, false, T, T);
    }
}

/* residual_out = h. */
INLINE void norm_store_as(const float *h, row_sink sink, int count, trine_dtype order, trine_dtype R) {
    ROW_PAIRS(count, j, k, m, {
        const vf v[2] = { *(const vf_any *)(h + j), *(const vf_any *)(h + j + VL) };
        row_put2(sink, R, j, m, v, order);
    });
}

/* A mean is none beyond what it is of. */
static inline float norm_unscaled(float mean, float scale) {
    const float x = mean / scale;
    return isfinite(mean) && isinf(x) ? copysignf(FLT_MAX, x) : x;
}

static inline void norm_tell(const norm *a, int64_t i, const norm_statistics *s) {
    if (a->mean) ((float *)a->mean->data)[i] = norm_unscaled(s->mean, s->scale);
    if (a->rstd) ((float *)a->rstd->data)[i] = s->rstd * s->scale;
}

/* y of a piece; `read`: h is in the room already, if it is not used where it lies. */
static inline void norm_write(const norm *a, float *room, bool read, const float *factor, const float *shift, int64_t i,
                              int64_t at, int count, const norm_statistics *s, const void *next_x,
                              const void *next_residual) {
    const float *const direct = norm_direct(a, i, at, count, s->scale), *const h = direct ? direct : room;
    float unused = 0;
    if (direct == NULL && (!read || s->scale != 1)) norm_read(a, room, i, at, count, &unused);
    if (a->residual_out)
        FOR_TYPE(a->residual_out->dtype, norm_store_as, h, row_sink_of(a->residual_out, i, at, a->stream), count,
                 norm_order(a));
    if (s->scale != 1) norm_scale(room, count, s->scale, &unused);
    const row_sink y = row_sink_of(a->y, i, at, a->stream);
    FOR_TYPE(a->y->dtype, norm_write_any, a, h, factor, shift, s->mean, s->rstd, y, count, next_x, next_residual);
}

/* Of 16 bits, as weight and bias are, with nothing between x and the norm: y of a piece in one loop. */
static inline bool norm_through(const norm *a, const norm_statistics *s) {
    const trine_dtype T = a->x->dtype;
    return T != TRINE_F32 && !a->residual && !a->residual_out && a->p == 0 && s->scale == 1 && !a->round && a->weight &&
           a->weight->dtype == T && (!CENTERED || (a->bias && a->bias->dtype == T));
}

INLINE void norm_through_to(const norm *a, int64_t i, int64_t at, int count, const norm_statistics *s, row_sink y,
                            bool stream, trine_dtype T) {
    const void *x = row_at(a->x, i), *weight = a->weight->data, *bias = CENTERED ? a->bias->data : NULL;
    const float mean = s->mean, rstd = s->rstd, offset = a->weight_offset;
    y.stream = stream;
    ROW_PAIRS(count, j, k, m, {
        vf v[2], factor[2], shift[2] = { 0 };
        row_get2(v, x, T, at + j, m, T);
        row_get2(factor, weight, T, at + j, m, T);
        if (CENTERED) row_get2(shift, bias, T, at + j, m, T);
        _Pragma("GCC unroll 2")
        for (int h = 0; h < 2; h++) {
            v[h] = (v[h] - mean) * rstd * (factor[h] + offset);
            if (CENTERED) v[h] += shift[h];
        }
        row_put2(y, T, j, m, v, T);
    });
}
INLINE void norm_through_as(const norm *a, int64_t i, int64_t at, int count, const norm_statistics *s, trine_dtype T) {
    const row_sink y = row_sink_of(a->y, i, at, a->stream);
    if (y.stream)
        norm_through_to(a, i, at, count, s, y, true, T);
    else
        norm_through_to(a, i, at, count, s, y, false, T);
}

/* A row of one piece. */
static inline void norm_row(const norm *a, float *h, int64_t i) {
    const norm_statistics s = norm_statistics_of(a, h, i);
    const int64_t next = i + 1 < a->r ? i + 1 : i;
    norm_tell(a, i, &s);
    norm_write(a, h, true, a->factor, a->shift, i, 0, (int)a->n, &s, row_at(a->x, next),
               row_at(a->residual ? a->residual : a->x, next));
}

/* ---------------------------------------------------------------------------------------------- rows of several pieces
 */

enum { NORM_FIND, NORM_WRITE }; /* passes */
/* Numbers of a row: the sum of elements, how many there are, the sum of squares, or of their distances from the mean;
 * then the statistics. Of a piece: the mean in place of the sum. */
enum { NORM_TOTAL, NORM_COUNT, NORM_SQUARES, NORM_SCALE, NORM_MEAN, NORM_SQUARE, NORM_RSTD };

static norm_statistics norm_told(const parts_row *row) {
    const double *number = row->number;
    return (norm_statistics){ (float)number[NORM_SCALE], (float)number[NORM_MEAN], (float)number[NORM_SQUARE],
                              (float)number[NORM_RSTD] };
}

static void norm_begin(const void *op, parts_row *row) {
    (void)op;
    row->number[NORM_SCALE] = 1;
}

static void norm_piece(const void *op, const parts_row *row, int64_t at, int count, float *h, double *result) {
    const norm *a = op;
    const norm_statistics s = norm_told(row);
    float sum = 0, shift = 0, squares = 0;
    if (row->pass == NORM_WRITE) {
        const void *here = (const char *)row_at(a->x, row->i) + at * (int64_t)vsize(a->x->dtype); /* in the cache */
        row_piece factors, shifts;
        if (norm_through(a, &s) && a->x->dtype == TRINE_BF16)
            norm_through_as(a, row->i, at, count, &s, TRINE_BF16);
        else if (norm_through(a, &s))
            norm_through_as(a, row->i, at, count, &s, TRINE_F16);
        else
            norm_write(a, h, false, norm_parameter(a, a->weight, norm_offset(a), at, count, factors),
                       CENTERED ? norm_parameter(a, a->bias, 0, at, count, shifts) : NULL, row->i, at, count, &s, here,
                       here);
        return;
    }
    const float *const values = norm_take(a, h, row->i, at, count, s.scale, &sum);
    result[NORM_COUNT] = count;
    result[NORM_SQUARES] = sum;
    if (!CENTERED) return;
    const float origin = sum / (float)count;
    norm_deviations(values, count, origin, norm_order(a), &shift, &squares);
    const double off = (double)shift / count, spread = squares - (double)shift * off;
    result[NORM_TOTAL] = isfinite(origin) ? origin + off : origin;
    result[NORM_SQUARES] = spread < 0 ? 0 : spread;
}

/* Squares about the mean of both are those about each own, and what the means are apart (Chan, Golub and LeVeque
 * 1983). */
static void norm_add(const void *op, parts_row *row, const double *result) {
    double *number = row->number;
    (void)op;
    number[NORM_SQUARES] += result[NORM_SQUARES];
    if (CENTERED) {
        const double before = number[NORM_COUNT], count = result[NORM_COUNT];
        if (before > 0) {
            const double apart = result[NORM_TOTAL] - number[NORM_TOTAL] / before;
            number[NORM_SQUARES] += apart * apart * (before * count / (before + count));
        }
        number[NORM_TOTAL] += result[NORM_TOTAL] * count;
    }
    number[NORM_COUNT] += result[NORM_COUNT];
}

static bool norm_end(const void *op, parts_row *row) {
    const norm *a = op;
    double *number = row->number;
    if (row->pass == NORM_WRITE) return false;
    const bool first = number[NORM_SCALE] == 1 && number[NORM_RSTD] == 0;
    const double length = (double)a->n;
    const norm_statistics s = norm_settle(a, (float)number[NORM_SCALE], (float)(number[NORM_TOTAL] / length),
                                          (float)(number[NORM_SQUARES] / length));
    number[NORM_SCALE] = s.scale, number[NORM_MEAN] = s.mean, number[NORM_SQUARE] = s.square,
    number[NORM_RSTD] = s.rstd;
    if (first && !norm_settled(&s) && norm_rescale(&s) != 1) {
        number[NORM_SCALE] = norm_rescale(&s);
        number[NORM_TOTAL] = number[NORM_COUNT] = number[NORM_SQUARES] = 0;
        return true;
    }
    norm_tell(a, row->i, &s);
    row->pass = NORM_WRITE;
    row->last = true;
    return true;
}

static parts norm_parts(const trine_call *call, const norm *a) {
    return (parts){ .op = a,
                    .rows = a->r,
                    .n = a->n,
                    .bytes = row_bytes(call),
                    .stream = a->stream,
                    .begin = norm_begin,
                    .piece = norm_piece,
                    .add = norm_add,
                    .end = norm_end };
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
    const parts job = norm_parts(call, a);
    if (call->empty) return 0;
    if (a->n > ROW_PIECE) return parts_workspace(call, &job);
    const int n = (int)a->n;
    const bool factor = !norm_usable(a, a->weight, norm_offset(a), n),
               shift = CENTERED && !norm_usable(a, a->bias, 0, n);
    return (size_t)((factor + shift) * cpu_round_up(n, 2 * VL)) * sizeof(float);
}

static void norm_edges(const trine_call *call, trine_kernel_edges *edges) {
    parts_row_edges(call, edges);
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
    if (a.n > ROW_PIECE) {
        const parts job = norm_parts(call, &a);
        parts_run(call, &job, call->workspace);
        return TRINE_OK;
    }
    const int n = (int)a.n;
    a.factor = norm_parameter(&a, a.weight, norm_offset(&a), 0, n, memory);
    if (a.factor == memory) memory += cpu_round_up(n, 2 * VL);
    if (CENTERED) a.shift = norm_parameter(&a, a.bias, 0, 0, n, memory);
    cpu_shares(call, cpu_team(call, a.r, row_bytes(call)), a.r, norm_rows, &a);
    return TRINE_OK;
}

#endif
