/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_scaled on the CPU. Few rows of a: matmul_scaled_few.h. Otherwise rows of d by columns of it are a task, which
 * makes floats of its elements, packs them into panels and multiplies these tile by tile as matmul does; the tile of a
 * part of k is then scaled and added to the task's sums.
 *
 * The order of an element's sum follows from k, the blocks and the level alone. */
#include "matmul_scaled_few.h"
#include "backends/cpu/matmul/matmul_tile.h"

/* Rows and columns of a task, and rows that are packed at a time, at most; elements and parts of k that are worked on
 * together: a task's panels and sums stay in L2. */
enum { TASK_ROWS = 336, TASK_COLUMNS = 256, PACKED_ROWS = 84, DEPTH = 128, PARTS = 32 };

typedef struct many {
    scaled s;
    int64_t high, wide, columns, rows, right, down; /* of a tile; of a task; tasks along n and m */
    int64_t packed, a_floats, b_floats, lines_floats, sums_floats, a_scale_floats, b_scale_floats, parts_bytes, slice;
    int team;
} many;

typedef struct task {
    const many *g;
    float *a, *b, *lines, *sums, *a_scale, *b_scale;
    int64_t row, rows, column, columns; /* of d */
} task;

static int64_t divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }
static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

static many many_of(const trine_call *call) {
    many g = { .s = scaled_of(call) };
    const scaled *s = &g.s;
    g.high = tile_rows(UNIT_F32), g.wide = tile_columns(UNIT_F32);
    g.right = divide_up(s->n, TASK_COLUMNS), g.down = divide_up(s->m, TASK_ROWS);
    g.columns = cpu_round_up(least_of(s->n, TASK_COLUMNS), g.wide);
    g.rows = cpu_round_up(divide_up(s->m, g.down > 0 ? g.down : 1), g.high);
    g.down = divide_up(s->m, g.rows > 0 ? g.rows : 1);
    g.packed = cpu_round_up(least_of(s->m, PACKED_ROWS), g.high);
    g.a_floats = g.packed * DEPTH, g.b_floats = g.columns * DEPTH;
    g.lines_floats = cpu_round_up(g.high > g.wide ? g.high : g.wide, VL) * DEPTH;
    g.sums_floats = g.rows * g.columns;
    g.a_scale_floats = cpu_round_up(PARTS * g.packed, 16), g.b_scale_floats = PARTS * g.columns;
    g.parts_bytes = cpu_round_up(s->parts * (int64_t)sizeof(part), 256);
    g.slice = cpu_round_up(
        (g.a_floats + g.b_floats + g.lines_floats + g.sums_floats + g.a_scale_floats + g.b_scale_floats) * 4, 256);
    const double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    g.team = cpu_team(call, g.right * g.down, (int64_t)fmin(flops / 4, 0x1p62));
    g.s.part = call->workspace;
    return g;
}

/* The parts [first, last) of k that are worked on together. */
static int64_t last_part(const scaled *s, int64_t first) {
    int64_t last = first;
    while (last < s->parts && last - first < PARTS &&
           s->part[last].at + s->part[last].length - s->part[first].at <= DEPTH)
        last++;
    return last;
}

