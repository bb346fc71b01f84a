/* SPDX-License-Identifier: Apache-2.0 */
/* Few rows against a block of keys, by vectors of floats: a register tile of rows and keys, or of rows and columns. */
#ifndef TRINE_CPU_ATTENTION_STREAM_FLOATS_H
#define TRINE_CPU_ATTENTION_STREAM_FLOATS_H

#include "attention_stream_keys.h"

/* VL vectors become the sums of their elements. Each step adds halves of two vectors: first of 16, then of 8, 4 and 2
 * elements. */
#define STREAM_4(base, a, b, c, d) base + a, base + b, base + c, base + d
#if VL == 16
#define STREAM_EACH(a, b, c, d) \
    STREAM_4(0, a, b, c + 12, d + 12), STREAM_4(4, a, b, c + 12, d + 12), STREAM_4(8, a, b, c + 12, d + 12), \
        STREAM_4(12, a, b, c + 12, d + 12)
#elif VL == 8
#define STREAM_EACH(a, b, c, d) STREAM_4(0, a, b, c + 4, d + 4), STREAM_4(4, a, b, c + 4, d + 4)
#else
#define STREAM_EACH(a, b, c, d) STREAM_4(0, a, b, c, d)
#endif
INLINE vf stream_add_halves(vf a, vf b, int part) {
#if VL == 16
    if (part == 16)
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
               __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    if (part == 8)
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
               __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
#elif VL == 8
    if (part == 8)
        return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#endif
    if (part == 4)
        return __builtin_shufflevector(a, b, STREAM_EACH(0, 1, 4, 5)) +
               __builtin_shufflevector(a, b, STREAM_EACH(2, 3, 6, 7));
    return __builtin_shufflevector(a, b, STREAM_EACH(0, 2, 4, 6)) +
           __builtin_shufflevector(a, b, STREAM_EACH(1, 3, 5, 7));
}
INLINE vf stream_fold(const vf *x) {
    vf y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
#if VL == 16
        y[i] = stream_add_halves(stream_add_halves(x[i], x[4 + i], 16), stream_add_halves(x[8 + i], x[12 + i], 16), 8);
#elif VL == 8
        y[i] = stream_add_halves(x[i], x[4 + i], 8);
#else
        y[i] = x[i];
#endif
    }
    return stream_add_halves(stream_add_halves(y[0], y[1], 4), stream_add_halves(y[2], y[3], 4), 2);
}

/* The scores of some rows with VL / rows keys. */
INLINE void stream_dots(const float *q, int64_t ldq, const char *const *k, int64_t d, float *s, int rows,
                        trine_dtype C) {
    const int keys = VL / rows;
    vf sum[VL];
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) sum[i] = vzero();
    int64_t c = 0;
    for (; c + VL <= d; c += VL) {
        vf x[VL];
#pragma GCC unroll 16
        for (int i = 0; i < keys; i++) x[i] = vload(k[i], C, c);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const vf y = get(q + r * ldq + c);
#pragma GCC unroll 16
            for (int i = 0; i < keys; i++) sum[r * keys + i] = vfma(x[i], y, sum[r * keys + i]);
        }
    }
    if (c < d) {
#pragma GCC unroll 16
        for (int i = 0; i < keys; i++) {
            const vf x = load_part(k[i], C, c, d - c);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) sum[r * keys + i] = vfma(x, get(q + r * ldq + c), sum[r * keys + i]);
        }
    }
    const vf all = stream_fold(sum);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) memcpy(s + r * STREAM_LDS, (const char *)&all + r * keys * 4, (size_t)keys * 4);
}

/* Of `rows` rows from r on. */
INLINE void stream_dots_rows(const float *q, int64_t ldq, const char *const *k, int keys, int64_t d, float *s,
                             int64_t r, int rows, stream_ahead *ahead, trine_dtype C) {
    for (int j = 0; j < keys; j += VL / rows) {
        if (r == 0) stream_ask(ahead, VL / rows);
        stream_dots(q + r * ldq, ldq, k + j, d, s + r * STREAM_LDS + j, rows, C);
    }
}
INLINE void stream_scores_as(const float *q, int64_t ldq, const char *const *k, int keys, int64_t d, float *s,
                             int64_t rows, stream_ahead *ahead, trine_dtype C) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) stream_dots_rows(q, ldq, k, keys, d, s, r, 4, ahead, C);
    for (; r + 2 <= rows; r += 2) stream_dots_rows(q, ldq, k, keys, d, s, r, 2, ahead, C);
    for (; r < rows; r++) stream_dots_rows(q, ldq, k, keys, d, s, r, 1, ahead, C);
}

