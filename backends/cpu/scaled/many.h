/* SPDX-License-Identifier: Apache-2.0 */
/* Products with scales of blocks for many rows of a: rows of d by columns of it are a task, which makes floats of its
 * elements, packs them into panels and multiplies these tile by tile as matmul does; the tile of a part of k is then
 * scaled and added to the task's sums.
 *
 * The order of an element's sum follows from k, the blocks and the level alone. */
#ifndef TRINE_CPU_SCALED_MANY_H
#define TRINE_CPU_SCALED_MANY_H

#include "values.h"
#include "backends/cpu/matmul/matmul_tile.h"

/* Rows and columns of a task, and rows that are packed at a time, at most; elements and parts of k that are worked on
 * together: a task's panels and sums stay in L2. */
enum { MANY_ROWS = 336, MANY_COLUMNS = 256, MANY_PACKED = 84, MANY_DEPTH = 128, MANY_PARTS = 32 };

typedef struct many {
    int64_t high, wide, rows, columns, packed; /* of a tile; of a task at most */
    int64_t a_floats, b_floats, lines_floats, sums_floats, a_scale_floats, b_scale_floats, bytes; /* of a task */
} many;

typedef struct many_task {
    const many *g;
    const scaled *s;
    float *a, *b, *lines, *sums, *a_scale, *b_scale;
    int64_t row, rows, column, columns; /* of d */
} many_task;

static int64_t many_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Of m rows and n columns in all. */
static many many_of(int64_t m, int64_t n) {
    many g = { .high = tile_rows(UNIT_F32), .wide = tile_columns(UNIT_F32) };
    const int64_t down = m > MANY_ROWS ? (m + MANY_ROWS - 1) / MANY_ROWS : 1;
    g.columns = cpu_round_up(many_least(n, MANY_COLUMNS), g.wide);
    g.rows = cpu_round_up((m + down - 1) / down, g.high);
    g.packed = cpu_round_up(many_least(m, MANY_PACKED), g.high);
    g.a_floats = g.packed * MANY_DEPTH, g.b_floats = g.columns * MANY_DEPTH;
    g.lines_floats = cpu_round_up(g.high > g.wide ? g.high : g.wide, VL) * MANY_DEPTH;
    g.sums_floats = g.rows * g.columns;
    g.a_scale_floats = cpu_round_up(MANY_PARTS * g.packed, 16), g.b_scale_floats = MANY_PARTS * g.columns;
    g.bytes = cpu_round_up(
        (g.a_floats + g.b_floats + g.lines_floats + g.sums_floats + g.a_scale_floats + g.b_scale_floats) * 4, 256);
    return g;
}

/* A task that has its memory, but no place. */
static many_task many_task_in(const many *g, const scaled *s, void *memory) {
    many_task t = { .g = g, .s = s, .a = memory };
    t.b = t.a + g->a_floats, t.lines = t.b + g->b_floats, t.sums = t.lines + g->lines_floats;
    t.a_scale = t.sums + g->sums_floats, t.b_scale = t.a_scale + g->a_scale_floats;
    return t;
}

/* The parts [first, last) of k that are worked on together. */
static int64_t many_last(const scaled *s, int64_t first) {
    int64_t last = first;
    while (last < s->parts && last - first < MANY_PARTS &&
           s->part[last].at + s->part[last].length - s->part[first].at <= MANY_DEPTH)
        last++;
    return last;
}

