/* SPDX-License-Identifier: Apache-2.0 */
/* Products by tasks, which are blocks of d: matmul, and matmul_packed, whose b may be read where it is. */
#ifndef TRINE_CPU_MATMUL_TASKS_H
#define TRINE_CPU_MATMUL_TASKS_H

#include "matmul_blocks.h"
#include "matmul_edge.h"

/* Rows of a task from `row` on, of a part of k. */
static inline unit_grid rows_at(const task *t, int64_t row, int64_t part) {
    const view *a = &t->p->a;
    return (unit_grid){ a->data + t->batch * a->batch + (t->row + row) * a->lane + part * t->b->part * a->along,
                        a->lane, a->along };
}

/* A tile's columns from `column` of the task on, which are read where they are or at `panel`; and, with LINES, as its
 * rows `tile` of `tiles` are multiplied, a share of the lines of the columns that follow asked for. */
INLINE unit_grid columns_at(const task *t, const char *panel, int64_t column, int64_t part, unit_kind kind) {
    const product *p = t->p;
    const int64_t k = part * t->b->part * unit_depth(kind);
    if (!LINES) return panel_grid(panel, kind);
    unit_grid b = t->b->lined ? lines_grid(&p->b, t->batch, t->column + column, k, kind) : panel_grid(panel, kind);
    if (t->b->turn == 0 && column + tile_columns(kind) < t->columns)
        b.ahead = lines_at(&p->b, t->batch, t->column + column + tile_columns(kind), k);
    return b;
}
INLINE void columns_ask(unit_grid *b, const task *t, int64_t tile, int64_t tiles, int64_t units, unit_kind kind) {
    const trine_dtype dtype = t->p->b.dtype;
    const int64_t line = lines_bytes(dtype) * unit_depth(kind) / lines_deep(dtype);
    if (!LINES) return;
    b->ahead_step = line / tiles;
    b->ahead += tile * units * b->ahead_step;
}

/* All tiles of columns [from, to) of a task: a's panels are at t->a, these columns' at t->bs. Meanwhile `next` is asked
 * for, `each` lines with every tile. */
INLINE void multiply(const task *t, int64_t from, int64_t to, int64_t part, ahead *next, int64_t each, unit_kind kind) {
    const product *p = t->p;
    const blocking *b = t->b;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = b->rows / high, bytes = unit_bytes(kind),
                  tile_bytes = high * wide * bytes;
    const int64_t panel = panel_bytes(b->part, (int)wide, kind);
    const bool more = part > 0 && !b->spread;
    int64_t units = b->units - part * b->part < b->part ? b->units - part * b->part : b->part;
    if (tile_amx(kind)) units = cpu_round_up(units, AMX_SIDE);
    const bool whole = kind == UNIT_F32 && !b->spread && part + 1 == b->parts && target_plain(&p->to);
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = from; j < to; j += wide) {
        const unit_grid right = columns_at(t, t->bs + (j - from) / wide * panel, j, part, kind);
        const int64_t columns = t->columns - j < wide ? t->columns - j : wide;
        for (int64_t i = 0; i < t->rows; i += high) {
            const char *left = t->a + i / high * panel_bytes(b->part, (int)high, kind);
            const int64_t count = t->rows - i < high ? t->rows - i : high;
            char *tile = b->parts > 1 ? t->sums + (j / wide * tiles + i / high) * tile_bytes : scratch;
            ask(next, each);
            tile_target put = { 0 };
            if (whole && count == high && columns == wide) put = product_put(p, t->batch, t->row + i, t->column + j);
            if (tile_amx(kind)) {
                const bool low = count > AMX_SIDE, beside = columns > AMX_SIDE;
                if (more) /* the sums of the tile that follows */
                    for (int64_t at = 0; at < tile_bytes; at += 64) __builtin_prefetch(tile + tile_bytes + at);
                if (low && beside)
                    tile_multiply_amx(tile, left, right, units, more, kind);
                else
                    amx_edge(tile, left, right, units, more, low, beside, kind);
            } else {
                const bool direct = (kind == UNIT_F32 || kind == UNIT_F64) && b->direct && count == high;
                const unit_grid x = direct ? rows_at(t, i, part) : (unit_grid){ left, bytes, high * bytes };
                unit_grid y = right;
                columns_ask(&y, t, i / high, divide_up(t->rows, high), units, kind);
                if (count < high || columns <= wide - unit_lanes(kind))
                    tile_edge(tile, &x, &y, units, more, count, divide_up(columns, unit_lanes(kind)), kind);
                else if (direct)
                    tile_multiply_into(tile, put, x, y, units, more, kind);
                else
                    tile_multiply_into(tile, put, (unit_grid){ left, bytes, high * bytes }, y, units, more, kind);
            }
            if (b->spread || part + 1 < b->parts || put.data) continue;
            finish(&p->to, tile, wide, &(block_place){ t->batch, t->row + i, t->column + j, count, columns });
        }
    }
}

