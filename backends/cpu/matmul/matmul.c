/* SPDX-License-Identifier: Apache-2.0 */
/* matmul on the CPU: blocks of d are independent tasks; each packs the parts of a and b it needs into panels and
 * multiplies them tile by tile.
 *
 * The order of an element's sum follows from k and the level alone, so neither threads nor the place in d change a
 * bit. */
#include "matmul_same.h"
#include "matmul_blocks.h"
#include "matmul_skinny.h"

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
    task_begin(t, index);
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
    { .name = SAME_NAME, .refuse = matmul_same_refuse, .launch = matmul_same_launch, .edges = edges, .same = true },
    { 0 },
};
