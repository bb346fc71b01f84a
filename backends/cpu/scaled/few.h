/* SPDX-License-Identifier: Apache-2.0 */
/* Products with scales of blocks for few rows of a: each row of b is read once for every few of them.
 *
 * Rows of a are laid out once as floats, each part of k in whole vectors; where b has two codes in a byte, those for
 * the lower halves of a vector of bytes are before those for the upper ones. */
#ifndef TRINE_CPU_SCALED_FEW_H
#define TRINE_CPU_SCALED_FEW_H

#include "values.h"

/* Rows of b in a task; rows of a at most; rows of a, or of b, that are worked on together; bytes of a cache line. */
enum { STRIP = 32, FEW = 16, SIDE = 4, LINE = 64 };

typedef struct few {
    scaled s;
    int64_t line, a_scales, b_scales;         /* floats of a row of a that is laid out; of lines of scales */
    int64_t x_bytes, scales_bytes, own_bytes; /* own: of a thread */
    float *x, *scales;
    bool integers; /* are they dot products of bytes? few_bytes.h */
} few;

/* Bytes' dot products. */
#include "few_bytes.h"

static bool few_takes(const scaled *s) {
    const bool even = (s->a.block % 2 == 0 || s->a.columns == 1) && (s->b.block % 2 == 0 || s->b.columns == 1);
    return s->m <= FEW && (even || !is_packed(s->b.kind));
}

/* Where parts begin in a row that is laid out. */
static int64_t few_unit(const scaled *s) { return is_packed(s->b.kind) ? 2 * VL : VL; }

/* Of s->m rows at most; x and scales are the caller's, who gives them memory. */
static few few_of(const scaled *s) {
    few f = { .s = *s, .line = list_parts(s, NULL, few_unit(s)), .integers = bytes_take(s) };
    f.a_scales = cpu_round_up(s->a.columns, VL), f.b_scales = cpu_round_up(s->b.columns, VL);
    f.x_bytes = cpu_round_up(s->m * f.line * 4, 256), f.scales_bytes = cpu_round_up(s->m * f.a_scales * 4, 256);
    f.own_bytes = cpu_round_up((SIDE * f.b_scales + s->m * STRIP + VL) * 4, 256);
    return f;
}

static void lay_out_rows(const few *f, int64_t begin, int64_t end) {
    const scaled *s = &f->s;
    const bool halves = is_packed(s->b.kind);
    for (int64_t i = begin; i < end; i++) {
        scales_of(f->scales + i * f->a_scales, &s->a, i, 0, s->a.columns);
        for (int64_t t = 0; t < s->parts; t++) {
            const part *p = &s->part[t];
            float x[SCALED_PART + 2 * VL] = { 0 }, *to = f->x + i * f->line + p->line;
            elements(x, &s->a, i, p->at, p->length);
            for (int l = 0; l < p->length; l += halves ? 2 * VL : VL) {
                for (int v = 0; v < VL; v++) {
                    to[l + v] = x[halves ? l + 2 * v : l + v];
                    if (halves) to[l + VL + v] = x[l + 2 * v + 1];
                }
            }
        }
    }
}

/* Adds the products of VL bytes of b and `rows` rows of a. */
INLINE void byte_dots(vf (*sum)[SIDE], const float *x, int64_t line, const uint8_t *from, int j, int rows,
                      int32_t offset, element kind) {
    vf w[2];
    const int vectors = is_packed(kind) ? 2 : 1;
    if (is_packed(kind)) {
        const vi byte = vload_u8(from);
        w[0] = half_vector(byte, false, kind, offset), w[1] = half_vector(byte, true, kind, offset);
    } else {
        w[0] = whole_vector(from, kind, offset);
    }
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) sum[i][j] = vfma(*(const vf_any *)(x + i * line + v * VL), w[v], sum[i][j]);
}

