/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of the packed matrix product: panels of units, and the tile of sums that two panels give.
 *
 * A panel holds tile_rows (of a) or tile_columns (of b) lanes: for each unit in k, one unit per lane. For AMX it holds
 * squares of 16 lanes x 16 units instead, tile registers: each of a's lanes, or of b's units, together. */
#ifndef TRINE_CPU_MATMUL_TILE_H
#define TRINE_CPU_MATMUL_TILE_H

#include "matmul_pairs.h"

/* Sums in registers: rows x vectors, and room for b, a broadcast, a product. WIDE_TILES: fewer loads, with AVX-512. */
#if VB == 64 && !defined(WIDE_TILES)
enum { ROWS = 14, VECTORS = 2 };
#elif VB == 64 || defined(__aarch64__)
enum { ROWS = 8, VECTORS = 3 };
#else
enum { ROWS = 6, VECTORS = 2 };
#endif
enum { AMX_SIDE = 16, TILE_BYTES = HAVE_TILES ? 4096 : ROWS * VECTORS * VB };

INLINE bool tile_amx(unit_kind kind) { return HAVE_TILES && (kind == UNIT_BF16 || kind == UNIT_I8); }
INLINE int tile_rows(unit_kind kind) { return tile_amx(kind) ? 2 * AMX_SIDE : ROWS; }
INLINE int tile_columns(unit_kind kind) { return tile_amx(kind) ? 2 * AMX_SIDE : VECTORS * unit_lanes(kind); }

/* Does b's panel end with 128 times the sum of each lane, to be taken off again? */
INLINE bool tile_offset(unit_kind kind) { return unit_unsigned(kind) && !tile_amx(kind); }

/* Bytes of a panel of `lanes` lanes. */
INLINE int64_t panel_bytes(int64_t units, int lanes, unit_kind kind) {
    return (units + (tile_offset(kind) && lanes == tile_columns(kind) ? 1 : 0)) * lanes * unit_bytes(kind);
}

/* An operand: `lane` is m of a, n of b. Strides in bytes. With LINES b is blocks of 16 columns by 4 of k: `along` is
 * from one to the next in k, `group` in n. */
typedef struct view {
    const char *data;
    trine_dtype dtype;
    int64_t batch, lane, along;
    bool across; /* neighbours in memory are neighbours in lane, not in k */
    int64_t group;
} view;

/* ---------------------------------------------------------------------------------------------------------- packing */

/* A square of units: r[i] holds unit i of all lanes if `across`, else all units of lane i. */
INLINE void square_load(vi *r, const char *src, int64_t lane, int64_t along, bool across, unit_kind kind,
                        trine_dtype dtype) {
#pragma GCC unroll 16
    for (int i = 0; i < unit_lanes(kind); i++)
        r[i] = across ? unit_across(src + i * unit_depth(kind) * along, along, kind, dtype)
                      : unit_along(src + i * lane, kind, dtype);
}

/* Copies what exists of a square at the operand's edge, lines of `line` elements, into a dense one that is zero
 * elsewhere. */
static void square_copy(char *square, size_t size, const char *src, int64_t stride, int64_t lines, int64_t elements,
                        int64_t line) {
    memset(square, 0, size);
    for (int64_t i = 0; i < lines; i++) memcpy(square + i * line, src + i * stride, (size_t)elements);
}

INLINE void square_store(char *dst, const vi *r, int64_t units, int lane, int lanes, bool amx, bool flip,
                         unit_kind kind) {
    const int side = unit_lanes(kind), bytes = unit_bytes(kind), kept = lanes - lane < side ? lanes - lane : side;
    const vi sign = viset(flip ? (int)0x80808080 : 0);
    if (amx) {
        for (int i = 0; i < side; i++) unit_store(dst + (lane + i) * VB, r[i]);
        return;
    }
    /* of fewer lanes than a vector's, what is too much is overwritten by the next */
    const int64_t last = (units < side ? units : side) - 1;
#pragma GCC unroll 16
    for (int i = 0; i < side; i++) {
        const vi x = r[i] ^ sign;
        if (lanes < side && i < last)
            unit_store(dst + i * lanes * bytes, x);
        else if (i <= last)
            memcpy(dst + (i * lanes + lane) * bytes, &x, (size_t)(kept * bytes));
        else
            break;
    }
}