/* The sums of a task's parts, which threads have stored apart, added in their order. */
INLINE void gather(const task *t, char *sums, int64_t apart, unit_kind kind) {
    const blocking *b = t->b;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = b->rows / high,
                  tile_bytes = high * wide * unit_bytes(kind);
    for (int64_t j = 0; j < t->columns; j += wide)
        for (int64_t i = 0; i < t->rows; i += high) {
            char *tile = sums + (j / wide * tiles + i / high) * tile_bytes;
            const int64_t count = t->rows - i < high ? t->rows - i : high,
                          columns = t->columns - j < wide ? t->columns - j : wide;
            for (int64_t at = 0; at < count * wide * unit_bytes(kind); at += VB) {
                sum s = sum_of(unit_load(tile + at), kind);
                for (int64_t part = 1; part < b->parts; part++)
                    s = sum_add(s, unit_load(tile + part * apart + at), kind);
                unit_store(tile + at, sum_vector(s, kind));
            }
            finish(&t->p->to, tile, wide, &(block_place){ t->batch, t->row + i, t->column + j, count, columns });
        }
}

/* What the threads of a call do together: of a batch, b->turn columns of tasks, or all. First the pieces that pack what
 * is packed for all, then the tasks, which wait for the pieces that they need. These have begun by then, since work is
 * taken in order. */
typedef struct tasks_job {
    const trine_call *call;
    const product *p;
    const blocking *b;
    int64_t batch, first, columns, packing; /* columns of tasks; pieces that pack */
} tasks_job;

/* What is packed for all: the columns of tasks of b, the rows of tasks of a. */
static inline int64_t job_blocks(const tasks_job *job, bool is_a) {
    return is_a ? (job->b->rows_shared ? job->b->down : 0) : job->b->turn > 0 ? job->columns : 0;
}
static inline char *job_packed(const tasks_job *job, int64_t block, int64_t part, bool is_a) {
    const blocking *b = job->b;
    return (char *)job->call->workspace + (is_a ? b->turn * b->parts * b->b_bytes : 0) +
           (block * b->parts + part) * (is_a ? b->a_bytes : b->b_bytes);
}
static inline int32_t *job_ready(const tasks_job *job, int64_t block, int64_t part, bool is_a) {
    const blocking *b = job->b;
    return (int32_t *)(void *)((char *)job->call->workspace + b->parts * shared_bytes(b)) +
           ((is_a ? b->turn : 0) + block) * b->parts + part;
}

/* Pieces of a part of a block. */
static inline int64_t job_pieces(const blocking *b, bool is_a) {
    return is_a ? divide_up(b->rows, b->piece_rows) : divide_up(b->columns, b->piece);
}
/* Of a part of all blocks. */
static inline int64_t job_packing(const tasks_job *job) {
    return job_blocks(job, false) * job_pieces(job->b, false) + job_blocks(job, true) * job_pieces(job->b, true);
}

