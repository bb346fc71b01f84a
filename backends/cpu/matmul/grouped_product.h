/* SPDX-License-Identifier: Apache-2.0 */
/* Products of groups of rows on the CPU: rows of one group and columns of its matrix are a task, which packs them into
 * panels and multiplies these tile by tile as matmul does. How the matrix is packed is the op's own.
 *
 * The order of an element's sum follows from k and the level alone. */
#ifndef TRINE_CPU_GROUPED_PRODUCT_H
#define TRINE_CPU_GROUPED_PRODUCT_H

#include "grouped_offsets.h"
#include "backends/cpu/core/cpu.h"
#include "matmul_finish.h"
#include "matmul_tile.h"
#include "spec/matmul/grouped_places.h"

/* A part of k is such that a panel of w stays in L1. Rows and columns of a task, and rows that are packed at a time, at
 * most: w's panels, the rows' and the sums are to fit in L2. */
enum { PART_UNITS = VB == 64 ? 256 : 384, TASK_ROWS = 512, TASK_COLUMNS = 256, PACKED_ROWS = 96, AMX_STEP = 16 };

typedef struct grouped grouped;

typedef struct task {
    const grouped *a;
    char *x, *w, *sums, *lines, *own;
    int64_t g, first, rows, column, columns; /* of y */
    int64_t kept;                            /* the row of y whose task left something in `own`; -1: none */
} task;

struct grouped {
    const trine_call *call;
    const trine_tensor *y, *bias;             /* bias: NULL if absent, as are */
    const int32_t *offsets, *gather, *counts; /* gather, counts and */
    const float *row_scale;
    int64_t r, e, p, n, k, divide;
    unit_kind kind;
    view x;
    int64_t units, part, parts;   /* of k */
    int64_t columns, right, down; /* of a task; tasks along n and p */
    int64_t packed;               /* rows */
    int64_t x_bytes, w_bytes, sums_bytes, lines_bytes, slice;
    int32_t activation;
    double read; /* bytes of all matrices */
    /* Packs the task's columns of its group's matrix, of a part of k, into panels; and what it needs for that. */
    void (*pack_w)(const task *t, int64_t part);
    const void *weights;
    /* Tasks of so many rows at most go another way; NULL: none does. */
    void (*few)(task *t);
    int64_t few_rows;
};

static int64_t divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }

/* All but what is the op's own. */
static grouped grouped_of(const trine_call *call, const grouped_places *at, int64_t divide, int32_t activation) {
    const trine_tensor *x = &call->tensor[at->x], *gather = trine_call_given(call, at->gather),
                       *counts = trine_call_given(call, at->counts), *scale = trine_call_given(call, at->row_scale);
    const int64_t size = (int64_t)trine_dtype_size(x->dtype);
    grouped a = { .call = call,
                  .y = &call->tensor[at->y],
                  .bias = trine_call_given(call, at->bias),
                  .offsets = call->tensor[at->offsets].data,
                  .gather = gather ? gather->data : NULL,
                  .counts = counts ? counts->data : NULL,
                  .row_scale = scale ? scale->data : NULL,
                  .r = call->dim[at->r],
                  .e = call->dim[at->e],
                  .p = call->dim[at->p],
                  .n = call->dim[at->n],
                  .k = call->dim[at->k],
                  .divide = divide,
                  .kind = unit_of(x->dtype),
                  .x = { .data = x->data, .dtype = x->dtype, .lane = x->stride[0] * size, .along = size },
                  .activation = activation };
    const int64_t high = tile_rows(a.kind), wide = tile_columns(a.kind);
    a.units = divide_up(a.k, unit_depth(a.kind));
    a.part = cpu_round_up(divide_up(a.units, divide_up(a.units, PART_UNITS) + (a.units == 0)), AMX_STEP);
    a.parts = a.part > 0 ? divide_up(a.units, a.part) : 1;
    a.columns = cpu_round_up(a.n < TASK_COLUMNS ? a.n : TASK_COLUMNS, wide);
    a.right = divide_up(a.n, a.columns > 0 ? a.columns : 1), a.down = divide_up(a.p, TASK_ROWS);
    a.packed = cpu_round_up(a.p < PACKED_ROWS ? a.p : PACKED_ROWS, high);
    const int64_t rows = cpu_round_up(a.p < TASK_ROWS ? a.p : TASK_ROWS, high);
    a.x_bytes = cpu_round_up(panel_bytes(a.part, (int)high, a.kind) * (a.packed / high), 64);
    a.w_bytes = cpu_round_up(panel_bytes(a.part, (int)wide, a.kind) * (a.columns / wide), 64);
    a.sums_bytes = a.parts > 1 ? (rows + high) * a.columns * 4 : 0;
    a.lines_bytes = gather ? cpu_round_up(high * a.part * unit_depth(a.kind) * size, 64) : 0;
    a.slice = cpu_round_up(a.x_bytes + a.w_bytes + a.sums_bytes + a.lines_bytes, 256);
    return a;
}