/* Packs a panel of `lanes` lanes, of which `readable` exist from src on, perhaps more than the panel takes; and `depth`
 * elements of k, padded to `units`. */
INLINE void panel_pack_as(char *dst, const char *src, const view *v, int64_t readable, int64_t depth, int64_t units,
                          bool is_a, bool across, int lanes, trine_dtype dtype, unit_kind kind) {
    const int side = unit_lanes(kind), step = unit_depth(kind), size = unit_element(dtype);
    const bool amx = tile_amx(kind), by_lane = amx && is_a, flip = tile_offset(kind) && is_a;
    for (int64_t u = 0; u < units; u += side)
        for (int first = 0; first < lanes; first += side) {
            const int64_t left = depth - u * step < side * step ? depth - u * step : side * step,
                          there = readable - first < side ? readable - first : side;
            const char *from = src + u * step * v->along + first * v->lane;
            int64_t lane = v->lane, along = v->along;
            _Alignas(64) char square[VB * VB / 4];
            if (left < side * step || there < side) {
                const int line = across ? side * size : side * step * size;
                const int64_t lines = across ? left : there, elements = across ? there : left;
                square_copy(square, sizeof square, from, across ? along : lane, elements > 0 ? lines : 0,
                            elements * size, line);
                from = square;
                lane = across ? size : line, along = across ? line : size;
            }
            vi r[VL];
            square_load(r, from, lane, along, across, kind, dtype);
            if (across == by_lane) unit_transpose(r, kind);
            square_store(dst + u * lanes * unit_bytes(kind), r, units - u, first, lanes, amx, flip, kind);
        }
}

INLINE void panel_pack_dtype(char *dst, const char *src, const view *v, int64_t readable, int64_t depth, int64_t units,
                             bool is_a, trine_dtype dtype, unit_kind kind) {
    if (is_a && v->across)
        panel_pack_as(dst, src, v, readable, depth, units, true, true, tile_rows(kind), dtype, kind);
    else if (is_a)
        panel_pack_as(dst, src, v, readable, depth, units, true, false, tile_rows(kind), dtype, kind);
    else if (v->across)
        panel_pack_as(dst, src, v, readable, depth, units, false, true, tile_columns(kind), dtype, kind);
    else
        panel_pack_as(dst, src, v, readable, depth, units, false, false, tile_columns(kind), dtype, kind);
}

static inline void panel_pack(char *dst, const char *src, const view *v, int64_t readable, int64_t depth, int64_t units,
                              bool is_a) {
    switch (v->dtype) {
    case TRINE_F32: panel_pack_dtype(dst, src, v, readable, depth, units, is_a, TRINE_F32, UNIT_F32); break;
    case TRINE_F16: panel_pack_dtype(dst, src, v, readable, depth, units, is_a, TRINE_F16, UNIT_F32); break;
    case TRINE_BF16:
        panel_pack_dtype(dst, src, v, readable, depth, units, is_a, TRINE_BF16, HAVE_DOTS ? UNIT_BF16 : UNIT_F32);
        break;
    case TRINE_E4M3:
        panel_pack_dtype(dst, src, v, readable, depth, units, is_a, TRINE_E4M3, HAVE_DOTS ? UNIT_BF16 : UNIT_F32);
        break;
    case TRINE_E5M2:
        panel_pack_dtype(dst, src, v, readable, depth, units, is_a, TRINE_E5M2, HAVE_DOTS ? UNIT_BF16 : UNIT_F32);
        break;
    case TRINE_F64: panel_pack_dtype(dst, src, v, readable, depth, units, is_a, TRINE_F64, UNIT_F64); break;
    default: panel_pack_dtype(dst, src, v, readable, depth, units, is_a, TRINE_I8, (unit_kind)UNIT_INTEGER); break;
    }
}

/* Ends a panel of b with what tile_multiply takes off again. */
INLINE void panel_offset(char *panel, int64_t units, unit_kind kind) {
    const int columns = tile_columns(kind), side = unit_lanes(kind);
    for (int lane = 0; lane < columns; lane += side) {
        sum s = { 0 };
        for (int64_t u = 0; u < units; u++)
            s = sum_mac(s, viset((int)0x80808080), unit_load(panel + (u * columns + lane) * 4), kind);
        unit_store(panel + (units * columns + lane) * 4, sum_vector(s, kind));
    }
}

