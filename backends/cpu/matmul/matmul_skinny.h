/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products where one operand has few lanes: the other, Y, is read where it is, once, for packing it would cost
 * more than the product.
 *
 * X, of the few lanes, is unpacked into units. If Y's elements are consecutive in k, sums are dot products along k; if
 * its lanes are, sums are vectors of lanes. Either way the order of an element's sum follows from k and the level
 * alone. */
#ifndef TRINE_CPU_MATMUL_SKINNY_H
#define TRINE_CPU_MATMUL_SKINNY_H

#include "matmul_edge.h"
#include "matmul_product.h"

/* Lanes of X at most; where Y's lanes are consecutive; from which on tiles are multiplied; and up to which but for AMX,
 * whose tile has no more columns. */
enum { FEW = 32, FEW_ACROSS = 8, FEW_TILES = 5, FEW_MOST = 64 };

/* Sums of a task at most; lanes of Y in a task at least, and where they are tiles; units of k at a time, so that Y's
 * pages stay in the TLB; columns of a block of dot products; lanes of X that are multiplied at once where Y's lanes are
 * consecutive, and vectors of Y then. */
enum { SUMS = 4096, LEAST = 128, LEAST_TILES = 32, DEPTH = 16, DOTS_WIDE = VB == 64 ? 6 : 3, SKINNY_NOTE = 64 };
enum { ACROSS_HIGH = 8, ACROSS_WIDE = VB == 64 ? 3 : 1 };

typedef struct skinny {
    product p;
    view x, y;
    int64_t few, many;
    int64_t units, x_bytes; /* of X, unpacked, and of a note */
    int64_t x_row;          /* bytes from lane to lane of X, where these lie one after the other */
    int64_t x_few;          /* lanes of X but for tiles, with those that are multiplied in vain */
    int64_t strip, strips;  /* lanes of Y in a task; tasks */
    bool swapped;           /* X is b */
    bool tiles;             /* Y's lanes are rows of tiles as they lie in memory */
    int team;
} skinny;

/* A product with n = 1 whose d lies in one line is the product with m = 1 transposed, if no bias tells them apart. */
static inline bool lay_down(target *t, int64_t n) {
    const int64_t size = t->type == TRINE_F64 ? 8 : t->type == TRINE_F32 || t->type == TRINE_I32 ? 4 : 2;
    if (n != 1 || t->bias || t->d_row != size || (t->c && t->c_row != size && t->c_row != 0)) return false;
    t->c_column = t->c_row;
    const scales rows = t->rows;
    t->rows = t->columns, t->columns = rows;
    return true;
}

/* Whether Y holds units as they are multiplied. */
static inline bool skinny_whole(const skinny *s) {
    const trine_dtype type = s->y.dtype;
    if (tile_amx(s->p.kind)) return !unit_float8(type);
    if (!rows_apart(&s->y)) return false;
    return type == TRINE_F32 || type == TRINE_F64 || (HAVE_DOTS && type == TRINE_BF16 && s->p.k % 2 == 0);
}

/* Whether Y's lanes are consecutive and all of X is multiplied at once: with narrow types a line of the cache would be
 * read too often where a vector is short. */
static inline bool skinny_high(const skinny *s) {
    return s->y.across && s->few > 4 && s->few <= ACROSS_HIGH && (ACROSS_WIDE > 1 || unit_element(s->y.dtype) >= 4);
}

