/* SPDX-License-Identifier: Apache-2.0 */
/* How products fall into tasks, and what of their operands a task packs at a time. */
#ifndef TRINE_CPU_MATMUL_BLOCKS_H
#define TRINE_CPU_MATMUL_BLOCKS_H

#include "matmul_product.h"

/* Blocking. A part of k is such that a panel of b (24 KiB, 32 with AVX-512; 16 for AMX, which waits for whatever is not
 * in L1) stays in L1 while a's panels pass, read from L2; the parts of a task are summed in tiles. */
enum { PART_UNITS = VB == 64 ? 256 : 384, PART_UNITS_AMX = 128, UNITS_STEP = 16 };

/* Bytes of packed columns of b that all threads share, at most; panels of b that a thread packs at a time; row blocks
 * from which on sharing pays; columns of d up to which packing a costs more than it brings. */
enum { SHARED_MOST = 64 << 20, PANELS = 4, SHARED_LEAST = 2, DIRECT_MOST = 256 };

typedef struct blocking {
    int64_t units, part, parts; /* of k, in units */
    int64_t rows, columns;      /* of a task */
    int64_t down, right;        /* tasks in m and n */
    int64_t turn;               /* tasks in n whose b is packed once, for all threads; 0: each task packs its own */
    int64_t a_bytes, b_bytes, sums_bytes, slice;
    int64_t shared; /* bytes of what is packed for all, and of the counts of what is ready */
    bool direct;    /* a is read where it is */
    int team;
} blocking;

static inline int64_t divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }
static inline int64_t part_units(unit_kind kind) { return tile_amx(kind) ? PART_UNITS_AMX : PART_UNITS; }

/* Splits d into blocks of at most `rows` rows and `elements` elements such that the last thread is done soonest.
 * Packing an element takes about as long as multiplying it with a row of a tile. */
static inline void split(const trine_call *call, const product *p, blocking *b, int64_t most_rows, int64_t elements) {
    const int64_t high = tile_rows(p->kind), wide = tile_columns(p->kind), tiles_down = divide_up(p->m, high),
                  tiles_right = divide_up(p->n, wide);
    const int threads = product_team(call, p, INT64_MAX);
    const int64_t tallest = most_rows / high > 1 ? most_rows / high : 1;
    double least = INFINITY;
    b->rows = high, b->columns = wide;
    for (int64_t down = divide_up(tiles_down, tallest); down <= tiles_down; down++) {
        const int64_t rows = divide_up(tiles_down, down) * high,
                      widest = elements / rows / wide > 1 ? elements / rows / wide : 1;
        const int64_t blocks = divide_up(p->m, rows) * p->g;
        bool more = false;
        for (int64_t right = divide_up(tiles_right, widest); right <= tiles_right; right++) {
            const int64_t columns = divide_up(tiles_right, right) * wide, tasks = blocks * divide_up(p->n, columns);
            const double rounds = (double)divide_up(tasks, threads),
                         time = rounds * ((double)rows * (double)columns + (double)wide * (double)(rows + columns));
            if (time < least) least = time, b->rows = rows, b->columns = columns;
            if (tasks >= 4 * threads || threads == 1) break;
            more = true;
        }
        if (!more) break;
    }
    b->down = divide_up(p->m, b->rows), b->right = divide_up(p->n, b->columns);
    b->team = product_team(call, p, p->g * b->down * b->right);
}

static inline blocking block(const trine_call *call, const product *p, bool share) {
    const int64_t high = tile_rows(p->kind), wide = tile_columns(p->kind), bytes = unit_bytes(p->kind),
                  l2 = cpu_of(call)->l2 > 0 ? cpu_of(call)->l2 : 262144;
    blocking b = { .units = divide_up(p->k, unit_depth(p->kind)) };
    const int64_t most = part_units(p->kind);
    b.part = cpu_round_up(divide_up(b.units, divide_up(b.units, most) + (b.units == 0)), UNITS_STEP);
    if (b.part > 0) b.parts = divide_up(b.units, b.part);
    if (b.parts == 0) b.parts = 1;
    /* AMX is so fast that sums must stay in L2 beside a's panels. */
    const int64_t lane = (b.part ? b.part : 1) * bytes, rows = l2 / (tile_amx(p->kind) ? 4 : 2) / lane,
                  elements = (tile_amx(p->kind) ? l2 / 2 : 4 * l2) / bytes;
    split(call, p, &b, rows, elements);
    b.direct = (p->a.dtype == TRINE_F32 || p->a.dtype == TRINE_F64) && !p->a.across && p->n <= DIRECT_MOST &&
               rows_apart(&p->a);
    b.a_bytes = cpu_round_up(panel_bytes(b.part, (int)high, p->kind) * (b.rows / high), 64);
    b.b_bytes = cpu_round_up(panel_bytes(b.part, (int)wide, p->kind) * (b.columns / wide), 64);
    b.sums_bytes = b.parts > 1 ? b.rows * b.columns * bytes : 0;
    if (share && b.b_bytes > 0 && b.down >= SHARED_LEAST && (p->g == 1 || b.down * b.right >= b.team)) {
        b.turn = SHARED_MOST / (b.b_bytes * b.parts);
        if (b.turn > b.right) b.turn = b.right;
        b.shared = cpu_round_up(b.turn * b.parts * (b.b_bytes + (int64_t)sizeof(int32_t)), 4096);
    }
    const int64_t panels = b.columns / wide < PANELS ? b.columns / wide : PANELS,
                  own = b.turn > 0 ? 0 : panel_bytes(b.part, (int)wide, p->kind) * panels;
    b.slice = cpu_round_up(b.a_bytes + b.sums_bytes + own, 4096);
    return b;
}

