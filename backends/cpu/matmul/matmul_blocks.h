/* SPDX-License-Identifier: Apache-2.0 */
/* How products fall into tasks, and what of their operands a task packs at a time. */
#ifndef TRINE_CPU_MATMUL_BLOCKS_H
#define TRINE_CPU_MATMUL_BLOCKS_H

#include "matmul_lines.h"

/* Blocking. A part of k is such that a panel of b (24 KiB, 32 with AVX-512; 16 for AMX, which waits for whatever is not
 * in L1) stays in L1 while a's panels pass, read from L2; the parts of a task are summed in tiles. */
enum { PART_UNITS = VB == 64 ? 256 : 384, PART_UNITS_AMX = 128, UNITS_STEP = 16 };

/* Bytes of packed columns of b that all threads share, at most; panels that are packed at a time, by a task and for
 * all; row blocks from which on sharing pays; columns of d up to which packing a costs more than it brings. */
enum { SHARED_MOST = 64 << 20, PANELS = 4, PIECE_PANELS = 16, SHARED_LEAST = 2, DIRECT_MOST = 256 };

/* Columns that are multiplied in the time that packing an element takes, and how much sooner it is read where another
 * thread has packed it; elements that are packed in the time that threads wait for each other; units of k that are
 * multiplied in the time that a sum of a part is stored and added; bytes of sums of parts at most. */
enum { PACKING = 60, PACKING_AMX = 200, READING = 2, WAITING = 65536, ADDING = 32, SPREAD_MOST = 16 << 20 };

typedef struct blocking {
    int64_t units, part, parts; /* of k, in units */
    int64_t rows, columns;      /* of a task */
    int64_t down, right;        /* tasks in m and n */
    int64_t turn;               /* tasks in n whose b is packed once, for all threads; 0: each task packs its own */
    bool columns_shared;        /* b is packed once, for all threads */
    int64_t a_bytes, b_bytes, sums_bytes, slice;
    int64_t packed;            /* bytes of what is packed for all, and of the counts of what is ready */
    int64_t shared;            /* bytes of that, and of the sums of parts, and of the counts of those that are done */
    int64_t piece, piece_rows; /* columns, rows that are packed for all at a time */
    bool rows_shared;          /* a is packed once, for all threads */
    bool spread;               /* parts of k are tasks, and added when all are done */
    bool direct;               /* a is read where it is */
    bool lined;                /* and b */
    int team;
} blocking;

static inline int64_t part_units(unit_kind kind) { return tile_amx(kind) ? PART_UNITS_AMX : PART_UNITS; }

/* Bytes that are packed for all of each part. */
static inline int64_t shared_bytes(const blocking *b) {
    return b->turn * b->b_bytes + (b->rows_shared ? b->down * b->a_bytes : 0);
}

/* Whether parts of k may be summed apart and added afterwards: where they are added to the sums before them anyway, but
 * not where tiles go on from them. */
static inline bool may_spread(const product *p) { return p->g == 1 && !(tile_amx(p->kind) && p->kind == UNIT_BF16); }

/* Bytes of both operands packed. */
static inline double shared_most(const product *p, const blocking *b) {
    return (double)(p->m + p->n) * (double)b->part * (double)b->parts * unit_bytes(p->kind);
}

/* Splits d into blocks of at most `rows` rows and `elements` elements such that the last thread is done soonest. Where
 * blocks are few, a task is a part of k of one. Operands are packed once for all tasks, or by each. */
static inline void split(const trine_call *call, const product *p, blocking *b, int64_t most_rows, int64_t elements,
                         bool share) {
    const int64_t high = tile_rows(p->kind), wide = tile_columns(p->kind), tiles_down = divide_up(p->m, high),
                  tiles_right = divide_up(p->n, wide);
    const int threads = product_team(call, p, INT64_MAX);
    const int64_t tallest = most_rows / high > 1 ? most_rows / high : 1;
    const double packing = tile_amx(p->kind) ? PACKING_AMX : PACKING,
                 adding = b->part > 0 ? (double)ADDING / (double)b->part : 0,
                 wait = threads > 1 && p->k > 0 ? (double)WAITING / (double)p->k : 0, g = (double)p->g,
                 a_packing = g * packing * ((double)p->m / threads + wait),
                 b_packing = g * packing * ((double)p->n / threads + wait);
    const double sums = (double)(tiles_down * high) * (double)(tiles_right * wide) * (double)b->parts;
    const bool spread =
        share && threads > 1 && b->parts > 1 && may_spread(p) && sums * unit_bytes(p->kind) <= SPREAD_MOST;
    const bool all = share && !b->direct && shared_most(p, b) <= SHARED_MOST;
    double least = INFINITY;
    b->rows = high, b->columns = wide;
    for (int64_t down = divide_up(tiles_down, tallest); down <= tiles_down; down++) {
        const int64_t rows = divide_up(tiles_down, down) * high,
                      widest = elements / rows / wide > 1 ? elements / rows / wide : 1;
        const int64_t blocks = divide_up(p->m, rows) * p->g;
        bool more = false;
        for (int64_t right = divide_up(tiles_right, widest); right <= tiles_right; right++) {
            const int64_t columns = divide_up(tiles_right, right) * wide, tasks = blocks * divide_up(p->n, columns);
            const bool enough = p->g == 1 || tasks / p->g >= threads;
            const double area = (double)rows * (double)columns, of_a = b->direct ? 0 : packing * (double)rows,
                         of_b = b->lined ? 0 : packing * (double)columns, rounds = (double)divide_up(tasks, threads),
                         rounds_apart = (double)divide_up(tasks * b->parts, threads) / (double)b->parts;
            for (int once = 0; once < 4; once++) {
                const bool a_once = once & 1, b_once = once & 2;
                if (a_once && !(all && enough && right >= SHARED_LEAST)) continue;
                if (b_once && !(share && enough && down >= SHARED_LEAST && !b->lined)) continue;
                const double each = area + (a_once ? of_a / READING : of_a) + (b_once ? of_b / READING : of_b),
                             before = (a_once ? a_packing : 0) + (b_once ? b_packing : 0),
                             whole = before + rounds * each,
                             apart = before + packing * wait + rounds_apart * (each + adding * area),
                             time = spread && apart < whole ? apart : whole;
                if (time >= least) continue;
                least = time;
                b->rows = rows, b->columns = columns, b->spread = time < whole;
                b->rows_shared = a_once, b->columns_shared = b_once;
            }
            if (tasks >= 2 * threads || threads == 1) break;
            more = true;
        }
        if (!more) break;
    }
    b->down = divide_up(p->m, b->rows), b->right = divide_up(p->n, b->columns);
    b->team = product_team(call, p, p->g * b->down * b->right * (b->spread ? b->parts : 1));
}

