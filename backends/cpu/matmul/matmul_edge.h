/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles at the edge of d, of which not all rows and columns are multiplied; and sums that are added later. */
#ifndef TRINE_CPU_MATMUL_EDGE_H
#define TRINE_CPU_MATMUL_EDGE_H

#include "matmul_tile.h"

INLINE sum sum_of(vi x, unit_kind kind) {
    if (kind == UNIT_F64) return (sum){ .d = (vd)x };
    if (kind == UNIT_F32 || kind == UNIT_BF16) return (sum){ .f = (vf)x };
    return (sum){ .i = (vu)x };
}

/* As tile_multiply_grids: the first `rows` rows, and `vectors` vectors of each. */
INLINE void tile_multiply_part(char *tile, unit_grid a, unit_grid b, int64_t units, bool accumulate, int rows,
                               int vectors, unit_kind kind) {
    enum { GROUP = 3, GROUPS = (ROWS + GROUP - 1) / GROUP };
    const char *from[GROUPS];
    sum s[ROWS][VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < GROUPS; i++) from[i] = a.data + i * GROUP * a.lane;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            s[i][j] = (sum){ 0 };
            if (accumulate) __builtin_prefetch(tile + (i * VECTORS + j) * VB);
        }
#pragma GCC unroll 4
    for (int64_t u = 0; u < units; u++) {
        vi x[VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) x[j] = unit_load(b.data + grid_vector(&b, j));
        if (LINES) {
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j += 64 / VB) __builtin_prefetch(b.ahead + b.vector[j]);
            b.ahead += b.ahead_step;
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const vi y = unit_broadcast(from[i / GROUP] + i % GROUP * a.lane, kind);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) s[i][j] = sum_mac(s[i][j], y, x[j], kind);
        }
#pragma GCC unroll 8
        for (int i = 0; i < GROUPS; i++) from[i] += a.along;
        b.data += b.along;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) {
            char *at = tile + (i * VECTORS + j) * VB;
            if (tile_offset(kind)) s[i][j].i -= (vu)unit_load(b.data + grid_vector(&b, j));
            if (accumulate) s[i][j] = sum_add(s[i][j], unit_load(at), kind);
            unit_store(at, sum_vector(s[i][j], kind));
        }
}

/* A tile at the edge of d: not all rows and vectors are multiplied. */
#define EDGE_VECTORS(rows) \
    do { \
        if (VECTORS > 2 && vectors == 1) \
            tile_multiply_part(tile, a, b, units, accumulate, rows, 1, kind); \
        else if (vectors < VECTORS) \
            tile_multiply_part(tile, a, b, units, accumulate, rows, VECTORS - 1, kind); \
        else \
            tile_multiply_part(tile, a, b, units, accumulate, rows, VECTORS, kind); \
    } while (0)
INLINE void edge(char *tile, unit_grid a, unit_grid b, int64_t units, bool accumulate, int64_t rows, int64_t vectors,
                 unit_kind kind) {
    enum { FOURTH = (ROWS + 3) / 4, HALF = (ROWS + 1) / 2, MOST = ROWS - ROWS / 4 };
    if (rows <= FOURTH)
        EDGE_VECTORS(FOURTH);
    else if (rows <= HALF)
        EDGE_VECTORS(HALF);
    else if (rows <= MOST)
        EDGE_VECTORS(MOST);
    else
        EDGE_VECTORS(ROWS);
}
#undef EDGE_VECTORS
static __attribute__((noinline)) void tile_edge(char *tile, const unit_grid *a, const unit_grid *b, int64_t units,
                                                bool accumulate, int64_t rows, int64_t vectors, unit_kind kind) {
    if (tile_amx(kind)) return;
    FOR_UNIT(kind, edge, tile, *a, *b, units, accumulate, rows, vectors);
}

#if defined(__AMX_TILE__)
/* As tile_multiply_amx: of the four squares of sums those above, or also those below (`low`), and likewise `right`. */
INLINE void amx_edge(char *tile, const char *a, unit_grid b, int64_t units, bool accumulate, bool low, bool right,
                     unit_kind kind) {
    enum { SQUARE = 1024, STEP = 2 * SQUARE, STRIDE = 2 * AMX_SIDE * 4, DOWN = AMX_SIDE * STRIDE };
    __asm__ volatile("" ::: "memory");
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (accumulate) {
        _tile_loadd(0, tile, STRIDE);
        _tile_loadd(1, tile + 64, STRIDE);
        _tile_loadd(2, tile + DOWN, STRIDE);
        _tile_loadd(3, tile + DOWN + 64, STRIDE);
    }
    for (int64_t u = 0; u < units; u += AMX_SIDE, a += STEP, b.data += AMX_SIDE * b.along) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b.data, 64);
        for (int i = 0; i < AMX_SIDE; i++) __builtin_prefetch(a + STEP + i * 64);
        amx_dot(0, 4, 6, kind);
        if (low) {
            for (int i = 0; i < AMX_SIDE; i++) __builtin_prefetch(a + STEP + SQUARE + i * 64);
            _tile_loadd(5, a + SQUARE, 64);
            amx_dot(2, 5, 6, kind);
        }
        if (right) {
            _tile_loadd(7, b.data + amx_right(&b), 64);
            amx_dot(1, 4, 7, kind);
        }
    }
    _tile_stored(0, tile, STRIDE);
    _tile_stored(1, tile + 64, STRIDE);
    _tile_stored(2, tile + DOWN, STRIDE);
    _tile_stored(3, tile + DOWN + 64, STRIDE);
}
#else
INLINE void amx_edge(char *tile, const char *a, unit_grid b, int64_t units, bool accumulate, bool low, bool right,
                     unit_kind kind) {
    (void)tile, (void)a, (void)b, (void)units, (void)accumulate, (void)low, (void)right, (void)kind;
}
#endif

#endif