/* `rows` rows of a from i on by `columns` rows of b from j on. */
INLINE void dots(float *to, const few *f, int64_t i, int64_t j, const float *scales, int rows, int columns,
                 element kind) {
    const scaled *s = &f->s;
    const int64_t row = s->b.row, line = f->line;
    const uint8_t *const from = s->b.data + j * row;
    vf total[SIDE][SIDE], sum[SIDE][SIDE];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) total[r][c] = vzero();
    for (int64_t t = 0; t < s->parts; t++) {
        const part *p = &s->part[t];
        const int bytes = is_packed(kind) ? p->length / 2 : p->length, step = is_packed(kind) ? 2 : 1;
        const uint8_t *const start = from + (is_packed(kind) ? p->at / 2 : p->at);
        const float *const x = f->x + i * line + p->line;
        int l = 0;
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) sum[r][c] = vzero();
        for (; l + VL <= bytes; l += VL)
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++) {
                if (l % LINE == 0)
                    __builtin_prefetch((const void *)((uintptr_t)(start + l) + (uintptr_t)((columns + c) * row)));
                byte_dots(sum, x + l * step, line, start + c * row + l, c, rows, s->b.offset, kind);
            }
        for (int c = 0; l < bytes && c < columns; c++) {
            uint8_t tail[VL] = { 0 };
            memcpy(tail, start + c * row + l, (size_t)(bytes - l));
            byte_dots(sum, x + l * step, line, tail, c, rows, s->b.offset, kind);
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++)
                total[r][c] = vfma(vset(f->scales[(i + r) * f->a_scales + p->a] * scales[c * f->b_scales + p->b]),
                                   sum[r][c], total[r][c]);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) to[r * STRIP + c] = vhsum(total[r][c]);
}

INLINE void some_dots(float *to, const few *f, int64_t i, int64_t j, const float *scales, int rows, int columns,
                      bool integers, element kind) {
    if (integers)
        bytes_dots(to, f, i, j, scales, rows, columns, kind);
    else
        dots(to, f, i, j, scales, rows, columns, kind);
}

INLINE void strip(const few *f, float *sums, float *scales, int64_t first, int64_t columns, bool integers,
                  element kind) {
    const scaled *s = &f->s;
    for (int64_t j = 0; j < columns; j += SIDE) {
        const int side = columns - j < SIDE ? (int)(columns - j) : SIDE;
        for (int c = 0; c < side; c++) scales_of(scales + c * f->b_scales, &s->b, first + j + c, 0, s->b.columns);
        for (int64_t i = 0; i < s->m; i += SIDE) {
            const int rows = s->m - i < SIDE ? (int)(s->m - i) : SIDE, wide = rows < 3 ? SIDE : rows == 3 ? 2 : 1;
            for (int c = 0, some; c < side; c += some) {
                some = side - c < wide ? 1 : wide;
#define DOTS(r, n) \
    if (rows == (r) && some == (n)) \
        some_dots(sums + i * STRIP + j + c, f, i, first + j + c, scales + c * f->b_scales, r, n, integers, kind);
                DOTS(1, SIDE) DOTS(2, SIDE) DOTS(3, 2) DOTS(SIDE, 1) DOTS(1, 1) DOTS(2, 1) DOTS(3, 1)
#undef DOTS
            }
        }
    }
}

/* The sums of columns [first, first + columns) of d, at most STRIP, in rows of STRIP; `own` is the thread's memory. */
static float *strip_sums(const few *f, char *own, int64_t first, int64_t columns) {
    float *scales = (float *)(void *)own, *sums = scales + SIDE * f->b_scales;
    if (f->integers && f->s.b.kind == S4)
        strip(f, sums, scales, first, columns, true, S4);
    else if (f->integers)
        strip(f, sums, scales, first, columns, true, U4);
    else
        FOR_ELEMENT(f->s.b.kind, strip, f, sums, scales, first, columns, false);
    return sums;
}

/* Lays out rows [begin, end) of a. */
static void few_lay_out(const void *context, int64_t begin, int64_t end, int thread) {
    const few *f = context;
    (void)thread;
    if (f->integers)
        bytes_lay_out(f, begin, end);
    else
        lay_out_rows(f, begin, end);
}

#endif
