/* SPDX-License-Identifier: Apache-2.0 */
/* What both ways of matmul_scaled on the CPU share: the operands, their elements and scales as floats, the parts of k
 * that are added up before they are scaled, and the end of a row. */
#ifndef TRINE_CPU_MATMUL_SCALED_H
#define TRINE_CPU_MATMUL_SCALED_H

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/matmul/matmul_finish.h"
#include "backends/cpu/matmul/matmul_unit.h"
#include "backends/cpu/quantize/codes.h"
#include "spec/places/matmul_scaled.h"
#include "spec/scaled/blocks.h"

typedef enum element { E4M3, E5M2, S8, U8, S4, U4, E2M1 } element;

typedef struct side {
    const trine_tensor *data, *scale; /* scale: NULL if absent */
    element kind;
    int32_t offset;
    int64_t rows, block, row_block, columns; /* columns: of scales */
} side;

typedef struct part {
    int64_t at, line;     /* the first element, and where the part is in a row that is laid out */
    int32_t length, a, b; /* a, b: columns of the scales */
} part;

typedef struct scaled {
    const trine_call *call;
    int64_t m, n, k, parts;
    side a, b;
    part *part; /* in the workspace */
} scaled;

INLINE bool is_packed(element kind) { return kind >= S4; }

static element element_of(trine_dtype type, bool packed, bool e2m1) {
    if (packed) return e2m1 ? E2M1 : type == TRINE_I8 ? S4 : U4;
    return type == TRINE_E4M3 ? E4M3 : type == TRINE_E5M2 ? E5M2 : type == TRINE_I8 ? S8 : U8;
}

static side side_of(const trine_call *call, int data, int scale, element kind, int64_t k) {
    const bool scaled = call->present >> scale & 1;
    side s = { .data = &call->tensor[data], .kind = kind };
    s.rows = s.data->shape[0];
    s.scale = scaled ? &call->tensor[scale] : NULL;
    s.columns = scaled ? s.scale->shape[1] : 1;
    s.block = scaled_block(k, s.columns);
    s.row_block = scaled_block(s.rows, scaled ? s.scale->shape[0] : 1);
    return s;
}

static scaled scaled_of(const trine_call *call) {
    const trine_matmul_scaled_args *args = call->args;
    const bool both = args->format == TRINE_SCALED_E2M1_BOTH, e2m1 = args->format >= TRINE_SCALED_E2M1;
    scaled s = { .call = call,
                 .m = call->dim[MATMUL_SCALED_DIM_M],
                 .n = call->dim[MATMUL_SCALED_DIM_N],
                 .k = call->dim[MATMUL_SCALED_DIM_P] * (both ? 2 : 1) };
    s.a = side_of(call, MATMUL_SCALED_A, MATMUL_SCALED_A_SCALE,
                  element_of(call->type[MATMUL_SCALED_TYPE_A], both, true), s.k);
    s.b = side_of(call, MATMUL_SCALED_B, MATMUL_SCALED_B_SCALE,
                  element_of(call->type[MATMUL_SCALED_TYPE_B], call->dim[MATMUL_SCALED_DIM_Q] < s.k, e2m1), s.k);
    s.b.offset = args->offset;
    for (int64_t at = 0; at < s.k; s.parts++) at = scaled_end(at, s.k, s.a.block, s.b.block);
    return s;
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
    const uint8_t *from = (const uint8_t *)s->data->data + row * s->data->stride[0];
    FOR_ELEMENT(s->kind, elements_of, to, from, at, count, s->offset);
}

/* ----------------------------------------------------------------------------------------------------------- scales */

/* Scales [first, first + count) of row `row` of an operand; `to` has room for whole vectors. */
static void scales_of(float *to, const side *s, int64_t row, int64_t first, int64_t count) {
    if (!s->scale) {
        for (int64_t g = 0; g < count; g++) to[g] = 1;
        return;
    }
    const trine_dtype type = s->scale->dtype;
    const int64_t size = (int64_t)trine_dtype_size(type);
    const char *from = (const char *)s->scale->data + (row / s->row_block * s->scale->stride[0] + first) * size;
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

/* -------------------------------------------------------------------------------------------------------------- end */

/* n sums of a row of d from `column` on; they may be read in whole vectors. */
static void finish_sums(const scaled *s, const float *sums, int64_t row, int64_t column, int64_t n) {
    const trine_matmul_scaled_args *args = s->call->args;
    const trine_tensor *d = &s->call->tensor[MATMUL_SCALED_D], *bias = &s->call->tensor[MATMUL_SCALED_BIAS];
    const target t = { .bias = s->call->present >> MATMUL_SCALED_BIAS & 1 ? bias->data : NULL,
                       .bias_type = bias->dtype,
                       .activation = args->activation };
    const factors f = { .whole = (double)args->alpha };
    char *to = (char *)d->data + row * d->stride[0] * (int64_t)trine_dtype_size(d->dtype);
    if (d->dtype == TRINE_F32)
        finish_row(&t, sums, &f, to, NULL, column, n, TRINE_F32);
    else if (d->dtype == TRINE_BF16)
        finish_row(&t, sums, &f, to, NULL, column, n, TRINE_BF16);
    else
        finish_row(&t, sums, &f, to, NULL, column, n, TRINE_F16);
}

#endif