static inline skinny skinny_of(const trine_call *call) {
    skinny s = { .p = product_of(call) };
    const product *p = &s.p;
    s.swapped = p->n < p->m;
    s.x = s.swapped ? p->b : p->a, s.y = s.swapped ? p->a : p->b;
    s.few = s.swapped ? p->n : p->m, s.many = s.swapped ? p->m : p->n;
    s.units = cpu_round_up((p->k + unit_depth(p->kind) - 1) / unit_depth(p->kind), unit_lanes(p->kind));
    s.tiles = !s.y.across && s.few >= FEW_TILES && skinny_whole(&s);
    /* lanes that lie a power of two apart share a set of the cache */
    s.x_row = s.units * unit_bytes(p->kind) + 64;
    const int64_t wide = tile_columns(p->kind), panels = (s.few + wide - 1) / wide;
    s.x_few = skinny_high(&s) ? ACROSS_HIGH : s.few % 4 == 3 ? s.few + 1 : s.few;
    s.x_bytes = s.tiles ? panels * panel_bytes(s.units, (int)wide, p->kind) : s.x_few * s.x_row;
    s.x_bytes = cpu_round_up(s.x_bytes + SKINNY_NOTE, 256);
    const int64_t least = s.tiles ? LEAST_TILES : LEAST;
    s.team = product_team(call, p, p->g * ((s.many + least - 1) / least));
    const int64_t few = s.x_few < 1          ? 1
                        : s.x_few < FEW_MOST ? s.x_few
                                             : FEW_MOST,
                  share = (s.many * p->g + s.team - 1) / s.team, most = SUMS / few / VL * VL;
    s.strip = cpu_round_up(share < least ? least : share, VL);
    if (s.strip > most) s.strip = most > VL ? most : VL;
    s.strips = (s.many + s.strip - 1) / s.strip;
    return s;
}

/* Unpacks X: lane by lane for dot products, unit by unit otherwise. The rest of the last vector is zero. */
INLINE void x_unpack(char *to, const skinny *s, int64_t batch, trine_dtype dtype, unit_kind kind) {
    const int side = unit_lanes(kind), step = unit_depth(kind), bytes = unit_bytes(kind);
    const int64_t size = unit_element(dtype);
    for (int64_t i = 0; i < s->few; i++)
        for (int64_t u = 0; u < s->units; u += side) {
            const char *from = s->x.data + batch * s->x.batch + i * s->x.lane + u * step * s->x.along;
            const int64_t left = s->p.k - u * step, n = left < side * step ? left : side * step;
            char line[VB] = { 0 }, unpacked[VB];
            if (s->x.along == size && n == side * step)
                memcpy(line, from, (size_t)(side * step * size));
            else
                for (int64_t e = 0; e < n; e++) memcpy(line + e * size, from + e * s->x.along, (size_t)size);
            unit_store(unpacked, unit_along(line, kind, dtype) ^ viset(unit_unsigned(kind) ? (int)0x80808080 : 0));
            if (s->y.across)
                for (int e = 0; e < side; e++)
                    memcpy(to + ((u + e) * s->x_few + i) * bytes, unpacked + e * bytes, (size_t)bytes);
            else
                memcpy(to + i * s->x_row + u * bytes, unpacked, VB);
        }
}

/* As panels of tiles' columns. */
static void x_pack(char *to, const skinny *s, int64_t batch) {
    const int64_t wide = tile_columns(s->p.kind);
    for (int64_t i = 0; i < s->few; i += wide)
        panel_pack(to + i / wide * panel_bytes(s->units, (int)wide, s->p.kind),
                   s->x.data + batch * s->x.batch + i * s->x.lane, &s->x, s->few - i, s->p.k, s->units, false);
}

/* ------------------------------------------------------------------------------------ Y's elements consecutive in k */

INLINE void sum_lanes(void *to, sum s, unit_kind kind) {
    if (kind == UNIT_F64) {
        double x[VL / 2];
        memcpy(x, &s.d, sizeof x);
        for (int half = VL / 4; half > 0; half /= 2)
            for (int i = 0; i < half; i++) x[i] += x[i + half];
        memcpy(to, x, 8);
    } else if (kind == UNIT_F32 || kind == UNIT_BF16) {
        const float x = vhsum(s.f);
        memcpy(to, &x, 4);
    } else {
        uint32_t x = 0;
        for (int i = 0; i < VL; i++) x += s.i[i];
        memcpy(to, &x, 4);
    }
}