/* A thread's memory, and the task it is at. */
typedef struct task {
    const product *p;
    const blocking *b;
    char *a, *sums, *bs;
    int64_t batch, row, column, rows, columns; /* of d */
} task;

static inline void task_begin(task *t, int64_t index) {
    const product *p = t->p;
    const blocking *b = t->b;
    t->batch = index / (b->down * b->right);
    t->row = index % b->down * b->rows, t->column = index / b->down % b->right * b->columns;
    t->rows = p->m - t->row < b->rows ? p->m - t->row : b->rows,
    t->columns = p->n - t->column < b->columns ? p->n - t->column : b->columns;
}

/* Memory that is asked for while something else is done: `lines` pieces of `bytes` bytes, which may lie on pages of
 * their own, where the hardware foresees little. */
typedef struct ahead {
    const char *data;
    int64_t lines, apart, bytes, at;
} ahead;

/* Asks for the next `count` cache lines. */
static inline void ask(ahead *next, int64_t count) {
    for (; count > 0 && next->lines > 0; count--) {
        __builtin_prefetch(next->data + next->at, 0, 2);
        if ((next->at += 64) < next->bytes) continue;
        next->data += next->apart;
        next->at = 0;
        next->lines--;
    }
}
static inline int64_t ahead_lines(const ahead *next) { return next->lines * divide_up(next->bytes, 64); }

/* `count` lanes of an operand from `first` on, of a part of k. */
static inline ahead ahead_of(const view *v, int64_t batch, int64_t first, int64_t count, int64_t part,
                             const blocking *b, const product *p) {
    const int64_t start = part * b->part * unit_depth(p->kind), left = p->k - start,
                  depth = b->part * unit_depth(p->kind) < left ? b->part * unit_depth(p->kind) : left;
    const char *data = v->data + batch * v->batch + first * v->lane + start * v->along;
    if (count <= 0) return (ahead){ 0 };
    return v->across ? (ahead){ data, depth, v->along, count * v->lane, 0 }
                     : (ahead){ data, count, v->lane, depth * v->along, 0 };
}

/* Packs lanes [first, first + count) of an operand for a part of k. */
static inline void pack(char *dst, const view *v, int64_t batch, int64_t first, int64_t count, int64_t lanes,
                        int64_t part, const blocking *b, const product *p, bool is_a) {
    const int64_t step = unit_depth(p->kind), width = is_a ? tile_rows(p->kind) : tile_columns(p->kind);
    const int64_t start = part * b->part,
                  depth = p->k - start * step < b->part * step ? p->k - start * step : b->part * step;
    const int64_t panel = panel_bytes(b->part, (int)width, p->kind);
    int64_t units = divide_up(depth, step);
    if (tile_amx(p->kind)) units = cpu_round_up(units, AMX_SIDE);
    const char *src = v->data + batch * v->batch + first * v->lane + start * step * v->along;
    /* as memory has them: a few rows at a time, or whole columns */
    const int64_t most = v->across ? UNITS_STEP : units;
    for (int64_t u = 0; u < units; u += most) {
        if (v->across && u + most < units)
            ask(&(ahead){ src + (u + most) * step * v->along, most * step, v->along, count * v->lane, 0 }, INT64_MAX);
        for (int64_t i = 0; i < count; i += width) {
            if (!v->across && i + width < count)
                ask(&(ahead){ src + (i + width) * v->lane, width, v->lane, depth * v->along, 0 }, INT64_MAX);
            panel_pack(dst + i / width * panel + u * width * unit_bytes(p->kind),
                       src + i * v->lane + u * step * v->along, v, lanes - first - i, depth - u * step,
                       units - u < most ? units - u : most, is_a);
        }
    }
    for (int64_t i = 0; i < count && !is_a && tile_offset(p->kind); i += width)
        panel_offset(dst + i / width * panel, units, UNIT_I8);
}

static inline task task_of(const trine_call *call, const product *p, const blocking *b, int thread) {
    char *memory = (char *)call->workspace + b->shared + thread * b->slice;
    return (
        task){ .p = p, .b = b, .a = memory, .sums = memory + b->a_bytes, .bs = memory + b->a_bytes + b->sums_bytes };
}

#endif
