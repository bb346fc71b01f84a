/* SPDX-License-Identifier: Apache-2.0 */
/* How products fall into tasks, and what of their operands a task packs at a time. */
#ifndef TRINE_CPU_MATMUL_BLOCKS_H
#define TRINE_CPU_MATMUL_BLOCKS_H

#include "matmul_product.h"

/* Blocking. A part of k is such that a panel of b (24 KiB, 32 with AVX-512) stays in L1 while a's panels pass, read
 * from L2; the parts of a task are summed in tiles. */
enum { PART_UNITS = VB == 64 ? 256 : 384, PART_UNITS_AMX = 512, UNITS_STEP = 16, TASK_SIDE = 1024, TASK_LEAST = 96 };

typedef struct blocking {
    int64_t units, part, parts; /* of k, in units */
    int64_t rows, columns;      /* of a task */
    int64_t down, right;        /* tasks in m and n */
    int64_t group;              /* rows of a packed at a time, to fit in L2 */
    int64_t a_bytes, b_bytes, sums_bytes, slice;
    int team;
} blocking;

static inline int64_t divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }

/* Splits d into as few tasks as caches allow, then further until the threads share them evenly. */
static inline void split(const trine_call *call, const product *p, blocking *b) {
    const int64_t rows = tile_rows(p->kind), columns = tile_columns(p->kind);
    const int threads = product_team(call, p, INT64_MAX);
    b->down = divide_up(p->m, TASK_SIDE), b->right = divide_up(p->n, TASK_SIDE);
    for (;;) {
        b->rows = cpu_round_up(divide_up(p->m, b->down), rows),
        b->columns = cpu_round_up(divide_up(p->n, b->right), columns);
        const int64_t tasks = p->g * b->down * b->right;
        if (tasks % threads == 0 || tasks > 4 * threads || (b->rows <= TASK_LEAST && b->columns <= TASK_LEAST)) break;
        if (b->rows >= b->columns)
            b->down++;
        else
            b->right++;
    }
    b->down = divide_up(p->m, b->rows), b->right = divide_up(p->n, b->columns);
    b->team = product_team(call, p, p->g * b->down * b->right);
}

static inline blocking block(const trine_call *call, const product *p) {
    const int64_t rows = tile_rows(p->kind), columns = tile_columns(p->kind), bytes = unit_bytes(p->kind);
    blocking b = { .units = divide_up(p->k, unit_depth(p->kind)) };
    const int64_t most = tile_amx(p->kind) ? PART_UNITS_AMX : PART_UNITS;
    b.part = cpu_round_up(divide_up(b.units, divide_up(b.units, most) + (b.units == 0)), UNITS_STEP);
    if (b.part > 0) b.parts = divide_up(b.units, b.part);
    if (b.parts == 0) b.parts = 1;
    split(call, p, &b);
    const int64_t l2 = cpu_of(call)->l2 > 0 ? cpu_of(call)->l2 : 262144;
    b.group = l2 / 2 / ((b.part ? b.part : 1) * bytes) / rows * rows;
    if (b.group < rows) b.group = rows;
    if (b.group > b.rows) b.group = b.rows;
    b.a_bytes = cpu_round_up(panel_bytes(b.part, (int)rows, p->kind) * (b.group / rows), 64);
    b.b_bytes = cpu_round_up(panel_bytes(b.part, (int)columns, p->kind) * (b.columns / columns), 64);
    b.sums_bytes = b.parts > 1 ? b.rows * b.columns * bytes : 0;
    b.slice = cpu_round_up(b.a_bytes + b.b_bytes + b.sums_bytes, 256);
    return b;
}

/* A thread's memory, and the task it is at. */
typedef struct task {
    const product *p;
    const blocking *b;
    char *a, *bs, *sums;
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
    for (int64_t u = 0; u < units; u += most)
        for (int64_t i = 0; i < count; i += width)
            panel_pack(dst + i / width * panel + u * width * unit_bytes(p->kind),
                       src + i * v->lane + u * step * v->along, v, lanes - first - i, depth - u * step,
                       units - u < most ? units - u : most, is_a);
    for (int64_t i = 0; i < count && !is_a && tile_offset(p->kind); i += width)
        panel_offset(dst + i / width * panel, units, UNIT_I8);
}

static inline task task_of(const trine_call *call, const product *p, const blocking *b, int thread) {
    char *memory = (char *)call->workspace + thread * b->slice;
    return (task){ .p = p, .b = b, .a = memory, .bs = memory + b->a_bytes, .sums = memory + b->a_bytes + b->b_bytes };
}

#endif
