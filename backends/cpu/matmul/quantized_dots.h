/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows of x with rows of codes, each of which is read once for every few rows of x.
 *
 * A byte has 8/bits codes, which shifts of a vector of bytes part: code p of each byte in one vector. x is laid out
 * once in that order, group by group, as f32. A group's products are added up before they are multiplied by its scale;
 * the sum of x over the group, times min - scale zero, is added to them. Codes of 3, 5, 6 and 7 bits are unpacked to
 * bytes first. */
#ifndef TRINE_CPU_QUANTIZED_DOTS_H
#define TRINE_CPU_QUANTIZED_DOTS_H

#include <trine/quantize.h>

#include "backends/backend.h"
#include "backends/cpu/quantize/codes.h"

/* Rows of codes that are a strip; rows of x at most, since of more it pays to write the weights down; rows of x, or of
 * codes, that are worked on together: codes are made numbers once for all rows of x, and of few rows there are sums of
 * several columns, whose additions need not wait for each other. */
enum { STRIP = 32, FEW = 16, SIDE = 4, LINE = 64 /* bytes of a line of the cache */ };

/* The scales of all rows, the zeros or the minima. */
typedef struct numbers {
    const char *data; /* NULL: absent */
    int64_t row;      /* bytes */
} numbers;

typedef struct quantized {
    int64_t groups, bytes, group;
    int bits, parts;          /* bits of a code; codes of a byte, 1 where codes are unpacked to bytes */
    int64_t code_bytes, line; /* of a group, unpacked; floats of each part of a group of x, whole vectors */
    int64_t x_row, sums_row;  /* floats of a row of x as it is laid out; of its sums over groups */
    int32_t flip, offset;     /* what turns a byte's signed codes into unsigned ones; what is then taken from them */
    bool e2m1;
    bool shifted; /* is anything added to code times scale? */
    const uint8_t *codes;
    int64_t codes_row, codes_group; /* bytes */
    numbers scales, zeros, mins;
    trine_dtype type; /* of the numbers */
    float *x, *sums;  /* the rows of x, laid out */
} quantized;

/* What a thread has of its own. */
typedef struct strip_memory {
    float *scales, *shifts, *sums; /* sums: a row of x has STRIP */
    uint8_t *unpacked;
} strip_memory;

static inline numbers numbers_of(const trine_tensor *t) {
    return t ? (numbers){ t->data, t->stride[t->rank - 2] * (int64_t)trine_dtype_size(t->dtype) } : (numbers){ 0 };
}

/* All but where x is. Rows of k weights; zeros and mins are NULL if absent. A dimension in front of the rows counts
 * nothing. */
static inline quantized quantized_of(const trine_tensor *codes, const trine_tensor *scales, const trine_tensor *zeros,
                                     const trine_tensor *mins, int64_t k, int32_t offset, int32_t format) {
    const int row = codes->rank - 3;
    quantized q = { .groups = k > 0 ? codes->shape[row + 1] : 0,
                    .bytes = codes->shape[row + 2],
                    .offset = offset,
                    .e2m1 = format == TRINE_CODES_E2M1,
                    .shifted = zeros || mins,
                    .codes = codes->data,
                    .codes_row = codes->stride[row],
                    .codes_group = codes->stride[row + 1],
                    .scales = numbers_of(scales),
                    .zeros = numbers_of(zeros),
                    .mins = numbers_of(mins),
                    .type = scales->dtype };
    q.group = q.groups > 0 ? k / q.groups : 0;
    q.bits = k > 0 ? (int)(8 * q.bytes * q.groups / k) : 8;
    q.parts = 8 % q.bits == 0 ? 8 / q.bits : 1;
    q.code_bytes = 8 % q.bits == 0 ? q.bytes : q.group;
    q.line = cpu_round_up(q.code_bytes, VL);
    q.x_row = q.groups * q.parts * q.line;
    q.sums_row = cpu_round_up(q.groups, VL);
    if (codes->dtype == TRINE_I8) {
        for (int at = q.bits - 1; at < (q.parts > 1 ? 8 : q.bits); at += q.bits) q.flip |= 1 << at;
        q.offset += 1 << (q.bits - 1);
    }
    return q;
}

