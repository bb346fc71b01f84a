/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of softmax on the CPU. A row is read once from memory if L2 may hold it: for its maximum first, then for its
 * exponentials, which are kept; a longer one twice, first for the maximum and the sum of each of its pieces. */
#ifndef TRINE_CPU_SOFTMAX_H
#define TRINE_CPU_SOFTMAX_H

#include "backends/cpu/core/parts.h"

/* A row of up to ROW_PIECE exponentials is kept on the stack, one of up to SOFTMAX_HELD in the workspace. */
enum { SOFTMAX_HELD = 1 << 18, SOFTMAX_CHUNK = 16, PAIR = 2 * VL };

/* exp(scale x - max(scale x)) is taken as 2^(spread (f x - max(f x))): the difference before the product loses nothing
 * to cancellation. f is half the sign of scale, so that the difference does not overflow, spread 2 |scale| log2(e);
 * for a scale of 0 they are 0 and 1. */
typedef struct softmax_way {
    float f, spread;
    float none; /* what a row of nothing but -Inf, whose exponentials are 0, is multiplied by */
    bool stream;
} softmax_way;

static inline softmax_way softmax_way_of(float scale, float none, bool stream) {
    return (softmax_way){ .f = scale > 0   ? 0.5f
                               : scale < 0 ? -0.5f
                                           : 0,
                          .spread = scale == 0 ? 1 : (float)(fabs(scale) * 0x1.71547652b82fep1),
                          .none = none,
                          .stream = stream };
}

/* 2^(d spread) for d <= 0, NaN for NaN. Below 2^-126 it is less or 0, which spec/norm/softmax.c allows for; the error
 * is below 4u. The polynomial is a minimax fit on [-1/2, 1/2] whose coefficients were rounded one by one, the rest
 * fitted again each time; its own error is 1.6u. */
INLINE vf softmax_exp2(vf d, float spread) {
    const vf magic = vset(0x1.8p23f); /* adding it rounds to an integer, which is then in the low bits */
    const vf shifted = vfma(d, vset(spread), magic);
    const vf r = vfma(d, vset(spread), magic - shifted);
    vf p = vset(1.3269406e-3f);
    p = vfma(p, r, vset(9.67129413e-3f));
    p = vfma(p, r, vset(5.55071123e-2f));
    p = vfma(p, r, vset(2.40222469e-1f));
    p = vfma(p, r, vset(6.93147004e-1f));
    p = vfma(p, r, vset(1));
    const vf power = (vf)(((vu)shifted << 23) + 0x3f800000u);
    return (vf)(~(shifted < magic - 126) & (vi)(p * power));
}

/* The largest f x. NaN may be left aside: they show in the sum. */
INLINE float softmax_max_as(const void *x, int64_t at, int count, float f, trine_dtype T) {
    if (T == TRINE_F32) {
        vf acc[ROW_ACC];
        for (int k = 0; k < ROW_ACC; k++) acc[k] = vset(-INFINITY);
        ROW_EACH(count, j, k, m, acc[k] = vmax(row_mask(row_get(x, T, at + j, m) * f, m, -INFINITY), acc[k]));
        for (int k = 1; k < ROW_ACC; k++) acc[0] = vmax(acc[k], acc[0]);
        return vhmax(acc[0]);
    }
    const uint16_t *bits = (const uint16_t *)x + at;
    const vu flip = (vu)viset(f < 0 ? (int)0x80008000 : 0);
    int16_t part[PAIR];
    for (int j = 0; j < PAIR; j++) part[j] = (int16_t)bits[0];
    memcpy(part, bits + count / PAIR * PAIR, (size_t)(count % PAIR) * 2);
    vu acc[2] = { vorder_i16(*(const vu_any *)part ^ flip) };
    acc[1] = acc[0];
    int j = 0;
    for (; j + 2 * PAIR <= count; j += 2 * PAIR) {
        acc[0] = vmax_i16(acc[0], vorder_i16(*(const vu_any *)(bits + j) ^ flip));
        acc[1] = vmax_i16(acc[1], vorder_i16(*(const vu_any *)(bits + j + PAIR) ^ flip));
    }
    if (j + PAIR <= count) acc[0] = vmax_i16(acc[0], vorder_i16(*(const vu_any *)(bits + j) ^ flip));
    acc[0] = vorder_i16(vmax_i16(acc[0], acc[1]));
    vf both[2];
    vload2(both, &acc[0], T, 0);
    return f == 0 ? 0 : 0.5f * vhmax(vmax(both[0], both[1]));
}

