/* SPDX-License-Identifier: Apache-2.0 */
/* What products with scales of blocks share on the CPU: the operands, their elements and scales as floats, and the
 * parts of k that are added up before they are scaled. */
#ifndef TRINE_CPU_SCALED_VALUES_H
#define TRINE_CPU_SCALED_VALUES_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/matmul/matmul_finish.h"
#include "backends/cpu/matmul/matmul_unit.h"
#include "backends/cpu/quantize/codes.h"
#include "spec/scaled/blocks.h"

typedef enum element { E4M3, E5M2, S8, U8, S4, U4, E2M1 } element;

typedef struct side {
    const uint8_t *data;
    const char *scale;      /* NULL: absent */
    int64_t row, scale_row; /* strides, in elements */
    const int32_t *source;  /* the rows that its rows are; NULL: the same */
    trine_dtype scale_type;
    element kind;
    int32_t offset;
    int64_t block, row_block, columns; /* columns: of scales */
} side;

typedef struct part {
    int64_t at, line;     /* the first element, and where the part is in a row that is laid out */
    int32_t length, a, b; /* a, b: columns of the scales */
} part;

typedef struct scaled {
    int64_t m, n, k, parts;
    side a, b;
    part *part; /* in the workspace */
} scaled;

INLINE bool is_packed(element kind) { return kind >= S4; }

static element element_of(trine_dtype type, bool packed, bool e2m1) {
    if (packed) return e2m1 ? E2M1 : type == TRINE_I8 ? S4 : U4;
    return type == TRINE_E4M3 ? E4M3 : type == TRINE_E5M2 ? E5M2 : type == TRINE_I8 ? S8 : U8;
}

/* The last two dimensions of `data`, and of `scale` unless that is NULL. */
static side side_of(const trine_tensor *data, const trine_tensor *scale, int dims, element kind, int64_t k) {
    const int row = dims - 2;
    side s = { .data = data->data, .row = data->stride[row], .kind = kind, .columns = 1 };
    if (scale) {
        s.scale = scale->data, s.scale_row = scale->stride[row], s.scale_type = scale->dtype;
        s.columns = scale->shape[row + 1];
    }
    s.block = scaled_block(k, s.columns);
    s.row_block = scaled_block(data->shape[row], scale ? scale->shape[row] : 1);
    return s;
}

INLINE int64_t source_row(const side *s, int64_t row) { return s->source ? s->source[row] : row; }
INLINE const uint8_t *side_row(const side *s, int64_t row) { return s->data + source_row(s, row) * s->row; }

static int64_t count_parts(const scaled *s) {
    int64_t parts = 0;
    for (int64_t at = 0; at < s->k; parts++) at = scaled_end(at, s->k, s->a.block, s->b.block);
    return parts;
}

/* Parts begin at multiples of `unit` floats of a row that is laid out. Returns the floats of such a row. */
static int64_t list_parts(const scaled *s, part *to, int64_t unit) {
    int64_t line = 0;
    for (int64_t at = 0, i = 0; at < s->k; i++) {
        const int64_t end = scaled_end(at, s->k, s->a.block, s->b.block);
        if (to) to[i] = (part){ at, line, (int32_t)(end - at), (int32_t)(at / s->a.block), (int32_t)(at / s->b.block) };
        line += cpu_round_up(end - at, unit);
        at = end;
    }
    return line;
}

/* --------------------------------------------------------------------------------------------------------- elements */

/* Of VL bytes of an element each; or of halves of bytes, the lower or the upper ones. */
INLINE vf whole_vector(const uint8_t *from, element kind, int32_t offset) {
    vb bytes;
    switch (kind) {
    case E4M3:
    case E5M2: memcpy(&bytes, from, VL); return vf_from_float8(bytes, kind == E4M3 ? TRINE_E4M3 : TRINE_E5M2);
    case S8: return __builtin_convertvector((vload_u8(from) ^ 128) - viset(128 + offset), vf);
    default: return __builtin_convertvector(vload_u8(from) - viset(offset), vf);
    }
}
INLINE vf half_vector(vi byte, bool upper, element kind, int32_t offset) {
    const vi code = upper ? byte >> 4 : byte & 15;
    if (kind == E2M1) return codes_from_e2m1(code);
    return __builtin_convertvector(kind == S4 ? (code ^ 8) - viset(8 + offset) : code - viset(offset), vf);
}

/* Element `at` alone. */
INLINE float one_element(const uint8_t *row, int64_t at, element kind, int32_t offset) {
    uint8_t byte[VL] = { is_packed(kind) ? row[at / 2] : row[at] };
    return is_packed(kind) ? half_vector(vload_u8(byte), at % 2, kind, offset)[0] : whole_vector(byte, kind, offset)[0];
}

/* `count` elements of a row from `at` on, as floats. */
INLINE void elements_of(float *to, const uint8_t *row, int64_t at, int64_t count, int32_t offset, element kind) {
    int64_t l = 0;
    if (!is_packed(kind))
        for (; l + VL <= count; l += VL) *(vf_any *)(to + l) = whole_vector(row + at + l, kind, offset);
    if (is_packed(kind) && at % 2 == 0)
        for (; l + 2 * VL <= count; l += 2 * VL) {
            const vi byte = vload_u8(row + (at + l) / 2);
            const vf even = half_vector(byte, false, kind, offset), odd = half_vector(byte, true, kind, offset);
            unit_store(to + l, unit_zip((vi)even, (vi)odd, false, UNIT_F32));
            unit_store(to + l + VL, unit_zip((vi)even, (vi)odd, true, UNIT_F32));
        }
    for (; l < count; l++) to[l] = one_element(row, at + l, kind, offset);
}

#define FOR_ELEMENT(kind, body, ...) \
    do { \
        switch (kind) { \
        case E4M3: body(__VA_ARGS__, E4M3); break; \
        case E5M2: body(__VA_ARGS__, E5M2); break; \
        case S8: body(__VA_ARGS__, S8); break; \
        case U8: body(__VA_ARGS__, U8); break; \
        case S4: body(__VA_ARGS__, S4); break; \
        case U4: body(__VA_ARGS__, U4); break; \
        default: body(__VA_ARGS__, E2M1); break; \
        } \
    } while (0)

static void elements(float *to, const side *s, int64_t row, int64_t at, int64_t count) {
    const uint8_t *from = side_row(s, row);
    FOR_ELEMENT(s->kind, elements_of, to, from, at, count, s->offset);
}

/* ----------------------------------------------------------------------------------------------------------- scales */

/* Scales [first, first + count) of row `row` of an operand; `to` has room for whole vectors. */
static void scales_of(float *to, const side *s, int64_t row, int64_t first, int64_t count) {
    if (!s->scale) {
        for (int64_t g = 0; g < count; g++) to[g] = 1;
        return;
    }
    const trine_dtype type = s->scale_type;
    const int64_t size = (int64_t)trine_dtype_size(type);
    const char *from = s->scale + (source_row(s, row) / s->row_block * s->scale_row + first) * size;
    for (int64_t g = 0; g < count; g += VL) {
        const int some = count - g < VL ? (int)(count - g) : VL;
        vb bytes = { 0 };
        vf x;
        if (size == 1) memcpy(&bytes, from + g, (size_t)some);
        if (type == TRINE_E8M0)
            x = vf_from_e8m0(bytes);
        else if (type == TRINE_E4M3)
            x = vf_from_float8(bytes, TRINE_E4M3);
        else
            x = load_part(from + g * size, type, some);
        memcpy(to + g, &x, (size_t)some * sizeof *to);
    }
}

#endif