/* Of a strip's memory, for m rows of x. */
static inline int64_t strip_bytes(const quantized *q, int64_t m) {
    return cpu_round_up((2 * SIDE * q->sums_row + m * STRIP + VL) * 4 + SIDE * q->line, 256);
}
static inline strip_memory strip_memory_at(const quantized *q, int64_t m, char *memory) {
    strip_memory own = { .scales = (float *)(void *)memory };
    own.shifts = own.scales + SIDE * q->sums_row, own.sums = own.shifts + SIDE * q->sums_row;
    own.unpacked = (uint8_t *)(own.sums + m * STRIP + VL);
    return own;
}

/* ------------------------------------------------------------------------------------------------------ x, laid out */

INLINE float lay_out_group(float *to, const quantized *q, const void *from, int64_t first, trine_dtype type) {
    float sum = 0;
    for (int p = 0; p < q->parts; p++)
        for (int64_t b = 0; b < q->line; b++) {
            const float x = b < q->code_bytes ? sload(from, type, first + b * q->parts + p) : 0;
            to[p * q->line + b] = x;
            sum += x;
        }
    return sum;
}

/* Row i of x; `from` NULL: zeros. */
static void lay_out(const quantized *q, int64_t i, const void *from, trine_dtype type) {
    float *sums = q->sums + i * q->sums_row;
    for (int64_t g = 0; g < q->sums_row; g++) sums[g] = 0;
    if (!from) {
        for (int64_t l = 0; l < q->x_row; l++) q->x[i * q->x_row + l] = 0;
        return;
    }
    for (int64_t g = 0; g < q->groups; g++) {
        float *to = q->x + i * q->x_row + g * q->parts * q->line;
        const int64_t first = g * q->group;
        if (type == TRINE_F32)
            sums[g] = lay_out_group(to, q, from, first, TRINE_F32);
        else if (type == TRINE_BF16)
            sums[g] = lay_out_group(to, q, from, first, TRINE_BF16);
        else
            sums[g] = lay_out_group(to, q, from, first, TRINE_F16);
    }
}

/* ---------------------------------------------------------------------------------------------------------- weights */

/* The scales of a row of codes, and what is added for each x of a group: min - scale zero. Behind the last
 * group both are 0. */
INLINE void row_scales(float *scales, float *shifts, const quantized *q, int64_t j, trine_dtype type) {
    for (int64_t g = 0; g < q->groups; g += VL) {
        const int part = q->groups - g < VL ? (int)(q->groups - g) : VL;
        const vf scale = vloadn(q->scales.data + j * q->scales.row, type, g, part, 0);
        vf shift = q->mins.data ? vloadn(q->mins.data + j * q->mins.row, type, g, part, 0) : vzero();
        if (q->zeros.data) shift -= scale * vloadn(q->zeros.data + j * q->zeros.row, type, g, part, 0);
        *(vf_any *)(scales + g) = scale;
        *(vf_any *)(shifts + g) = shift;
    }
}

/* Codes of a group as bytes. */
static void unpack(uint8_t *to, const uint8_t *from, const quantized *q) {
    for (int64_t l = 0; l < q->group; l += CODES_UNIT) {
        const int64_t left = q->group - l, count = left < CODES_UNIT ? left : CODES_UNIT;
        const code_bytes codes = codes_load(from + l / 8 * q->bits, (int)count, q->bits);
        memcpy(to + l, &codes, (size_t)count);
    }
}

/* Adds the products of VL bytes of codes and `rows` rows of x. */
INLINE void byte_dots(vf (*sum)[SIDE], const quantized *q, const float *x, vi byte, int j, int rows, int parts,
                      bool e2m1) {
    const int bits = 8 / parts;
#pragma GCC unroll 8
    for (int p = 0; p < parts; p++) {
        const vi code = (byte >> p * bits) & ((1 << bits) - 1);
        const vf w = e2m1 ? codes_from_e2m1(code) - vset((float)q->offset)
                          : __builtin_convertvector(code - viset(q->offset), vf);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sum[i][j] = vfma(*(const vf_any *)(x + i * q->x_row + p * q->line), w, sum[i][j]);
    }
}

/* Adds the products of a group: `rows` rows of x by `columns` rows of codes, and has those fetched that lie `ahead`
 * bytes further. */