/* What is subtracted for the maximum: of nothing but -Inf it must not be taken itself, lest exponentials be NaN that
 * are 0 once a larger element comes. If none comes the sum is 0, and y = 0/0. */
INLINE float softmax_origin(float max) { return max == -INFINITY ? 0 : max; }

INLINE float softmax_inverse(float sum, const softmax_way *a) { return sum == 0 ? a->none : 1 / sum; }

/* h = 2^(spread (f x - origin)), while the next row is fetched; the sum. */
INLINE float softmax_exp_as(float *h, const void *x, int64_t at, int count, float origin, const softmax_way *a,
                            const void *next, trine_dtype T) {
    const float f = a->f, spread = a->spread;
    vf acc[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        vf v[2];
        row_prefetch2(next, T, j, k);
        row_get2(v, x, T, at + j, m, T);
        v[0] = softmax_exp2(vfma(v[0], vset(f), vset(-origin)), spread);
        v[1] = softmax_exp2(vfma(v[1], vset(f), vset(-origin)), spread);
        row_mask2(v, m, T);
        *row_vector(h, j) = v[0];
        *row_vector(h, j + VL) = v[1];
        acc[k] += v[0];
        acc[k + 1] += v[1];
    });
    return row_total(acc);
}

INLINE void softmax_write_to(const float *h, float inverse, row_sink y, int count, bool stream, trine_dtype T) {
    y.stream = stream; /* a constant: a branch in the loop costs more than the store */
    ROW_PAIRS(count, j, k, m, {
        const vf v[2] = { *(const vf *)(h + j) * inverse, *(const vf *)(h + j + VL) * inverse };
        row_put2(y, T, j, m, v, T);
    });
}
INLINE void softmax_write_as(const float *h, float inverse, row_sink y, int count, trine_dtype T) {
    if (y.stream)
        softmax_write_to(h, inverse, y, count, true, T);
    else
        softmax_write_to(h, inverse, y, count, false, T);
}

/* y from x, `visible` elements of one piece. The row at next_x is read next. */
INLINE void softmax_row_as(const softmax_way *a, float *h, const void *x, const void *next_x, void *y, int visible,
                           trine_dtype T) {
    if (visible == 0) return;
    const float max = softmax_max_as(x, 0, visible, a->f, T);
    const float sum = softmax_exp_as(h, x, 0, visible, softmax_origin(max), a, next_x, T);
    softmax_write_as(h, softmax_inverse(sum, a), row_sink_at(y, T, 0, a->stream), visible, T);
}

/* ---------------------------------------------------------------------------------------------- rows of several pieces
 */

/* A row that is held has its maximum first, then its exponentials, then y; of another, each piece has both by itself,
 * and its exponentials again when y is written. */
enum { SOFTMAX_MAX, SOFTMAX_EXP, SOFTMAX_WRITE, SOFTMAX_BOTH };
enum { SOFTMAX_TOP, SOFTMAX_SUM }; /* numbers of a row */

INLINE int softmax_first_pass(int64_t n) { return n <= SOFTMAX_HELD ? SOFTMAX_MAX : SOFTMAX_BOTH; }
static inline void softmax_begin(parts_row *row, int64_t n, int64_t visible) {
    row->length = visible;
    row->pass = softmax_first_pass(n);
    row->number[SOFTMAX_TOP] = -INFINITY;
}

