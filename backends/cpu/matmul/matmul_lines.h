/* SPDX-License-Identifier: Apache-2.0 */
/* b as matmul_pack packs it: read where it is if its lines hold units as they are multiplied, else unpacked to panels.
 *
 * What it holds beyond k counts nothing, so that a unit that k ends in is not read where it is. */
#ifndef TRINE_CPU_MATMUL_LINES_H
#define TRINE_CPU_MATMUL_LINES_H

#include "matmul_product.h"
#include "spec/matmul/packed.h"

/* Bytes of what a column has in a line, and of a line; k that are side by side there. */
INLINE int lines_word(trine_dtype dtype) { return dtype == TRINE_F64 ? 8 : 4; }
INLINE int lines_bytes(trine_dtype dtype) { return PACKED_COLUMNS * lines_word(dtype); }
INLINE int lines_deep(trine_dtype dtype) { return unit_element(dtype) < 4 ? 4 / unit_element(dtype) : 1; }

/* body(DTYPE, KIND) of a packed type and the units it is multiplied as. */
#define LINES_TYPES(type, body) \
    do { \
        switch (type) { \
        case TRINE_F32: body(TRINE_F32, UNIT_F32); break; \
        case TRINE_F16: body(TRINE_F16, UNIT_F32); break; \
        case TRINE_BF16: body(TRINE_BF16, HAVE_DOTS ? UNIT_BF16 : UNIT_F32); break; \
        case TRINE_E4M3: body(TRINE_E4M3, HAVE_DOTS ? UNIT_BF16 : UNIT_F32); break; \
        case TRINE_E5M2: body(TRINE_E5M2, HAVE_DOTS ? UNIT_BF16 : UNIT_F32); break; \
        case TRINE_F64: body(TRINE_F64, UNIT_F64); break; \
        default: body(TRINE_I8, (unit_kind)UNIT_INTEGER); break; \
        } \
    } while (0)

/* Where a column is, for the multiple `k` of 4. */
static inline const char *lines_at(const view *v, int64_t batch, int64_t column, int64_t k) {
    return v->data + batch * v->batch + column / PACKED_COLUMNS * v->group +
           column % PACKED_COLUMNS * lines_word(v->dtype) + k / PACKED_DEPTH * v->along;
}

/* Are units lines, one after the other? */
static inline bool lines_direct(const product *p) {
    const view *v = &p->b;
    const int64_t depth = unit_depth(p->kind), units = p->k / depth;
    return LINES && lines_deep(v->dtype) == depth && !tile_offset(p->kind) && p->k % depth == 0 &&
           v->along == PACKED_BLOCK * unit_element(v->dtype) && (!tile_amx(p->kind) || units % AMX_SIDE == 0);
}

/* The columns of a tile. */
static inline unit_grid lines_grid(const view *v, int64_t batch, int64_t column, int64_t k, unit_kind kind) {
    const int side = tile_amx(kind) ? AMX_SIDE : unit_lanes(kind);
    const char *data = lines_at(v, batch, column, k);
    unit_grid b = { .data = data, .lane = unit_bytes(kind), .along = lines_bytes(v->dtype), .ahead = data };
    for (int j = 0; j < 3; j++) b.vector[j] = lines_at(v, batch, column + j * side, k) - data;
    return b;
}

/* ----------------------------------------------------------------------------------------------------- unpacking */

/* The first `bits` bits in memory of a word of 32: some, and not all. */
INLINE int word_first(int bits) { return (int)(LITTLE ? (1U << bits) - 1 : ~0U << (32 - bits)); }

/* The units in a vector of words, in the order of k. */
INLINE void lines_units(vi *to, vi x, trine_dtype dtype, unit_kind kind) {
    const vu bits = (vu)x;
    if (dtype == TRINE_BF16 && kind == UNIT_F32) {
        to[!LITTLE] = (vi)(bits << 16), to[LITTLE] = (vi)(bits & 0xffff0000);
    } else if (dtype == TRINE_F16) {
        to[!LITTLE] = (vi)vf_from_f16(__builtin_convertvector(bits & 0xffff, vh));
        to[LITTLE] = (vi)vf_from_f16(__builtin_convertvector(bits >> 16, vh));
    } else if (dtype == TRINE_I8 && kind == UNIT_I16) {
        to[!LITTLE] = (((vi)(bits << 24) >> 24) & 0xffff) | (((vi)(bits << 16) >> 8) & (int)0xffff0000);
        to[LITTLE] = (((vi)(bits << 8) >> 24) & 0xffff) | ((x >> 8) & (int)0xffff0000);
    } else if (unit_float8(dtype)) {
        vi code[4];
        for (int i = 0; i < 4; i++) code[i] = (vi)vf_from_codes((vi)(bits >> word_place(i, 8, 32)) & 0xff, dtype);
        if (kind == UNIT_F32) {
            for (int i = 0; i < 4; i++) to[i] = code[i];
        } else {
            for (int i = 0; i < 2; i++) to[i] = (vi)((vu)code[2 * i] >> 16) | (code[2 * i + 1] & (int)0xffff0000);
        }
    } else {
        to[0] = x;
    }
}

/* Where a unit of a panel's vector is. */
INLINE char *lines_to(char *panel, int64_t unit, int vector, unit_kind kind) {
    if (!tile_amx(kind)) return panel + (unit * VECTORS + vector) * VB;
    return panel + ((unit / AMX_SIDE * 2 + vector) * AMX_SIDE + unit % AMX_SIDE) * 64;
}

/* A panel: columns from `column` on, of `columns` in all, `depth` elements from `k` on, padded to `units`. */
INLINE void lines_unpack_as(char *panel, const view *v, int64_t batch, int64_t column, int64_t columns, int64_t k,
                            int64_t depth, int64_t units, trine_dtype dtype, unit_kind kind) {
    const int step = unit_depth(kind), deep = lines_deep(dtype), each = deep / step, lines = PACKED_DEPTH / deep,
              vectors = tile_amx(kind) ? 2 : VECTORS;
    const int64_t there = (depth + step - 1) / step;
    for (int j = 0; j < vectors; j++) {
        const bool exists = column + j * unit_lanes(kind) < columns;
        const char *from = lines_at(v, batch, column + j * unit_lanes(kind), k);
        for (int64_t u = 0; exists && u < there; u += each) {
            const int64_t line = u / each;
            vi x[4];
            lines_units(x, unit_load(from + line / lines * v->along + line % lines * lines_bytes(dtype)), dtype, kind);
            for (int i = 0; i < each && u + i < there; i++) {
                if (step > 1 && (u + i + 1) * step > depth) x[i] &= word_first((int)(depth % step) * (32 / step));
                unit_store(lines_to(panel, u + i, j, kind), x[i]);
            }
        }
        for (int64_t u = exists ? there : 0; u < units; u++) unit_store(lines_to(panel, u, j, kind), (vi){ 0 });
    }
}

static inline void lines_unpack(char *panel, const view *v, int64_t batch, int64_t column, int64_t columns, int64_t k,
                                int64_t depth, int64_t units) {
#define UNPACK(dtype, kind) lines_unpack_as(panel, v, batch, column, columns, k, depth, units, dtype, kind)
    LINES_TYPES(v->dtype, UNPACK);
#undef UNPACK
}

#endif