/* ------------------------------------------------------------------------------------------------------ multiplying */

/* A panel of b. */
INLINE unit_grid panel_grid(const char *b, unit_kind kind) {
    const int bytes = unit_bytes(kind), apart = tile_amx(kind) ? AMX_SIDE * 64 : VB;
    return (unit_grid){
        .data = b, .lane = bytes, .along = tile_columns(kind) * bytes, .vector = { 0, apart, 2 * apart }, .ahead = b
    };
}

/* From a square of units of b to that of the next 16 lanes. */
INLINE int64_t amx_right(const unit_grid *b) { return LINES ? b->vector[1] : AMX_SIDE * 64; }

/* Before and after a thread's tiles. */
#if defined(__AMX_TILE__)
INLINE void tile_begin(unit_kind kind) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = { .palette = 1 };
    for (int i = 0; i < 8; i++) config.bytes[i] = 64, config.rows[i] = AMX_SIDE;
    if (tile_amx(kind)) _tile_loadconfig(&config);
}
INLINE void tile_end(unit_kind kind) {
    if (tile_amx(kind)) _tile_release();
}

#define amx_dot(to, a, b, kind) \
    do { \
        if ((kind) == UNIT_BF16) \
            _tile_dpbf16ps(to, a, b); \
        else \
            _tile_dpbssd(to, a, b); \
    } while (0)

/* Tile registers 0..3: the sums, 2 x 2; 4, 5: a; 6, 7: b. */
INLINE void tile_multiply_amx(char *tile, const char *a, unit_grid b, int64_t units, bool accumulate, unit_kind kind) {
    enum { SQUARE = 1024, STEP = 2 * SQUARE, AHEAD = STEP, STRIDE = 2 * AMX_SIDE * 4, DOWN = AMX_SIDE * STRIDE };
    __asm__ volatile("" ::: "memory"); /* GCC does not know that _tile_loadd reads what was packed */
    if (accumulate) {
        _tile_loadd(0, tile, STRIDE);
        _tile_loadd(1, tile + 64, STRIDE);
        _tile_loadd(2, tile + DOWN, STRIDE);
        _tile_loadd(3, tile + DOWN + 64, STRIDE);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t u = 0; u < units; u += AMX_SIDE, a += STEP, b.data += AMX_SIDE * b.along) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b.data, 64);
        for (int i = 0; i < AMX_SIDE; i++) __builtin_prefetch(a + AHEAD + i * 64);
        amx_dot(0, 4, 6, kind);
        _tile_loadd(7, b.data + amx_right(&b), 64);
        amx_dot(1, 4, 7, kind);
        for (int i = 0; i < AMX_SIDE; i++) __builtin_prefetch(a + AHEAD + SQUARE + i * 64);
        _tile_loadd(5, a + SQUARE, 64);
        amx_dot(2, 5, 6, kind);
        amx_dot(3, 5, 7, kind);
    }
    _tile_stored(0, tile, STRIDE);
    _tile_stored(1, tile + 64, STRIDE);
    _tile_stored(2, tile + DOWN, STRIDE);
    _tile_stored(3, tile + DOWN + 64, STRIDE);
}
#else
INLINE void tile_begin(unit_kind kind) { (void)kind; }
INLINE void tile_end(unit_kind kind) { (void)kind; }
INLINE void tile_multiply_amx(char *tile, const char *a, unit_grid b, int64_t units, bool accumulate, unit_kind kind) {
    (void)tile, (void)a, (void)b, (void)units, (void)accumulate, (void)kind;
}
#endif

/* tile = [tile +] a b, by pairs of rows and columns. */
INLINE void tile_multiply_pairs(char *tile, unit_grid a, unit_grid b, int64_t units, bool accumulate, unit_kind kind) {
    sum s[PAIR_ROWS][PAIR_COLUMNS];
    pairs_multiply(s, a, b, units, ROWS / 2, VECTORS, kind);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < VECTORS; j++) {
            char *at = tile + (i * VECTORS + j) * VB;
            const vi x = pairs_vector(s, i, j, kind);
            sum whole = { .i = (vu)x };
            if (kind == UNIT_BF16) whole.f = (vf)x;
            unit_store(at, accumulate ? sum_vector(sum_add(whole, unit_load(at), kind), kind) : x);
        }
}