/* Dot products of `rows` lanes of X with Y's lanes [lane, lane + columns), of which those beyond `lanes` are the last
 * one again. */
INLINE void dots(char *sums, const char *x, const skinny *s, const char *y, int64_t lane, int64_t lanes, int rows,
                 int columns, trine_dtype dtype, unit_kind kind) {
    const int bytes = unit_bytes(kind), step = unit_lanes(kind) * unit_depth(kind);
    const int64_t size = unit_element(dtype), row = s->x_row;
    const char *from[8];
    sum t[4][8], offset[8];
    for (int j = 0; j < columns; j++) {
        from[j] = y + (lane + j < lanes ? lane + j : lanes - 1) * s->y.lane;
        offset[j] = (sum){ 0 };
        for (int i = 0; i < rows; i++) t[i][j] = (sum){ 0 };
    }
    for (int64_t k = 0; k < s->p.k; k += step) {
        char tail[8][VB];
        if (s->p.k - k < step)
            for (int j = 0; j < columns; j++) {
                memset(tail[j], 0, VB);
                memcpy(tail[j], from[j], (size_t)((s->p.k - k) * size));
                from[j] = tail[j];
            }
#pragma GCC unroll 8
        for (int j = 0; j < columns; j++) {
            const vi b = unit_along(from[j], kind, dtype);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) t[i][j] = sum_mac(t[i][j], unit_load(x + i * row), b, kind);
            if (unit_unsigned(kind)) offset[j] = sum_mac(offset[j], viset((int)0x80808080), b, kind);
            from[j] += step * size;
        }
        x += VB;
    }
#pragma GCC unroll 8
    for (int j = 0; j < columns; j++)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            if (lane + j >= lanes) break;
            if (kind == UNIT_I8) t[i][j].i -= offset[j].i;
            sum_lanes(sums + (i * s->strip + lane + j) * bytes, t[i][j], kind);
        }
}

INLINE void strip_dots(char *sums, const char *x, const skinny *s, const char *y, int64_t lanes, trine_dtype dtype,
                       unit_kind kind) {
    const int bytes = unit_bytes(kind);
    const int64_t row = s->x_row, line = s->strip * bytes;
    int64_t i = s->x_few / 4 * 4;
    for (int64_t j = 0; j < lanes; j += DOTS_WIDE)
        for (int64_t f = 0; f < i; f += 4)
            dots(sums + f * line, x + f * row, s, y, j, lanes, 4, DOTS_WIDE, dtype, kind);
    for (; s->x_few - i >= 2; i += 2)
        for (int64_t j = 0; j < lanes; j += 5) dots(sums + i * line, x + i * row, s, y, j, lanes, 2, 5, dtype, kind);
    for (; s->x_few - i >= 1; i += 1)
        for (int64_t j = 0; j < lanes; j += 8) dots(sums + i * line, x + i * row, s, y, j, lanes, 1, 8, dtype, kind);
}

/* The same by tiles: Y's lanes are their rows, X's their columns. */
INLINE void strip_tiles(char *sums, const char *x, const skinny *s, const char *y, int64_t lanes, unit_kind kind) {
    const int bytes = unit_bytes(kind), high = tile_rows(kind), wide = tile_columns(kind);
    const int64_t line = s->strip * bytes, units = (s->p.k + unit_depth(kind) - 1) / unit_depth(kind);
    _Alignas(64) char tile[TILE_BYTES];
    for (int64_t j = 0; j < lanes; j += lanes < high ? 1 : high) {
        const int64_t at = lanes - j < high && lanes >= high ? lanes - high : j, there = lanes < high ? 1 : high;
        const unit_grid a = { y + at * s->y.lane, there > 1 ? s->y.lane : 0, s->y.along * unit_depth(kind) };
        for (int64_t f = 0; f < s->few; f += wide) {
            const int64_t few = s->few - f < wide ? s->few - f : wide;
            const unit_grid b = { x + f / wide * panel_bytes(s->units, wide, kind), bytes, wide * bytes };
            const int64_t vectors = (few + unit_lanes(kind) - 1) / unit_lanes(kind);
            if (vectors < VECTORS)
                tile_edge(tile, &a, &b, units, false, high, vectors, kind);
            else
                tile_multiply_grids(tile, a, b, units, false, kind);
            for (int64_t i = 0; i < few; i++)
                for (int64_t l = 0; l < there; l++)
                    memcpy(sums + (f + i) * line + (at + l) * bytes, tile + (l * wide + i) * bytes, (size_t)bytes);
        }
    }
}