/* Packs lanes of an operand from `first` on, and their scales: `scale` has a line of `lanes` for each part. */
INLINE void pack(float *to, float *scale, const task *t, const side *from, int64_t first, int64_t lanes, int64_t all,
                 const part *p, int64_t parts, bool is_a) {
    const int wide = is_a ? tile_rows(UNIT_F32) : tile_columns(UNIT_F32);
    const int64_t at = p[0].at, depth = p[parts - 1].at + p[parts - 1].length - at;
    const view v = { .dtype = TRINE_F32, .lane = DEPTH * 4, .along = 4 };
    for (int64_t j = 0; j < lanes; j += wide) {
        const int64_t there = least_of(lanes - j, wide);
        for (int64_t l = 0; l < there; l++) {
            float own[PARTS + VL];
            elements(t->lines + l * DEPTH, from, first + j + l, at, depth);
            const int32_t column = is_a ? p[0].a : p[0].b;
            scales_of(own, from, first + j + l, column, (is_a ? p[parts - 1].a : p[parts - 1].b) - column + 1);
            for (int64_t q = 0; q < parts; q++) scale[q * all + j + l] = own[(is_a ? p[q].a : p[q].b) - column];
        }
        for (int64_t l = there; l < wide; l++)
            for (int64_t q = 0; q < parts; q++) scale[q * all + j + l] = 0;
        /* Of a whole panel whole vectors are read, of which it takes its lanes. */
        panel_pack_as((char *)(to + j * DEPTH), (const char *)t->lines, &v,
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

static void multiply(const task *t, int64_t down, int64_t rows, const part *p, int64_t parts) {
    const many *g = t->g;
    const int64_t high = g->high, wide = g->wide, tiles = g->columns / wide;
    _Alignas(64) float scratch[TILE_BYTES / 4];
    for (int64_t j = 0; j < t->columns; j += wide)
        for (int64_t i = 0; i < rows; i += high) {
            float *sums = t->sums + ((down + i) / high * tiles + j / wide) * high * wide;
            for (int64_t q = 0; q < parts; q++) {
                const int64_t at = p[q].at - p[0].at;
                tile_multiply((char *)scratch, (const char *)(t->a + i * DEPTH + at * high),
                              (const char *)(t->b + j * DEPTH + at * wide), p[q].length, false, UNIT_F32);
                add_scaled(sums, scratch, t->a_scale + q * g->packed + i, t->b_scale + q * g->columns + j);
            }
        }
}

static void finish_task(const task *t) {
    const many *g = t->g;
    const int64_t high = g->high, wide = g->wide, tiles = g->columns / wide;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j += wide)
            finish_sums(&g->s, t->sums + ((i / high * tiles + j / wide) * high + i % high) * wide, t->row + i,
                        t->column + j, least_of(t->columns - j, wide));
}

static void run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const many *g = context;
    const scaled *s = &g->s;
    task t = { .g = g, .a = (float *)(void *)((char *)s->call->workspace + g->parts_bytes + thread * g->slice) };
    t.b = t.a + g->a_floats, t.lines = t.b + g->b_floats, t.sums = t.lines + g->lines_floats;
    t.a_scale = t.sums + g->sums_floats, t.b_scale = t.a_scale + g->a_scale_floats;
    for (int64_t index = first; index < last; index++) {
        t.row = index / g->right * g->rows, t.column = index % g->right * TASK_COLUMNS;
        t.rows = least_of(s->m - t.row, g->rows), t.columns = least_of(s->n - t.column, TASK_COLUMNS);
        memset(t.sums, 0, (size_t)g->sums_floats * sizeof *t.sums);
        for (int64_t p = 0, end; p < s->parts; p = end) {
            end = last_part(s, p);
            pack(t.b, t.b_scale, &t, &s->b, t.column, t.columns, g->columns, s->part + p, end - p, false);
            for (int64_t down = 0; down < t.rows; down += g->packed) {
                const int64_t some = least_of(t.rows - down, g->packed);
                pack(t.a, t.a_scale, &t, &s->a, t.row + down, some, g->packed, s->part + p, end - p, true);
                multiply(&t, down, some, s->part + p, end - p);
            }
        }
        finish_task(&t);
    }
}

static void run_many(const trine_call *call) {
    const many g = many_of(call);
    list_parts(&g.s, g.s.part, 1);
    cpu_tasks(call, g.team, g.right * g.down, run_tasks, &g);
}

/* --------------------------------------------------------------------------------------------------------- the call */

static const char *refuse(const trine_call *call) {
    const trine_dtype b = call->type[MATMUL_SCALED_TYPE_B];
    if ((b == TRINE_E4M3 || b == TRINE_E5M2) && call->dim[MATMUL_SCALED_DIM_P] != call->dim[MATMUL_SCALED_DIM_Q])
        return "b of two elements in a byte that take 8 bits";
    return call->dim[MATMUL_SCALED_DIM_P] > INT32_MAX / 2 ? "rows of more than 2^30 bytes" : NULL;
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const scaled s = scaled_of(call);
    if (few_takes(&s)) {
        const few f = few_of(call);
        return (size_t)few_bytes(&f);
    }
    const many g = many_of(call);
    return (size_t)(g.parts_bytes + g.team * g.slice);
}

static trine_status launch(const trine_call *call) {
    const scaled s = scaled_of(call);
    if (few_takes(&s))
        run_few(call);
    else
        run_many(call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, SIDE);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, FEW);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, PACKED_ROWS);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_M, TASK_ROWS);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, STRIP);
    trine_kernel_edge(edges, MATMUL_SCALED_DIM_N, TASK_COLUMNS);
}

CPU_KERNELS(matmul_scaled) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