/* Floats that the sums of a tile are, times a factor, in rows `row` bytes apart; NULL: they are sums of the tile. */
typedef struct tile_target {
    char *data;
    int64_t row;
    float factor;
} tile_target;

/* tile = [tile +] a b, of operands packed or as they lie in memory; of UNIT_F32 it may go where `to` says instead. */
INLINE void tile_multiply_into(char *tile, tile_target to, unit_grid a, unit_grid b, int64_t units, bool accumulate,
                               unit_kind kind) {
    if (HAVE_PAIRS && pairs_fit(a, kind)) {
        tile_multiply_pairs(tile, a, b, units, accumulate, kind);
        return;
    }
    enum { GROUP = 3, GROUPS = (ROWS + GROUP - 1) / GROUP };
    const char *from[GROUPS];
    sum s[ROWS][VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < GROUPS; i++) from[i] = a.data + i * GROUP * a.lane;
    for (int i = 0; i < ROWS && kind == UNIT_F32 && to.data; i++)
        for (int j = 0; j < VECTORS * VB; j += 64) __builtin_prefetch(to.data + i * to.row + j, 1);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < VECTORS; j++) {
            s[i][j] = (sum){ 0 };
            if (accumulate) __builtin_prefetch(tile + (i * VECTORS + j) * VB);
        }
#pragma GCC unroll 4
    for (int64_t u = 0; u < units; u++) {
        vi x[VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < VECTORS; j++) x[j] = unit_load(b.data + grid_vector(&b, j));
        if (LINES) {
#pragma GCC unroll 4
            for (int j = 0; j < VECTORS; j += 64 / VB) __builtin_prefetch(b.ahead + b.vector[j]);
            b.ahead += b.ahead_step;
        }
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) {
            const vi y = unit_broadcast(from[i / GROUP] + i % GROUP * a.lane, kind);
#pragma GCC unroll 4
            for (int j = 0; j < VECTORS; j++) s[i][j] = sum_mac(s[i][j], y, x[j], kind);
        }
#pragma GCC unroll 8
        for (int i = 0; i < GROUPS; i++) from[i] += a.along;
        b.data += b.along;
    }
    if (kind == UNIT_F32 && to.data) {
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
            for (int j = 0; j < VECTORS; j++) {
                vf x = s[i][j].f;
                if (accumulate) x += *(const vf_any *)(tile + (i * VECTORS + j) * VB);
                *(vf_any *)(to.data + i * to.row + j * VB) = x * to.factor;
            }
        return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (int j = 0; j < VECTORS; j++) {
            char *at = tile + (i * VECTORS + j) * VB;
            if (tile_offset(kind)) s[i][j].i -= (vu)unit_load(b.data + grid_vector(&b, j));
            if (accumulate) s[i][j] = sum_add(s[i][j], unit_load(at), kind);
            unit_store(at, sum_vector(s[i][j], kind));
        }
}

INLINE void tile_multiply_grids(char *tile, unit_grid a, unit_grid b, int64_t units, bool accumulate, unit_kind kind) {
    tile_multiply_into(tile, (tile_target){ 0 }, a, b, units, accumulate, kind);
}

/* The same of packed operands. */
INLINE void tile_multiply_panels(char *tile, tile_target to, const char *a, const char *b, int64_t units,
                                 bool accumulate, unit_kind kind) {
    const int bytes = unit_bytes(kind);
    tile_multiply_into(tile, to, (unit_grid){ a, bytes, ROWS * bytes }, panel_grid(b, kind), units, accumulate, kind);
}

/* tile = [tile +] a b; a tile is dense, tile_rows x tile_columns sums. */
INLINE void tile_multiply(char *tile, const char *a, const char *b, int64_t units, bool accumulate, unit_kind kind) {
    if (tile_amx(kind))
        tile_multiply_amx(tile, a, panel_grid(b, kind), units, accumulate, kind);
    else
        tile_multiply_panels(tile, (tile_target){ 0 }, a, b, units, accumulate, kind);
}

#endif