#if defined(__AMX_TILE__)
INLINE void strip_amx(char *sums, const char *x, const skinny *s, const char *y, int64_t lanes, trine_dtype dtype,
                      unit_kind kind) {
    enum { BLOCK = 2 * AMX_SIDE, LINE = 64, STEP = BLOCK * LINE, AHEAD = 8 * LINE };
    const int64_t step = LINE / unit_element(dtype), line = s->strip * 4;
    _Alignas(64) int32_t tile[4][AMX_SIDE][AMX_SIDE];
    _Alignas(64) char square[BLOCK * LINE];
    for (int64_t j = 0; j < lanes; j += BLOCK) {
        const int64_t at = lanes - j < BLOCK && lanes > BLOCK ? lanes - BLOCK : j,
                      there = lanes - at < BLOCK ? lanes - at : BLOCK;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t k = 0; k < s->p.k; k += step, x += STEP) {
            const char *from = y + at * s->y.lane + k * s->y.along;
            int64_t apart = s->y.lane;
            if (there < BLOCK || s->p.k - k < step) {
                const int64_t left = s->p.k - k < step ? s->p.k - k : step;
                square_copy(square, sizeof square, from, apart, there, left * s->y.along, LINE);
                from = square, apart = LINE;
            } else {
                for (int i = 0; i < BLOCK; i++) __builtin_prefetch(from + i * apart + AHEAD);
            }
            __asm__ volatile("" ::: "memory"); /* as in tile_multiply_amx */
            _tile_loadd(6, x, LINE);
            _tile_loadd(4, from, apart);
            amx_dot(0, 4, 6, kind);
            _tile_loadd(5, from + AMX_SIDE * apart, apart);
            amx_dot(1, 5, 6, kind);
            if (s->few > AMX_SIDE) {
                _tile_loadd(7, x + AMX_SIDE * LINE, LINE);
                amx_dot(2, 4, 7, kind);
                amx_dot(3, 5, 7, kind);
            }
        }
        x -= (s->p.k + step - 1) / step * STEP;
        _tile_stored(0, tile[0], LINE);
        _tile_stored(1, tile[1], LINE);
        _tile_stored(2, tile[2], LINE);
        _tile_stored(3, tile[3], LINE);
        for (int64_t i = 0; i < s->few; i++)
            for (int64_t l = 0; l < there; l++)
                memcpy(sums + i * line + (at + l) * 4,
                       &tile[i / AMX_SIDE * 2 + l / AMX_SIDE][l % AMX_SIDE][i % AMX_SIDE], 4);
    }
}
#else
INLINE void strip_amx(char *sums, const char *x, const skinny *s, const char *y, int64_t lanes, trine_dtype dtype,
                      unit_kind kind) {
    (void)sums, (void)x, (void)s, (void)y, (void)lanes, (void)dtype, (void)kind;
}
#endif

/* -------------------------------------------------------------------------------------------- Y's lanes consecutive */

/* The place of vector v of a strip: the last one is moved back to end with Y. */
INLINE int64_t vector_at(int64_t v, int64_t lanes, int side) {
    return (v + 1) * side <= lanes ? v * side : lanes - side;
}

