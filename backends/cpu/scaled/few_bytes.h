/* SPDX-License-Identifier: Apache-2.0 */
/* Few rows of i8 by codes of 4 bits, exactly: bytes of codes by bytes of a are added up as int16, which holds a part of
 * k. Included by few.h.
 *
 * A row of a is laid out part by part: for each vector of bytes of b the elements of their lower halves, then of the
 * upper ones; and behind them, for each lane, what the code that stands for 0 makes of them. */
#ifndef TRINE_CPU_SCALED_FEW_BYTES_H
#define TRINE_CPU_SCALED_FEW_BYTES_H

enum { BYTES_UNIT = 2 * VB }; /* elements of a vector of b */

static bool bytes_take(const scaled *s) {
    const bool even =
        (s->a.columns == 1 || s->a.block % BYTES_UNIT == 0) && (s->b.columns == 1 || s->b.block % BYTES_UNIT == 0);
    return s->a.kind == S8 && (s->b.kind == S4 || s->b.kind == U4) && even && s->k % BYTES_UNIT == 0;
}

/* Of row i and part t. */
INLINE int8_t *bytes_at(const few *f, int64_t i, int64_t t) {
    return (int8_t *)f->x + i * (f->s.k + f->s.parts * VB) + f->s.part[t].at + t * VB;
}

/* Lanes of int32 of pairs of int16. */
INLINE vi bytes_sums(vs pairs) {
    const vi x = (vi)pairs;
    return ((vi)((vu)x << 16) >> 16) + (x >> 16);
}

static void bytes_lay_out(const few *f, int64_t begin, int64_t end) {
    const scaled *s = &f->s;
    const int32_t none = s->b.offset + (s->b.kind == S4 ? 8 : 0);
    for (int64_t i = begin; i < end; i++) {
        const int8_t *const row = (const int8_t *)side_row(&s->a, i);
        scales_of(f->scales + i * f->a_scales, &s->a, i, 0, s->a.columns);
        for (int64_t t = 0; t < s->parts; t++) {
            const part *p = &s->part[t];
            int8_t *const to = bytes_at(f, i, t);
            int32_t zero[VL] = { 0 };
            for (int l = 0; l < p->length; l++) {
                const int place = l % BYTES_UNIT / 2;
                to[l / BYTES_UNIT * BYTES_UNIT + l % 2 * VB + place] = row[p->at + l];
                zero[place / 4] += none * row[p->at + l];
            }
            memcpy(to + p->length, zero, sizeof zero);
        }
    }
}

INLINE void bytes_dots(float *to, const few *f, int64_t i, int64_t j, const float *scales, int rows, int columns,
                       element kind) {
    const scaled *s = &f->s;
    const int64_t row = s->b.row, line = s->k + s->parts * VB;
    const uint8_t *const from = s->b.data + j * row;
    const vi halves = viset(0x0f0f0f0f), sign = viset(kind == S4 ? (int)0x88888888 : 0);
    vf total[SIDE][SIDE];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) total[r][c] = vzero();
    for (int64_t t = 0; t < s->parts; t++) {
        const part *p = &s->part[t];
        const uint8_t *const start = from + p->at / 2;
        const int8_t *const x = bytes_at(f, i, t);
        vs sum[SIDE][SIDE];
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++) sum[r][c] = (vs){ 0 };
        for (int l = 0; l < p->length; l += BYTES_UNIT)
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++) {
                const uint8_t *const codes = start + c * row + l / 2;
                if (l / 2 % LINE == 0)
                    __builtin_prefetch((const void *)((uintptr_t)codes + (uintptr_t)(columns * row)));
                const vi both = unit_load(codes) ^ sign, low = both & halves, high = (vi)((vu)both >> 4) & halves;
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++) {
                    sum[r][c] += unit_byte_pairs(low, unit_load(x + r * line + l));
                    sum[r][c] += unit_byte_pairs(high, unit_load(x + r * line + l + VB));
                }
            }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int c = 0; c < columns; c++) {
                const vf whole =
                    __builtin_convertvector(bytes_sums(sum[r][c]) - unit_load(x + r * line + p->length), vf);
                total[r][c] = vfma(vset(f->scales[(i + r) * f->a_scales + p->a] * scales[c * f->b_scales + p->b]),
                                   whole, total[r][c]);
            }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) to[r * STRIP + c] = vhsum(total[r][c]);
}

#endif
