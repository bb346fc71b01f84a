/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on the CPU: blocks of d are tasks; each packs the parts of a it needs into panels and multiplies them with
 * those of b, which all threads have packed before or the task packs itself, tile by tile.
 *
 * The order of an element's sum follows from k and the level alone, so neither threads nor the place in d change a
 * bit. */
#include "matmul_same.h"
#include "matmul_blocks.h"
#include "matmul_skinny.h"
#include "matmul_small.h"

/* Rows of a task from `row` on, of a part of k. */
static inline unit_grid rows_at(const task *t, int64_t row, int64_t part) {
    const view *a = &t->p->a;
    return (unit_grid){ a->data + t->batch * a->batch + (t->row + row) * a->lane + part * t->b->part * a->along,
                        a->lane, a->along };
}

/* All tiles of columns [from, to) of a task: a's panels are at t->a, these columns' at t->bs. Meanwhile `next` is asked
 * for, `each` lines with every tile. */
INLINE void multiply(const task *t, int64_t from, int64_t to, int64_t part, ahead *next, int64_t each, unit_kind kind) {
    const product *p = t->p;
    const blocking *b = t->b;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = b->rows / high,
                  tile_bytes = high * wide * unit_bytes(kind);
    const int64_t panel = panel_bytes(b->part, (int)wide, kind);
    int64_t units = b->units - part * b->part < b->part ? b->units - part * b->part : b->part;
    if (tile_amx(kind)) units = cpu_round_up(units, AMX_SIDE);
    const bool whole = kind == UNIT_F32 && part + 1 == b->parts && target_plain(&p->to);
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = from; j < to; j += wide) {
        const char *right = t->bs + (j - from) / wide * panel;
        for (int64_t i = 0; i < t->rows; i += high) {
            const int64_t i_left = t->rows - i, j_left = t->columns - j;
            const char *left = t->a + i / high * panel_bytes(b->part, (int)high, kind);
            char *tile = b->parts > 1 ? t->sums + (j / wide * tiles + i / high) * tile_bytes : scratch;
            ask(next, each);
            if (tile_amx(kind) && part > 0) /* the sums of the tile that follows */
                for (int64_t at = 0; at < tile_bytes; at += 64) __builtin_prefetch(tile + tile_bytes + at);
            tile_target put = { 0 };
            if (whole && i_left >= high && j_left >= wide) put = product_put(p, t->batch, t->row + i, t->column + j);
            if (tile_amx(kind))
                tile_multiply(tile, left, right, units, part > 0, kind);
            else if ((kind == UNIT_F32 || kind == UNIT_F64) && b->direct && i_left >= high)
                tile_multiply_into(tile, put, rows_at(t, i, part), (unit_grid){ right, 0, wide * unit_bytes(kind) },
                                   units, part > 0, kind);
            else
                tile_multiply_panels(tile, put, left, right, units, part > 0, kind);
            if (part + 1 < b->parts || put.data) continue;
            finish(&p->to, tile, wide,
                   &(block_place){ t->batch, t->row + i, t->column + j, i_left < high ? i_left : high,
                                   j_left < wide ? j_left : wide });
        }
    }
}

/* What the threads of a call do together. Where b is packed for all, that is a batch and b->turn columns of tasks:
 * first the pieces that pack, then the tasks, which wait for the pieces that they need. These have begun by then, since
 * work is taken in order. */
typedef struct tasks_job {
    const trine_call *call;
    const product *p;
    const blocking *b;
    int64_t batch, first, columns, packing; /* columns of tasks; pieces that pack */
} tasks_job;

static inline int64_t job_groups(const blocking *b, const product *p) {
    return divide_up(b->columns / tile_columns(p->kind), PANELS);
}
static inline char *job_packed(const tasks_job *job, int64_t column, int64_t part) {
    return (char *)job->call->workspace + (column * job->b->parts + part) * job->b->b_bytes;
}
static inline int32_t *job_ready(const tasks_job *job, int64_t column, int64_t part) {
    const blocking *b = job->b;
    return (int32_t *)(void *)((char *)job->call->workspace + b->turn * b->parts * b->b_bytes) + column * b->parts +
           part;
}

static void job_pack(const tasks_job *job, int64_t piece) {
    const product *p = job->p;
    const blocking *b = job->b;
    const int64_t groups = job_groups(b, p), wide = tile_columns(p->kind), width = PANELS * wide;
    const int64_t part = piece / (groups * job->columns), column = piece / groups % job->columns,
                  group = piece % groups, first = (job->first + column) * b->columns + group * width;
    int64_t count = b->columns - group * width < width ? b->columns - group * width : width;
    if (count > p->n - first) count = p->n - first;
    pack(job_packed(job, column, part) + group * PANELS * panel_bytes(b->part, (int)wide, p->kind), &p->b, job->batch,
         first, count, p->n, part, b, p, false);
    __atomic_fetch_add(job_ready(job, column, part), 1, __ATOMIC_RELEASE);
}