/* Bytes of a row from which on the rows that follow are asked for, not what follows in the row. */
enum { LINE_LEAST = 32 };

/* Units [u, u + units) of `rows` lanes of X times `vectors` vectors of Y's lanes from vector v on;
 * sums of vector v are at v in any case. */
INLINE void across(char *sums, const char *x, const skinny *s, const char *y, int64_t v, int64_t lanes, int64_t u,
                   int64_t units, int rows, int vectors, trine_dtype dtype, unit_kind kind) {
    const int bytes = unit_bytes(kind), side = unit_lanes(kind), step = unit_depth(kind);
    const int64_t size = unit_element(dtype), along = s->y.along, line = s->strip * bytes, few = s->x_few,
                  size_all = (int64_t)vectors * side * size;
    const int64_t next =
        rows > 2 && size_all >= LINE_LEAST && s->p.k > (u + 2 * DEPTH) * step ? DEPTH * step * along : size_all;
    const int64_t last = (lanes + side - 1) / side - 1;
    int64_t at[8];
    sum t[ACROSS_HIGH][8], offset[8];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++) {
        at[j] = vector_at(v + j < last ? v + j : last, lanes, side) * size;
        offset[j] = (sum){ 0 };
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            t[i][j] = (sum){ 0 };
            if (u > 0 && v + j <= last) t[i][j] = sum_add(t[i][j], unit_load(sums + i * line + (v + j) * VB), kind);
        }
    }
    for (int64_t e = u; e < u + units; e++) {
        const char *row = y + e * step * along;
        const int64_t left = s->p.k - e * step;
        const bool whole = step == 1 || left >= step;
#pragma GCC unroll 8
        for (int j = 0; j < vectors; j++) {
            vi b;
            __builtin_prefetch(row + at[j] + next);
            if (whole) {
                b = unit_across(row + at[j], along, kind, dtype);
            } else {
                char part[VB] = { 0 };
                for (int64_t q = 0; q < left; q++)
                    memcpy(part + q * side * size, row + at[j] + q * along, (size_t)(side * size));
                b = unit_across(part, side * size, kind, dtype);
            }
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++)
                t[i][j] = sum_mac(t[i][j], unit_broadcast(x + (e * few + i) * bytes, kind), b, kind);
            if (unit_unsigned(kind)) offset[j] = sum_mac(offset[j], viset((int)0x80808080), b, kind);
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; j++)
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            if (v + j > last) break;
            if (kind == UNIT_I8) t[i][j].i -= offset[j].i;
            unit_store(sums + i * line + (v + j) * VB, sum_vector(t[i][j], kind));
        }
}

INLINE void strip_across(char *sums, const char *x, const skinny *s, const char *y, int64_t lanes, trine_dtype dtype,
                         unit_kind kind) {
    const int bytes = unit_bytes(kind), side = unit_lanes(kind), step = unit_depth(kind);
    const int64_t vectors = (lanes + side - 1) / side, line = s->strip * bytes, all = (s->p.k + step - 1) / step;
    for (int64_t u = 0; u < all || u == 0; u += DEPTH) {
        const int64_t units = all - u < DEPTH ? all - u : DEPTH;
        int64_t i = 0;
        if (skinny_high(s) && (ACROSS_WIDE > 1 || unit_element(dtype) >= 4))
            for (int64_t v = 0; v < vectors; v += ACROSS_WIDE, i = ACROSS_HIGH)
                across(sums, x, s, y, v, lanes, u, units, ACROSS_HIGH, ACROSS_WIDE, dtype, kind);
        for (; s->x_few - i >= 4; i += 4)
            for (int64_t v = 0; v < vectors; v += 3)
                across(sums + i * line, x + i * bytes, s, y, v, lanes, u, units, 4, 3, dtype, kind);
        for (; s->x_few - i >= 2; i += 2)
            for (int64_t v = 0; v < vectors; v += 5)
                across(sums + i * line, x + i * bytes, s, y, v, lanes, u, units, 2, 5, dtype, kind);
        for (; s->x_few - i >= 1; i += 1)
            for (int64_t v = 0; v < vectors; v += 8)
                across(sums + i * line, x + i * bytes, s, y, v, lanes, u, units, 1, 8, dtype, kind);
    }
    const int64_t moved = (vectors - 1) * side - vector_at(vectors - 1, lanes, side);
    for (int64_t i = 0; i < s->few && moved > 0; i++) {
        char *end = sums + i * line + (vectors - 1) * VB;
        memmove(end, end + moved * bytes, (size_t)((side - moved) * bytes));
    }
}