INLINE void group_dots(vf (*total)[SIDE], const quantized *q, const float *x, const uint8_t *const *from, int64_t ahead,
                       const float *scale, int rows, int columns, int parts, bool e2m1) {
    const int64_t bytes = q->code_bytes;
    const vi flip = viset(q->flip);
    vf sum[SIDE][SIDE];
    int64_t b = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) sum[i][j] = vzero();
    for (; b + VL <= bytes; b += VL) {
#pragma GCC unroll 4
        for (int j = 0; j < columns; j++) {
            if (b % LINE == 0) __builtin_prefetch((const void *)((uintptr_t)from[j] + (uintptr_t)(ahead + b)));
            byte_dots(sum, q, x + b, vload_u8(from[j] + b) ^ flip, j, rows, parts, e2m1);
        }
    }
    for (int j = 0; b < bytes && j < columns; j++) {
        uint8_t tail[VL] = { 0 };
        memcpy(tail, from[j] + b, (size_t)(bytes - b));
        byte_dots(sum, q, x + b, vload_u8(tail) ^ flip, j, rows, parts, e2m1);
    }
#pragma GCC unroll 4
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) total[i][j] = vfma(vset(scale[j * q->sums_row]), sum[i][j], total[i][j]);
}

INLINE void dots(float *to, const quantized *q, int64_t i, int64_t j, const float *scales, const float *shifts,
                 uint8_t *unpacked, int rows, int columns, int parts, bool e2m1) {
    const bool whole = 8 % q->bits == 0;
    vf total[SIDE][SIDE];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) total[r][c] = vzero();
    for (int64_t g = 0; g < q->groups; g++) {
        const uint8_t *code[SIDE];
        for (int c = 0; c < columns; c++) {
            code[c] = q->codes + (j + c) * q->codes_row + g * q->codes_group;
            if (whole) continue;
            unpack(unpacked + c * q->line, code[c], q);
            code[c] = unpacked + c * q->line;
        }
        group_dots(total, q, q->x + i * q->x_row + g * q->parts * q->line, code, columns * q->codes_row, scales + g,
                   rows, columns, parts, e2m1);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            for (int64_t g = 0; q->shifted && g < q->groups; g += VL)
                total[r][c] = vfma(*(const vf_any *)(q->sums + (i + r) * q->sums_row + g),
                                   *(const vf_any *)(shifts + c * q->sums_row + g), total[r][c]);
            to[r * STRIP + c] = vhsum(total[r][c]);
        }
}

static void dots_of(float *to, const quantized *q, int64_t i, int64_t j, const float *scales, const float *shifts,
                    uint8_t *unpacked, int rows, int columns) {
#define DOTS(r, c) \
    if (rows == (r) && columns == (c)) { \
        if (q->parts == 1) dots(to, q, i, j, scales, shifts, unpacked, r, c, 1, false); \
        if (q->parts == 2 && !q->e2m1) dots(to, q, i, j, scales, shifts, unpacked, r, c, 2, false); \
        if (q->parts == 2 && q->e2m1) dots(to, q, i, j, scales, shifts, unpacked, r, c, 2, true); \
        if (q->parts == 4) dots(to, q, i, j, scales, shifts, unpacked, r, c, 4, false); \
        if (q->parts == 8) dots(to, q, i, j, scales, shifts, unpacked, r, c, 8, false); \
    }
    DOTS(1, SIDE) DOTS(2, SIDE) DOTS(3, 2) DOTS(SIDE, 1) DOTS(1, 1) DOTS(2, 1) DOTS(3, 1)
#undef DOTS
}

/* Rows of codes `first` to `first` + `columns` times m rows of x: to own->sums. */
static void strip_dots(const quantized *q, int64_t m, int64_t first, int64_t columns, const strip_memory *own) {
    for (int64_t j = 0; j < columns; j += SIDE) {
        const int side = columns - j < SIDE ? (int)(columns - j) : SIDE;
        for (int c = 0; c < side; c++)
            FOR_TYPE(q->type, row_scales, own->scales + c * q->sums_row, own->shifts + c * q->sums_row, q,
                     first + j + c);
        for (int64_t i = 0; i < m; i += SIDE) {
            const int rows = m - i < SIDE ? (int)(m - i) : SIDE, wide = rows < 3 ? SIDE : rows == 3 ? 2 : 1;
            for (int c = 0, some; c < side; c += some) {
                some = side - c < wide ? 1 : wide;
                dots_of(own->sums + i * STRIP + j + c, q, i, first + j + c, own->scales + c * q->sums_row,
                        own->shifts + c * q->sums_row, own->unpacked, rows, some);
            }
        }
    }
}

#endif