/* Has a thread have so many bytes more, of the op's own. */
static inline void grouped_own(grouped *a, int64_t bytes) {
    a->slice = cpu_round_up(a->x_bytes + a->w_bytes + a->sums_bytes + a->lines_bytes + bytes, 256);
}

/* The row of x that row i of y is made of; -1: none. */
static int64_t source_of(const grouped *a, int64_t i) {
    if (!a->gather) return i;
    const int64_t from = a->gather[i];
    return from < 0 || from / a->divide >= a->r ? -1 : from / a->divide;
}

/* The elements and units of a part of k. */
static int64_t depth_of(const grouped *a, int64_t part) {
    const int64_t step = unit_depth(a->kind), left = a->k - part * a->part * step;
    return left < a->part * step ? left : a->part * step;
}
static int64_t units_of(const grouped *a, int64_t part) {
    const int64_t units = divide_up(depth_of(a, part), unit_depth(a->kind));
    return tile_amx(a->kind) ? cpu_round_up(units, AMX_STEP) : units;
}

/* Rows from `first` of y on; gathered ones are copied side by side first. */
static void pack_x(const task *t, int64_t first, int64_t rows, int64_t part) {
    const grouped *a = t->a;
    const int64_t high = tile_rows(a->kind), step = unit_depth(a->kind), depth = depth_of(a, part), size = a->x.along,
                  start = part * a->part * step * size;
    for (int64_t i = 0; i < rows; i += high) {
        const int64_t there = rows - i < high ? rows - i : high;
        view v = a->x;
        const char *from = v.data + (first + i) * v.lane + start;
        if (a->gather) {
            v.lane = depth * size;
            from = t->lines;
            for (int64_t l = 0; l < there && depth > 0; l++) {
                const int64_t row = source_of(a, first + i + l);
                if (row < 0)
                    memset(t->lines + l * v.lane, 0, (size_t)v.lane);
                else
                    memcpy(t->lines + l * v.lane, a->x.data + row * a->x.lane + start, (size_t)v.lane);
            }
        }
        panel_pack(t->x + i / high * panel_bytes(a->part, (int)high, a->kind), from, &v, there, depth,
                   units_of(a, part), true);
    }
}

/* One row of sums, from (row, column) of y on. */
INLINE void finish_one(const grouped *a, const float *sums, int64_t g, int64_t row, int64_t column, int64_t n,
                       trine_dtype T) {
    const trine_tensor *y = a->y, *bias = a->bias;
    const trine_dtype B = bias ? bias->dtype : TRINE_F32;
    char *to = (char *)y->data + row * y->stride[0] * (int64_t)vsize(T);
    const char *add = bias ? (const char *)bias->data + (g * bias->stride[0] + column) * (int64_t)vsize(B) : NULL;
    const bool nothing = source_of(a, row) < 0;
    for (int64_t j = 0; j < n; j += VL) {
        const int part = n - j < VL ? (int)(n - j) : VL;
        vf x = *(const vf_any *)(sums + j);
        if (add) x += load_part(add + j * (int64_t)vsize(B), B, part);
        if (a->activation) x = activate(x, a->activation);
        if (a->row_scale) x *= a->row_scale[row];
        if (nothing) x = vzero();
        if (part == VL)
            vstore(to, T, column + j, x);
        else
            vstoren(to, T, column + j, part, x);
    }
}

static void finish_tile(const task *t, const char *tile, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    const grouped *a = t->a;
    const int64_t wide = tile_columns(a->kind);
    for (int64_t i = 0; i < rows; i++)
        FOR_TYPE(a->y->dtype, finish_one, a, (const float *)(const void *)tile + i * wide, t->g, row + i, column,
                 columns);
}

/* All tiles of `rows` packed rows, from row `down` of the task on. */
INLINE void multiply(const task *t, int64_t down, int64_t rows, int64_t part, unit_kind kind) {
    const grouped *a = t->a;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = a->columns / wide,
                  units = units_of(a, part);
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = 0; j < t->columns; j += wide)
        for (int64_t i = 0; i < rows; i += high) {
            char *tile = a->parts > 1 ? t->sums + ((down + i) / high * tiles + j / wide) * high * wide * 4 : scratch;
            tile_multiply(tile, t->x + i / high * panel_bytes(a->part, (int)high, kind),
                          t->w + j / wide * panel_bytes(a->part, (int)wide, kind), units, part > 0, kind);
            if (part + 1 < a->parts) continue;
            finish_tile(t, tile, t->first + down + i, rows - i < high ? rows - i : high, t->column + j,
                        t->columns - j < wide ? t->columns - j : wide);
        }
}