/* Lanes of a piece, so that all threads have some: `blocks` blocks of `lanes` lanes are packed, in panels of `wide`. */
static inline int64_t piece_of(int64_t lanes, int64_t wide, int64_t blocks, int team) {
    int64_t panels = PIECE_PANELS;
    while (panels > 1 && blocks * divide_up(lanes, panels * wide) < 2 * team) panels /= 2;
    return panels * wide;
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
    b.direct = (p->a.dtype == TRINE_F32 || p->a.dtype == TRINE_F64) && !p->a.across && p->n <= DIRECT_MOST &&
               rows_apart(&p->a);
    b.lined = lines_direct(p);
    split(call, p, &b, rows, elements, share);
    b.a_bytes = cpu_round_up(panel_bytes(b.part, (int)high, p->kind) * (b.rows / high), 64);
    b.b_bytes = cpu_round_up(panel_bytes(b.part, (int)wide, p->kind) * (b.columns / wide), 64);
    b.sums_bytes = b.parts > 1 ? b.rows * b.columns * bytes : 0;
    if (b.columns_shared && b.b_bytes > 0) {
        b.turn = SHARED_MOST / (b.b_bytes * b.parts);
        if (b.turn > b.right) b.turn = b.right;
    }
    if (b.a_bytes == 0 || (b.turn > 0 && b.turn < b.right)) b.rows_shared = false;
    b.piece = piece_of(b.columns, wide, b.right * b.parts, b.team);
    b.piece_rows = piece_of(b.rows, high, b.down * b.parts, b.team);
    b.packed = cpu_round_up(b.parts * shared_bytes(&b) +
                                b.parts * (b.turn + (b.rows_shared ? b.down : 0)) * (int64_t)sizeof(int32_t),
                            4096);
    const int64_t panels = b.columns / wide < PANELS ? b.columns / wide : PANELS,
                  own = b.turn > 0 || b.lined ? 0 : panel_bytes(b.part, (int)wide, p->kind) * panels;
    if (b.turn > 0 && b.turn < b.right) b.spread = false;
    b.shared = b.packed;
    if (b.spread)
        b.shared += cpu_round_up(b.down * b.right * (b.parts * b.sums_bytes + (int64_t)sizeof(int32_t)), 4096);
    b.slice = cpu_round_up((b.rows_shared ? 0 : b.a_bytes) + (b.spread ? 0 : b.sums_bytes) + own, 4096);
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

/* Units of a part of k, as they are packed. */
static inline int64_t units_of(const blocking *b, const product *p, int64_t part) {
    const int64_t left = b->units - part * b->part, units = left < b->part ? left : b->part;
    return tile_amx(p->kind) ? cpu_round_up(units, AMX_SIDE) : units;
}

/* Packs lanes [first, first + count) of an operand for a part of k. */
static inline void pack(char *dst, const view *v, int64_t batch, int64_t first, int64_t count, int64_t lanes,
                        int64_t part, const blocking *b, const product *p, bool is_a) {
    const int64_t step = unit_depth(p->kind), width = is_a ? tile_rows(p->kind) : tile_columns(p->kind);
    const int64_t start = part * b->part,
                  depth = p->k - start * step < b->part * step ? p->k - start * step : b->part * step;
    const int64_t panel = panel_bytes(b->part, (int)width, p->kind), units = units_of(b, p, part);
    const char *src = v->data + batch * v->batch + first * v->lane + start * step * v->along;
    /* as memory has them: a few rows at a time, or whole columns */
    const int64_t most = v->across ? UNITS_STEP : units;
    for (int64_t i = 0; i < count && LINES && !is_a; i += width)
        lines_unpack(dst + i / width * panel, v, batch, first + i, lanes, start * step, depth, units);
    for (int64_t u = 0; u < units && !(LINES && !is_a); u += most) {
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
    char *memory = (char *)call->workspace + b->shared + thread * b->slice,
         *sums = memory + (b->rows_shared ? 0 : b->a_bytes), *bs = sums + (b->spread ? 0 : b->sums_bytes);
    return (task){ .p = p, .b = b, .a = memory, .sums = sums, .bs = bs };
}

#endif