/* A piece's maximum and sum, joined to the row's: what was summed from a smaller maximum becomes less. */
static inline void softmax_join(const softmax_way *a, parts_row *row, const double *result) {
    const double top = row->number[SOFTMAX_TOP], max = result[SOFTMAX_TOP] > top ? result[SOFTMAX_TOP] : top;
    const double down = max > top ? exp2((softmax_origin((float)top) - max) * a->spread) : 1;
    const double its =
        max > result[SOFTMAX_TOP] ? exp2((softmax_origin((float)result[SOFTMAX_TOP]) - max) * a->spread) : 1;
    row->number[SOFTMAX_SUM] = (top == -INFINITY ? row->number[SOFTMAX_SUM] : row->number[SOFTMAX_SUM] * down) +
                               (result[SOFTMAX_TOP] == -INFINITY ? result[SOFTMAX_SUM] : result[SOFTMAX_SUM] * its);
    row->number[SOFTMAX_TOP] = max;
}
static inline void softmax_add(const softmax_way *a, parts_row *row, const double *result) {
    if (row->pass == SOFTMAX_MAX && result[SOFTMAX_TOP] > row->number[SOFTMAX_TOP])
        row->number[SOFTMAX_TOP] = result[SOFTMAX_TOP];
    else if (row->pass == SOFTMAX_EXP)
        row->number[SOFTMAX_SUM] += result[SOFTMAX_SUM];
    else if (row->pass == SOFTMAX_BOTH)
        softmax_join(a, row, result);
}
static inline bool softmax_end(parts_row *row) {
    if (row->pass == SOFTMAX_WRITE) return false;
    row->pass = row->pass == SOFTMAX_MAX ? SOFTMAX_EXP : SOFTMAX_WRITE;
    row->last = row->pass == SOFTMAX_WRITE;
    return true;
}

INLINE float softmax_row_origin(const parts_row *row) { return softmax_origin((float)row->number[SOFTMAX_TOP]); }
INLINE float softmax_row_inverse(const parts_row *row, const softmax_way *a) {
    return softmax_inverse((float)row->number[SOFTMAX_SUM], a);
}

INLINE void softmax_piece_as(const softmax_way *a, const parts_row *row, int64_t n, float *h, const void *x, void *y,
                             int64_t at, int count, double *result, trine_dtype T) {
    float origin = softmax_row_origin(row);
    if (row->pass == SOFTMAX_MAX || row->pass == SOFTMAX_BOTH) {
        const float max = softmax_max_as(x, at, count, a->f, T);
        result[SOFTMAX_TOP] = max;
        origin = softmax_origin(max);
    }
    if (row->pass != SOFTMAX_MAX && (row->pass != SOFTMAX_WRITE || softmax_first_pass(n) == SOFTMAX_BOTH))
        result[SOFTMAX_SUM] = softmax_exp_as(h, x, at, count, origin, a, (const char *)x + at * (int64_t)vsize(T), T);
    if (row->pass == SOFTMAX_WRITE)
        softmax_write_as(h, softmax_row_inverse(row, a), row_sink_at(y, T, at, a->stream), count, T);
}

/* The rows of a matrix in chunks, and what is held of a row of several pieces. */
static inline int64_t softmax_chunk(int64_t n) {
    const int64_t rows = n > 0 ? ROW_PIECE / 2 / n : SOFTMAX_CHUNK;
    return rows < 1 ? 1 : rows < SOFTMAX_CHUNK ? rows : SOFTMAX_CHUNK;
}
static inline int64_t softmax_chunks(int64_t s, int64_t n) { return (s + softmax_chunk(n) - 1) / softmax_chunk(n); }
static inline int64_t softmax_held(int64_t n) { return n <= SOFTMAX_HELD ? cpu_round_up(n, 64) : 0; }
static inline int softmax_team(const trine_call *call, int64_t matrices, int64_t s, int64_t n) {
    return cpu_team(call, matrices * softmax_chunks(s, n), row_bytes(call));
}
static inline void softmax_edges(const trine_call *call, trine_kernel_edges *edges) {
    parts_row_edges(call, edges);
    trine_kernel_edge(edges, row_along(call), 2 * PAIR);
    trine_kernel_edge(edges, row_along(call), SOFTMAX_HELD);
    trine_kernel_edge(edges, row_down(call), softmax_chunk(call->dim[row_along(call)]));
}

#endif