/* Columns of rows that are not computed, [first, last) of y. */
static void clear_part(const task *t, int64_t first, int64_t last) {
    const trine_tensor *y = t->a->y;
    const int64_t size = (int64_t)vsize(y->dtype);
    for (int64_t i = first; i < last; i++)
        memset((char *)y->data + (i * y->stride[0] + t->column) * size, 0, (size_t)(t->columns * size));
}

/* Task `index`: most of those of a group are beyond its rows. */
static void run(task *t, int64_t index) {
    const grouped *a = t->a;
    t->g = index / (a->right * a->down);
    t->first = a->offsets[t->g] + index / a->right % a->down * TASK_ROWS, t->column = index % a->right * a->columns;
    const int64_t end = a->offsets[t->g + 1], columns = a->n - t->column, stop = t->first + TASK_ROWS,
                  last = end < stop ? end : stop,
                  counted = a->counts ? a->offsets[t->g] + (int64_t)a->counts[t->g] : last;
    t->rows = (counted < last ? counted : last) - t->first, t->columns = columns < a->columns ? columns : a->columns;
    if (t->first >= last) return;
    clear_part(t, t->first + (t->rows > 0 ? t->rows : 0), last);
    if (t->rows <= 0) return;
    if (a->few && t->rows <= a->few_rows) {
        a->few(t);
        return;
    }
    for (int64_t part = 0; part < a->parts; part++) {
        a->pack_w(t, part);
        for (int64_t down = 0; down < t->rows; down += a->packed) {
            const int64_t some = t->rows - down < a->packed ? t->rows - down : a->packed;
            pack_x(t, t->first + down, some, part);
            if (HAVE_DOTS && a->kind == UNIT_BF16)
                multiply(t, down, some, part, UNIT_BF16);
            else
                multiply(t, down, some, part, UNIT_F32);
        }
    }
}

static void run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const grouped *a = context;
    char *memory = (char *)a->call->workspace + thread * a->slice;
    task t = { .a = a, .x = memory, .w = memory + a->x_bytes, .sums = memory + a->x_bytes + a->w_bytes, .kept = -1 };
    t.lines = t.sums + a->sums_bytes, t.own = t.lines + a->lines_bytes;
    tile_begin(a->kind);
    for (int64_t i = first; i < last; i++) run(&t, i);
    tile_end(a->kind);
}

static int team_of(const grouped *a) {
    const double flops = 2.0 * (double)a->p * (double)a->n * (double)a->k;
    return cpu_team(a->call, a->e * a->right * a->down, (int64_t)fmin(fmax(a->read, flops / 4), 0x1p62));
}

static void clear_rows(const grouped *a, int64_t first, int64_t last) {
    const trine_tensor *y = a->y;
    const int64_t size = (int64_t)vsize(y->dtype);
    for (int64_t i = first; i < last; i++) memset((char *)y->data + i * y->stride[0] * size, 0, (size_t)(a->n * size));
}

static const char *grouped_refuse(const trine_call *call, const grouped_places *at, int64_t divide) {
    if (call->dim[at->p] > INT32_MAX) return "more than 2^31 - 1 rows";
    if (call->dim[at->e] > INT32_MAX) return "more than 2^31 - 1 groups";
    return call->dim[at->r] > INT32_MAX / divide && trine_call_given(call, at->gather)
               ? "more than 2^31 - 1 numbers to gather by"
               : NULL;
}

static size_t grouped_workspace(const grouped *a) { return (size_t)(a->slice * team_of(a)); }

static trine_status grouped_launch(const grouped *a, const char *op) {
    const trine_status status = grouped_offsets_ascend(a->call, op, a->offsets, a->e, a->p);
    if (status != TRINE_OK) return status;
    clear_rows(a, 0, a->offsets[0]);
    clear_rows(a, a->offsets[a->e], a->p);
    cpu_tasks(a->call, team_of(a), a->e * a->right * a->down, run_tasks, a);
    return TRINE_OK;
}

static void grouped_edges(const grouped *a, const grouped_places *at, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, at->n, tile_columns(a->kind));
    trine_kernel_edge(edges, at->n, TASK_COLUMNS);
    trine_kernel_edge(edges, at->p, tile_rows(a->kind));
    trine_kernel_edge(edges, at->p, PACKED_ROWS);
    trine_kernel_edge(edges, at->p, TASK_ROWS);
    trine_kernel_edge(edges, at->k, unit_depth(a->kind));
    trine_kernel_edge(edges, at->k, PART_UNITS * unit_depth(a->kind));
}

#endif