static void job_pack(const tasks_job *job, int64_t index) {
    const product *p = job->p;
    const blocking *b = job->b;
    const int64_t each = job_packing(job), part = index / each, of_b = job_blocks(job, false) * job_pieces(b, false);
    const bool is_a = index % each >= of_b;
    const int64_t place = index % each - (is_a ? of_b : 0), pieces = job_pieces(b, is_a), block = place / pieces,
                  size = is_a ? b->rows : b->columns, most = is_a ? b->piece_rows : b->piece,
                  lanes = is_a ? p->m : p->n, start = ((is_a ? 0 : job->first) + block) * size,
                  first = place % pieces * most, width = is_a ? tile_rows(p->kind) : tile_columns(p->kind);
    int64_t count = lanes - start < size ? lanes - start : size;
    count = count - first < most ? count - first : most;
    if (count > 0)
        pack(job_packed(job, block, part, is_a) + first / width * panel_bytes(b->part, (int)width, p->kind),
             is_a ? &p->a : &p->b, job->batch, start + first, count, lanes, part, b, p, is_a);
    __atomic_fetch_add(job_ready(job, block, part, is_a), 1, __ATOMIC_RELEASE);
}

static void job_wait(const tasks_job *job, int64_t block, int64_t part, bool is_a) {
    enum { SPINS = 4096 };
    const int32_t *ready = job_ready(job, block, part, is_a);
    const int64_t pieces = job_pieces(job->b, is_a);
    for (int spins = 0; __atomic_load_n(ready, __ATOMIC_ACQUIRE) < pieces; spins++)
        if (spins > SPINS) sched_yield();
}

/* Has columns [j, j + columns) of a task packed at t->bs, and returns what will be wanted next: the panels after the
 * first, or the columns after these. */
static ahead columns_ready(task *t, const tasks_job *job, int64_t j, int64_t columns, int64_t part) {
    const product *p = t->p;
    const blocking *b = t->b;
    if (b->lined) return (ahead){ 0 };
    if (b->turn > 0) {
        const int64_t wide = tile_columns(p->kind), panel = panel_bytes(b->part, (int)wide, p->kind),
                      column = t->column / b->columns - job->first;
        job_wait(job, column, part, false);
        t->bs = job_packed(job, column, part, false);
        return (ahead){ t->bs + panel, 1, 0, (divide_up(columns, wide) - 1) * panel, 0 };
    }
    const int64_t left = t->columns - j - columns;
    pack(t->bs, &p->b, t->batch, t->column + j, columns, p->n, part, b, p, false);
    if (LINES) return (ahead){ 0 };
    return ahead_of(&p->b, t->batch, t->column + j + columns, left < columns ? left : columns, part, b, p);
}

/* Has the rows of a task packed at t->a, but those that are read where they are. */
static void rows_ready(task *t, const tasks_job *job, int64_t part) {
    const product *p = t->p;
    const blocking *b = t->b;
    const int64_t high = tile_rows(p->kind), direct = b->direct ? t->rows / high * high : 0;
    if (b->rows_shared) {
        job_wait(job, t->row / b->rows, part, true);
        t->a = job_packed(job, t->row / b->rows, part, true);
    } else if (direct < t->rows) {
        pack(t->a + direct / high * panel_bytes(b->part, (int)high, p->kind), &p->a, t->batch, t->row + direct,
             t->rows - direct, p->m, part, b, p, true);
    }
}

static void run_part(task *t, const tasks_job *job, int64_t part) {
    const product *p = t->p;
    const blocking *b = t->b;
    /* columns that lie side by side are packed several panels at a time, for short pieces of rows come slowly */
    const int64_t wide = tile_columns(p->kind), high = tile_rows(p->kind),
                  width = b->turn > 0 ? t->columns : (p->b.across ? PANELS : 1) * wide;
    const int64_t tiles = divide_up(t->rows, high);
    rows_ready(t, job, part);
    for (int64_t j = 0; j < t->columns; j += width) {
        const int64_t columns = t->columns - j < width ? t->columns - j : width;
        ahead next = columns_ready(t, job, j, columns, part);
        FOR_UNIT(p->kind, multiply, t, j, j + columns, part, &next,
                 divide_up(ahead_lines(&next), tiles * divide_up(columns, wide)));
    }
}