/* Packs lanes of an operand from `first` on, and their scales: `scale` has a line of `lanes` for each part. */
INLINE void many_pack(float *to, float *scale, const many_task *t, const side *from, int64_t first, int64_t lanes,
                      int64_t all, const part *p, int64_t parts, bool is_a) {
    const int wide = is_a ? tile_rows(UNIT_F32) : tile_columns(UNIT_F32);
    const int64_t at = p[0].at, depth = p[parts - 1].at + p[parts - 1].length - at;
    const view v = { .dtype = TRINE_F32, .lane = MANY_DEPTH * 4, .along = 4 };
    for (int64_t j = 0; j < lanes; j += wide) {
        const int64_t there = many_least(lanes - j, wide);
        for (int64_t l = 0; l < there; l++) {
            float own[MANY_PARTS + VL];
            elements(t->lines + l * MANY_DEPTH, from, first + j + l, at, depth);
            const int32_t column = is_a ? p[0].a : p[0].b;
            scales_of(own, from, first + j + l, column, (is_a ? p[parts - 1].a : p[parts - 1].b) - column + 1);
            for (int64_t q = 0; q < parts; q++) scale[q * all + j + l] = own[(is_a ? p[q].a : p[q].b) - column];
        }
        for (int64_t l = there; l < wide; l++)
            for (int64_t q = 0; q < parts; q++) scale[q * all + j + l] = 0;
        /* Of a whole panel whole vectors are read, of which it takes its lanes. */
        panel_pack_as((char *)(to + j * MANY_DEPTH), (const char *)t->lines, &v,
                      there < wide ? there : cpu_round_up(wide, VL), depth, depth, is_a, false, wide, TRINE_F32,
                      UNIT_F32);
    }
}

/* sums += tile times the scales of its rows and columns. */
INLINE void add_scaled(float *sums, const float *tile, const float *a_scale, const float *b_scale) {
#pragma GCC unroll 4
    for (int j = 0; j < VECTORS; j++) {
        const vf b = *(const vf_any *)(b_scale + j * VL);
        for (int i = 0; i < ROWS; i++) {
            vf_any *const at = (vf_any *)(sums + (i * VECTORS + j) * VL);
            *at = vfma(*(const vf_any *)(tile + (i * VECTORS + j) * VL), b * vset(a_scale[i]), *at);
        }
    }
}

static void many_multiply(const many_task *t, int64_t down, int64_t rows, const part *p, int64_t parts) {
    const many *g = t->g;
    const int64_t high = g->high, wide = g->wide, tiles = g->columns / wide;
    _Alignas(64) float scratch[TILE_BYTES / 4];
    for (int64_t j = 0; j < t->columns; j += wide)
        for (int64_t i = 0; i < rows; i += high) {
            float *sums = t->sums + ((down + i) / high * tiles + j / wide) * high * wide;
            for (int64_t q = 0; q < parts; q++) {
                const int64_t at = p[q].at - p[0].at;
                tile_multiply((char *)scratch, (const char *)(t->a + i * MANY_DEPTH + at * high),
                              (const char *)(t->b + j * MANY_DEPTH + at * wide), p[q].length, false, UNIT_F32);
                add_scaled(sums, scratch, t->a_scale + q * g->packed + i, t->b_scale + q * g->columns + j);
            }
        }
}

static void many_sums(const many_task *t) {
    const many *g = t->g;
    const scaled *s = t->s;
    memset(t->sums, 0, (size_t)g->sums_floats * sizeof *t->sums);
    for (int64_t p = 0, end; p < s->parts; p = end) {
        end = many_last(s, p);
        many_pack(t->b, t->b_scale, t, &s->b, t->column, t->columns, g->columns, s->part + p, end - p, false);
        for (int64_t down = 0; down < t->rows; down += g->packed) {
            const int64_t some = many_least(t->rows - down, g->packed);
            many_pack(t->a, t->a_scale, t, &s->a, t->row + down, some, g->packed, s->part + p, end - p, true);
            many_multiply(t, down, some, s->part + p, end - p);
        }
    }
}

/* The sums of row i of the task from its column j on, a multiple of a tile's columns, of which there are. */
static float *many_row(const many_task *t, int64_t i, int64_t j) {
    const many *g = t->g;
    return t->sums + ((i / g->high * (g->columns / g->wide) + j / g->wide) * g->high + i % g->high) * g->wide;
}

#endif