static void job_wait(const tasks_job *job, int64_t column, int64_t part) {
    enum { SPINS = 4096 };
    const int32_t *ready = job_ready(job, column, part);
    const int64_t groups = job_groups(job->b, job->p);
    for (int spins = 0; __atomic_load_n(ready, __ATOMIC_ACQUIRE) < groups; spins++)
        if (spins > SPINS) sched_yield();
}

/* Has columns [j, j + columns) of a task packed at t->bs, and returns what will be wanted next: the panels after the
 * first, or the columns after these. */
static ahead columns_ready(task *t, const tasks_job *job, int64_t j, int64_t columns, int64_t part) {
    const product *p = t->p;
    const blocking *b = t->b;
    if (b->turn > 0) {
        const int64_t wide = tile_columns(p->kind), panel = panel_bytes(b->part, (int)wide, p->kind),
                      column = t->column / b->columns - job->first;
        job_wait(job, column, part);
        t->bs = job_packed(job, column, part);
        return (ahead){ t->bs + panel, 1, 0, (divide_up(columns, wide) - 1) * panel, 0 };
    }
    const int64_t left = t->columns - j - columns;
    pack(t->bs, &p->b, t->batch, t->column + j, columns, p->n, part, b, p, false);
    return ahead_of(&p->b, t->batch, t->column + j + columns, left < columns ? left : columns, part, b, p);
}

static void run(task *t, const tasks_job *job, int64_t index) {
    const product *p = t->p;
    const blocking *b = t->b;
    task_begin(t, index);
    /* columns that lie side by side are packed several panels at a time, for short pieces of rows come slowly */
    const int64_t wide = tile_columns(p->kind), high = tile_rows(p->kind),
                  width = b->turn > 0 ? t->columns : (p->b.across ? PANELS : 1) * wide;
    const int64_t tiles = divide_up(t->rows, high), direct = b->direct ? t->rows / high * high : 0;
    for (int64_t part = 0; part < b->parts; part++) {
        if (direct < t->rows)
            pack(t->a + direct / high * panel_bytes(b->part, (int)high, p->kind), &p->a, t->batch, t->row + direct,
                 t->rows - direct, p->m, part, b, p, true);
        for (int64_t j = 0; j < t->columns; j += width) {
            const int64_t columns = t->columns - j < width ? t->columns - j : width;
            ahead next = columns_ready(t, job, j, columns, part);
            FOR_UNIT(p->kind, multiply, t, j, j + columns, part, &next,
                     divide_up(ahead_lines(&next), tiles * divide_up(columns, wide)));
        }
    }
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
    static const int symbols[] = { MATMUL_DIM_M, MATMUL_DIM_N };
    for (int i = 0; i < 2; i++) {
        trine_kernel_edge(edges, symbols[i], i == 0 ? tile_rows(p.kind) : tile_columns(p.kind));
        trine_kernel_edge(edges, symbols[i], FEW_ACROSS);
        trine_kernel_edge(edges, symbols[i], FEW);
    }
    product_edges(edges, p.kind);
    trine_kernel_edge(edges, MATMUL_DIM_K, UNITS_STEP * depth);
    trine_kernel_edge(edges, MATMUL_DIM_K, most * depth);
    trine_kernel_edge(edges, MATMUL_DIM_K, 2 * most * depth);
    p.m = 1 << 20, p.k = most * depth;
    const int64_t rows = block(call, &p, true).rows;
    trine_kernel_edge(edges, MATMUL_DIM_M, rows);
    trine_kernel_edge(edges, MATMUL_DIM_M, (SHARED_LEAST - 1) * rows);
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
    if (b.turn == 0) {
        cpu_tasks(call, team, p.g * b.down * b.right, run_tasks, &job);
        return TRINE_OK;
    }
    for (job.batch = 0; job.batch < p.g; job.batch++)
        for (job.first = 0; job.first < b.right; job.first += b.turn) {
            job.columns = b.right - job.first < b.turn ? b.right - job.first : b.turn;
            job.packing = b.parts * job.columns * job_groups(&b, &p);
            memset(job_ready(&job, 0, 0), 0, (size_t)(b.turn * b.parts) * sizeof(int32_t));
            cpu_tasks(call, team, job.packing + b.down * job.columns, run_tasks, &job);
        }
    return TRINE_OK;
}

CPU_KERNELS(matmul) = {
    { CPU_VARIANT("skinny"), skinny_refuse, skinny_workspace, skinny_launch, .edges = skinny_edges },
    { CPU_VARIANT("small"), small_refuse, small_workspace, small_launch, .edges = small_edges },
    { CPU_NAME, product_refuse, workspace, launch, .edges = edges },
    { .name = SAME_NAME, .refuse = matmul_same_refuse, .launch = matmul_same_launch, .edges = edges, .same = true },
    { 0 },
};