/* o += p v: some rows, so many vectors of columns from c on. */
INLINE void stream_add(const float *p, const char *const *v, int keys, int64_t c, int64_t dv, float *o, int64_t ldo,
                       int rows, int vectors, trine_dtype C) {
    vf sum[4][8];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int i = 0; i < vectors; i++) sum[r][i] = get(o + r * ldo + c + i * VL);
    for (int j = 0; j < keys; j++) {
        vf x[8];
#pragma GCC unroll 8
        for (int i = 0; i < vectors; i++)
            x[i] = vectors > 1 ? vload(v[j], C, c + i * VL) : load_part(v[j], C, c, dv - c);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const vf weight = vset(p[r * STREAM_LDS + j]);
#pragma GCC unroll 8
            for (int i = 0; i < vectors; i++) sum[r][i] = vfma(weight, x[i], sum[r][i]);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int i = 0; i < vectors; i++) put(o + r * ldo + c + i * VL, sum[r][i]);
}
INLINE void stream_add_columns(const float *p, const char *const *v, int keys, int64_t dv, float *o, int64_t ldo,
                               int rows, trine_dtype C) {
    enum { MANY = VL == 16 ? 16 : 8 }; /* sums in registers */
    const int vectors = MANY / rows < 8 ? MANY / rows : 8;
    int64_t c = 0;
    for (; c + vectors * VL <= dv; c += vectors * VL) stream_add(p, v, keys, c, dv, o, ldo, rows, vectors, C);
    for (; c < dv; c += VL) stream_add(p, v, keys, c, dv, o, ldo, rows, 1, C);
}

/* The rows from r on, at most 4, 2 or 1, that see the same keys of a part. */
INLINE int stream_alike(const stream_part *part, int64_t r, int64_t rows) {
    const int most = rows - r >= 4 ? 4 : rows - r >= 2 ? 2 : 1;
    return part->low[r] == part->low[r + most - 1] && part->high[r] == part->high[r + most - 1] ? most : 1;
}

/* A head's rows with the values of keys start .. start+keys-1; v: where these are. */
INLINE void stream_values_as(const stream_part *part, int start, int keys, const float *p, const char *const *v,
                             int64_t dv, float *o, int64_t ldo, int64_t rows, trine_dtype C) {
    for (int64_t r = 0; r < rows;) {
        const int many = stream_alike(part, r, rows), low = part->low[r] > start ? part->low[r] - start : 0,
                  high = part->high[r] - start < keys ? part->high[r] - start : keys, n = high - low;
        const float *weights = p + r * STREAM_LDS + low;
        float *to = o + r * ldo;
        if (n > 0 && many == 4)
            stream_add_columns(weights, v + low, n, dv, to, ldo, 4, C);
        else if (n > 0 && many == 2)
            stream_add_columns(weights, v + low, n, dv, to, ldo, 2, C);
        else if (n > 0)
            stream_add_columns(weights, v + low, n, dv, to, ldo, 1, C);
        r += many;
    }
}

/* Of elements that are costly to read, or are read for several groups of rows, a block is made floats first. */
static bool stream_widens(const stream *s) {
    return s->C == TRINE_E4M3 || s->C == TRINE_I8 || (s->C != TRINE_F32 && s->rows > 4);
}
static void stream_widen_block(const stream *s, const char **from, int keys, int64_t width, float *to,
                               stream_ahead *ahead) {
    const int64_t ld = leading(s->ldo > s->ldq ? s->ldo : s->ldq);
    for (int i = 0; i < keys; i++, to += ld) {
        stream_ask(ahead, 1);
        stream_widen(from[i], width, to, s->C);
        from[i] = (const char *)to;
    }
}

static void stream_scores(const stream *s, const stream_buffers *w, const stream_part *part, int start, int keys,
                          int64_t h, stream_ahead *ahead) {
    const char *from[STREAM_BLOCK];
    const float *q = w->q + h * s->rows * s->ldq;
    float *to = w->s + h * s->rows * STREAM_LDS + start;
    stream_from(part->k + start, keys, h * s->k_head, w->zeros, from);
    if (stream_widens(s)) {
        stream_widen_block(s, from, keys, s->d, w->block, ahead);
        stream_scores_as(q, s->ldq, from, keys, cpu_round_up(s->d, VL), to, s->rows, ahead, TRINE_F32);
    } else {
        FOR_TYPE(s->C, stream_scores_as, q, s->ldq, from, keys, s->d, to, s->rows, ahead);
    }
}
static void stream_values(const stream *s, const stream_buffers *w, const stream_part *part, int start, int keys,
                          int64_t h, float *o, stream_ahead *ahead) {
    enum { STEP = 16 };
    const char *from[STREAM_BLOCK];
    const float *p = w->s + h * s->rows * STREAM_LDS + start;
    const bool widens = stream_widens(s);
    stream_from(part->v + start, keys, h * s->v_head, w->zeros, from);
    if (widens) stream_widen_block(s, from, keys, s->dv, w->block, ahead);
    for (int j = 0; j < keys; j += STEP) {
        const int n = keys - j < STEP ? keys - j : STEP;
        stream_ask(ahead, STEP);
        if (widens)
            stream_values_as(part, start + j, n, p + j, from + j, s->dv, o, s->ldo, s->rows, TRINE_F32);
        else
            FOR_TYPE(s->C, stream_values_as, part, start + j, n, p + j, from + j, s->dv, o, s->ldo, s->rows);
    }
}

#endif
