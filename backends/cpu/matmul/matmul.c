/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on the CPU: blocks of d are independent tasks; each packs the parts of a and b it needs into panels and
 * multiplies them tile by tile.
 *
 * The order of an element's sum follows from k and the level alone, so neither threads nor the place in d change a
 * bit. */
#include "matmul_skinny.h"

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

static int64_t divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }

/* Splits d into as few tasks as caches allow, then further until the threads share them evenly. */
static void split(const trine_call *call, const product *p, blocking *b) {
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

static blocking block(const trine_call *call, const product *p) {
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

/* Packs lanes [first, first + count) of an operand for a part of k. */
static void pack(char *dst, const view *v, int64_t batch, int64_t first, int64_t count, int64_t lanes, int64_t part,
                 const blocking *b, const product *p, bool is_a) {
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

/* All tiles of `rows` packed rows of a, from row `down` of the task on. */
INLINE void multiply(const task *t, int64_t down, int64_t rows, int64_t part, unit_kind kind) {
    const product *p = t->p;
    const blocking *b = t->b;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = b->columns / wide;
    int64_t units = b->units - part * b->part < b->part ? b->units - part * b->part : b->part;
    if (tile_amx(kind)) units = cpu_round_up(units, AMX_SIDE);
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = 0; j < t->columns; j += wide) {
        const char *right = t->bs + j / wide * panel_bytes(b->part, (int)wide, kind);
        for (int64_t i = 0; i < rows; i += high) {
            const char *left = t->a + i / high * panel_bytes(b->part, (int)high, kind);
            char *tile = b->parts > 1
                             ? t->sums + ((down + i) / high * tiles + j / wide) * high * wide * unit_bytes(kind)
                             : scratch;
            tile_multiply(tile, left, right, units, part > 0, kind);
            if (part + 1 < b->parts) continue;
            const int64_t i_left = t->rows - down - i, j_left = t->columns - j;
            finish(&p->to, tile, wide,
                   &(block_place){ t->batch, t->row + down + i, t->column + j, i_left < high ? i_left : high,
                                   j_left < wide ? j_left : wide });
        }
    }
}

static void run(task *t, int64_t index) {
    const product *p = t->p;
    const blocking *b = t->b;
    t->batch = index / (b->down * b->right);
    t->row = index % b->down * b->rows, t->column = index / b->down % b->right * b->columns;
    t->rows = p->m - t->row < b->rows ? p->m - t->row : b->rows,
    t->columns = p->n - t->column < b->columns ? p->n - t->column : b->columns;
    for (int64_t part = 0; part < b->parts; part++) {
        pack(t->bs, &p->b, t->batch, t->column, t->columns, p->n, part, b, p, false);
        for (int64_t down = 0; down < t->rows; down += b->group) {
            const int64_t rows = t->rows - down < b->group ? t->rows - down : b->group;
            pack(t->a, &p->a, t->batch, t->row + down, rows, p->m, part, b, p, true);
            FOR_UNIT(p->kind, multiply, t, down, rows, part);
        }
    }
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const product p = product_of(call);
    const blocking b = block(call, &p);
    return (size_t)(b.slice * b.team);
}

static task task_of(const trine_call *call, const product *p, const blocking *b, int thread) {
    char *memory = (char *)call->workspace + thread * b->slice;
    return (task){ .p = p, .b = b, .a = memory, .bs = memory + b->a_bytes, .sums = memory + b->a_bytes + b->b_bytes };
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    product p = product_of(call);
    const int64_t depth = unit_depth(p.kind), most = tile_amx(p.kind) ? PART_UNITS_AMX : PART_UNITS;
    static const int symbols[] = { MATMUL_DIM_M, MATMUL_DIM_N };
    for (int i = 0; i < 2; i++) {
        trine_kernel_edge(edges, symbols[i], i == 0 ? tile_rows(p.kind) : tile_columns(p.kind));
        trine_kernel_edge(edges, symbols[i], FEW_ACROSS);
        trine_kernel_edge(edges, symbols[i], FEW);
        trine_kernel_edge(edges, symbols[i], TASK_LEAST);
        trine_kernel_edge(edges, symbols[i], TASK_SIDE);
    }
    product_edges(edges, p.kind);
    trine_kernel_edge(edges, MATMUL_DIM_K, UNITS_STEP * depth);
    trine_kernel_edge(edges, MATMUL_DIM_K, most * depth);
    trine_kernel_edge(edges, MATMUL_DIM_K, 2 * most * depth);
    p.m = TASK_SIDE, p.k = most * depth;
    trine_kernel_edge(edges, MATMUL_DIM_M, block(call, &p).group);
}

typedef struct tasks_job {
    const trine_call *call;
    const product *p;
    const blocking *b;
} tasks_job;

static void run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const tasks_job *job = context;
    task t = task_of(job->call, job->p, job->b, thread);
    tile_begin(job->p->kind);
    for (int64_t i = first; i < last; i++) run(&t, i);
    tile_end(job->p->kind);
}

static trine_status launch(const trine_call *call) {
    const product p = product_of(call);
    const blocking b = block(call, &p);
    const int slices = b.slice > 0 ? (int)(call->workspace_size / (size_t)b.slice) : b.team,
              team = b.team < slices ? b.team : slices;
    cpu_tasks(call, team, p.g * b.down * b.right, run_tasks, &(tasks_job){ call, &p, &b });
    return TRINE_OK;
}

CPU_KERNELS(matmul) = {
    { CPU_VARIANT("skinny"), skinny_refuse, skinny_workspace, skinny_launch, .edges = skinny_edges },
    { CPU_NAME, product_refuse, workspace, launch, .edges = edges },
    { 0 },
};