/* A part of a task of which each thread has some: whoever ends the last one adds them up. */
static void run_spread(task *t, const tasks_job *job, int64_t index) {
    const blocking *b = t->b;
    const int64_t count = b->down * b->right, place = index % count, part = index / count;
    char *sums = (char *)job->call->workspace + b->packed + place * b->sums_bytes;
    int32_t *done = (int32_t *)(void *)((char *)job->call->workspace + b->packed + count * b->parts * b->sums_bytes);
    task_begin(t, place);
    t->sums = sums + part * count * b->sums_bytes;
    run_part(t, job, part);
    if (__atomic_add_fetch(done + place, 1, __ATOMIC_ACQ_REL) == b->parts)
        FOR_UNIT(t->p->kind, gather, t, sums, count * b->sums_bytes);
}

static void run(task *t, const tasks_job *job, int64_t index) {
    task_begin(t, index);
    for (int64_t part = 0; part < t->b->parts; part++) run_part(t, job, part);
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const product p = product_of(call);
    const blocking b = block(call, &p, true);
    return (size_t)(b.shared + b.slice * b.team);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    product p = product_of(call);
    const int64_t depth = unit_depth(p.kind), most = part_units(p.kind);
    static const int symbols[] = { PLACE(DIM_M), PLACE(DIM_N) };
    for (int i = 0; i < 2; i++) trine_kernel_edge(edges, symbols[i], i == 0 ? tile_rows(p.kind) : tile_columns(p.kind));
    for (int part = 1; part < 4; part++) trine_kernel_edge(edges, PLACE(DIM_M), tile_rows(p.kind) * part / 4);
    trine_kernel_edge(edges, PLACE(DIM_N), tile_columns(p.kind) / 2);
    product_edges(edges, p.kind);
    trine_kernel_edge(edges, PLACE(DIM_K), UNITS_STEP * depth);
    trine_kernel_edge(edges, PLACE(DIM_K), most * depth);
    trine_kernel_edge(edges, PLACE(DIM_K), 2 * most * depth);
    p.m = 1 << 20, p.k = most * depth;
    const int64_t rows = block(call, &p, true).rows;
    trine_kernel_edge(edges, PLACE(DIM_M), rows);
    trine_kernel_edge(edges, PLACE(DIM_M), (SHARED_LEAST - 1) * rows);
}

static void run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const tasks_job *job = context;
    const blocking *b = job->b;
    const int64_t before = job->batch * b->down * b->right + job->first * b->down - job->packing;
    task t = task_of(job->call, job->p, b, thread);
    tile_begin(job->p->kind);
    for (int64_t i = first; i < last; i++)
        if (i < job->packing)
            job_pack(job, i);
        else if (b->spread)
            run_spread(&t, job, i - job->packing);
        else
            run(&t, job, before + i);
    tile_end(job->p->kind);
}

static trine_status launch(const trine_call *call) {
    const product p = product_of(call);
    const blocking b = block(call, &p, true);
    const int64_t slices = b.slice > 0 ? ((int64_t)call->workspace_size - b.shared) / b.slice : b.team;
    const int team = b.team < slices ? b.team : (int)slices;
    tasks_job job = { .call = call, .p = &p, .b = &b };
    const int64_t spread = b.spread ? b.parts : 1;
    if (b.spread)
        memset((char *)call->workspace + b.packed + b.down * b.right * b.parts * b.sums_bytes, 0,
               (size_t)(b.down * b.right) * sizeof(int32_t));
    if (b.turn == 0 && !b.rows_shared) {
        cpu_tasks(call, team, p.g * b.down * b.right * spread, run_tasks, &job);
        return TRINE_OK;
    }
    for (job.batch = 0; job.batch < p.g; job.batch++)
        for (job.first = 0; job.first < b.right; job.first += job.columns) {
            job.columns = b.turn == 0 || b.right - job.first < b.turn ? b.right - job.first : b.turn;
            job.packing = b.parts * job_packing(&job);
            memset(job_ready(&job, 0, 0, false), 0,
                   (size_t)((b.turn + (b.rows_shared ? b.down : 0)) * b.parts) * sizeof(int32_t));
            cpu_tasks(call, team, job.packing + b.down * job.columns * spread, run_tasks, &job);
        }
    return TRINE_OK;
}

#endif