/* ------------------------------------------------------------------------------------------------------- the kernel */

/* Types that strip_tiles can take. */
INLINE bool skinny_tiles(trine_dtype dtype, unit_kind kind) {
    return dtype == TRINE_F32 || dtype == TRINE_F64 || (dtype == TRINE_BF16 && kind == UNIT_BF16 && !tile_amx(kind));
}

INLINE void strip(char *sums, char *x, bool unpack, const skinny *s, int64_t batch, int64_t first, int64_t lanes,
                  trine_dtype dtype, unit_kind kind) {
    const char *y = s->y.data + batch * s->y.batch + first * s->y.lane;
    if (unpack && s->tiles)
        x_pack(x, s, batch);
    else if (unpack && unit_float8(dtype) && s->x.dtype != dtype)
        x_unpack(x, s, batch, dtype == TRINE_E4M3 ? TRINE_E5M2 : TRINE_E4M3, kind);
    else if (unpack)
        x_unpack(x, s, batch, dtype, kind);
    if (s->y.across)
        strip_across(sums, x, s, y, lanes, dtype, kind);
    else if (tile_amx(kind) && !unit_float8(dtype) && s->tiles)
        strip_amx(sums, x, s, y, lanes, dtype, kind);
    else if (skinny_tiles(dtype, kind) && s->tiles)
        strip_tiles(sums, x, s, y, lanes, kind);
    else
        strip_dots(sums, x, s, y, lanes, dtype, kind);
}

static void strip_finish(const skinny *s, const char *sums, int64_t batch, int64_t first, int64_t lanes) {
    const int64_t bytes = unit_bytes(s->p.kind);
    target t = s->p.to;
    if (!s->swapped || lay_down(&t, s->p.n)) {
        finish(&t, sums, s->strip, &(block_place){ batch, 0, first, s->few, lanes });
        return;
    }
    for (int64_t j = 0; j < lanes; j++) {
        char row[FEW_MOST * 8 + VB] = { 0 };
        for (int64_t i = 0; i < s->few; i++) memcpy(row + i * bytes, sums + (i * s->strip + j) * bytes, (size_t)bytes);
        finish(&t, row, FEW_MOST, &(block_place){ batch, first + j, 0, 1, s->few });
    }
}

static const char *skinny_refuse(const trine_call *call) {
    const char *reason = product_refuse(call);
    if (reason) return reason;
    const skinny s = skinny_of(call);
    if (s.few > FEW_MOST) return "both m and n are above 64";
    if (s.few > FEW && (!s.tiles || tile_amx(s.p.kind) || s.x_bytes > cpu_of(call)->l2))
        return "both m and n are above 32, and packing pays";
    if (s.y.across && s.few > FEW_ACROSS)
        return "both m and n are above 8, and the larger operand is contiguous there: packing pays";
    if (s.y.across && s.many < unit_lanes(s.p.kind)) return "both m and n are less than a vector";
    return NULL;
}

static size_t skinny_workspace(const trine_call *call) {
    const skinny s = skinny_of(call);
    return (size_t)(s.x_bytes * s.team);
}

/* Task `index`; *unpacked is the batch whose X is at x. */
static void skinny_run(const skinny *s, int64_t index, char *x, int64_t *unpacked) {
    const int64_t batch = index / s->strips, first = index % s->strips * s->strip,
                  lanes = s->many - first < s->strip ? s->many - first : s->strip;
    const bool unpack = batch != *unpacked;
    _Alignas(64) char sums[SUMS * 8];
    *unpacked = batch;
    switch (s->y.dtype) {
    case TRINE_F32: strip(sums, x, unpack, s, batch, first, lanes, TRINE_F32, UNIT_F32); break;
    case TRINE_F16: strip(sums, x, unpack, s, batch, first, lanes, TRINE_F16, UNIT_F32); break;
    case TRINE_BF16:
        strip(sums, x, unpack, s, batch, first, lanes, TRINE_BF16, HAVE_DOTS ? UNIT_BF16 : UNIT_F32);
        break;
    case TRINE_E4M3:
        strip(sums, x, unpack, s, batch, first, lanes, TRINE_E4M3, HAVE_DOTS ? UNIT_BF16 : UNIT_F32);
        break;
    case TRINE_E5M2:
        strip(sums, x, unpack, s, batch, first, lanes, TRINE_E5M2, HAVE_DOTS ? UNIT_BF16 : UNIT_F32);
        break;
    case TRINE_F64: strip(sums, x, unpack, s, batch, first, lanes, TRINE_F64, UNIT_F64); break;
    default: strip(sums, x, unpack, s, batch, first, lanes, TRINE_I8, (unit_kind)UNIT_INTEGER); break;
    }
    strip_finish(s, sums, batch, first, lanes);
}

/* X's lanes are m or n, whichever are fewer. */
static void skinny_edges(const trine_call *call, trine_kernel_edges *edges) {
    const unit_kind kind = product_of(call).kind;
    static const int symbols[] = { MATMUL_DIM_M, MATMUL_DIM_N },
                     lanes[] = { 1, 2, 4, FEW_ACROSS, 16, FEW, FEW_MOST, LEAST_TILES, LEAST, SUMS };
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof lanes / sizeof lanes[0]; k++) trine_kernel_edge(edges, symbols[i], lanes[k]);
        trine_kernel_edge(edges, symbols[i], unit_lanes(kind));
    }
    product_edges(edges, kind);
    trine_kernel_edge(edges, MATMUL_DIM_K, (int64_t)unit_lanes(kind) * unit_depth(kind));
    trine_kernel_edge(edges, MATMUL_DIM_K, (int64_t)DEPTH * unit_depth(kind));
}

typedef struct skinny_job {
    const skinny *s;
    const trine_call *call;
} skinny_job;

/* A thread's X in the workspace, and at its end the batch that it is of. */
static char *skinny_x(const skinny *s, const trine_call *call, int thread) {
    return (char *)call->workspace + thread * s->x_bytes;
}
static int64_t *skinny_unpacked(const skinny *s, const trine_call *call, int thread) {
    return (int64_t *)(void *)(skinny_x(s, call, thread + 1) - SKINNY_NOTE);
}

static void skinny_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const skinny_job *job = context;
    int64_t *unpacked = skinny_unpacked(job->s, job->call, thread);
    tile_begin(job->s->p.kind);
    for (int64_t i = first; i < last; i++) skinny_run(job->s, i, skinny_x(job->s, job->call, thread), unpacked);
    tile_end(job->s->p.kind);
}

static trine_status skinny_launch(const trine_call *call) {
    const skinny s = skinny_of(call);
    const int64_t tasks = s.p.g * s.strips;
    const int slices = (int)(call->workspace_size / (size_t)s.x_bytes), team = s.team < slices ? s.team : slices;
    for (int thread = 0; thread < team; thread++) *skinny_unpacked(&s, call, thread) = -1;
    cpu_tasks(call, team, tasks, skinny_tasks, &(skinny_job){ &s, call });
    return TRINE_OK;
}

#endif
