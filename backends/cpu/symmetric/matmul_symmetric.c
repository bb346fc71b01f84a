/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_symmetric on the CPU: matmul's tasks and panels, of which the tiles that reach below the diagonal are
 * multiplied. What a tile has there is stored as it comes, and then copied to the other side. */
#include "backends/cpu/matmul/matmul_blocks.h"
#include "spec/places/matmul_symmetric.h"

static product symmetric_of(const trine_call *call) {
    const trine_matmul_symmetric_args *args = call->args;
    const trine_tensor *a = &call->tensor[MATMUL_SYMMETRIC_A], *d = &call->tensor[MATMUL_SYMMETRIC_D],
                       *c = trine_call_given(call, MATMUL_SYMMETRIC_C);
    const int64_t m = call->dim[MATMUL_SYMMETRIC_DIM_M], size = (int64_t)trine_dtype_size(d->dtype);
    const view lanes = view_of(a, false);
    product p = { .g = call->dim[MATMUL_SYMMETRIC_DIM_G],
                  .m = m,
                  .n = m,
                  .k = call->dim[MATMUL_SYMMETRIC_DIM_K],
                  .kind = unit_of(a->dtype),
                  .a = lanes,
                  .b = lanes,
                  .to = { .d = d->data,
                          .d_batch = d->stride[0] * size,
                          .d_row = d->stride[1] * size,
                          .type = d->dtype,
                          .bias_type = d->dtype,
                          .alpha = args->alpha + 0.0f,
                          .beta = args->beta + 0.0f } };
    if (c)
        p.to.c = c->data, p.to.c_batch = c->stride[0] * size, p.to.c_row = c->stride[1] * size,
        p.to.c_column = c->stride[2] * size;
    return p;
}

INLINE void mirror_as(const target *to, const block_place *at, size_t size) {
    char *const d = to->d + at->batch * to->d_batch;
    for (int64_t j = at->column; j < at->column + at->columns; j++)
        for (int64_t i = j < at->row ? at->row : j + 1; i < at->row + at->rows; i++)
            memcpy(d + j * to->d_row + i * (int64_t)size, d + i * to->d_row + j * (int64_t)size, size);
}

/* A tile's sums: those on the diagonal and below, and their like above. */
static void finish_tile(const target *to, const char *tile, int64_t wide, const block_place *at) {
    const int64_t size = to->type == TRINE_F64 ? 8 : 4;
    if (at->row + 1 >= at->column + at->columns) {
        finish(to, tile, wide, at);
    } else {
        for (int64_t i = 0; i < at->rows; i++) {
            const int64_t most = at->row + i - at->column + 1, columns = most < at->columns ? most : at->columns;
            if (columns > 0)
                finish(to, tile + i * wide * size, wide,
                       &(block_place){ at->batch, at->row + i, at->column, 1, columns });
        }
    }
    switch (trine_dtype_size(to->type)) {
    case 2: mirror_as(to, at, 2); break;
    case 4: mirror_as(to, at, 4); break;
    default: mirror_as(to, at, 8); break;
    }
}

/* The tiles of columns [from, to) of a task. */
INLINE void multiply(const task *t, int64_t from, int64_t to, int64_t part, unit_kind kind) {
    const product *p = t->p;
    const blocking *b = t->b;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = b->rows / high;
    int64_t units = b->units - part * b->part < b->part ? b->units - part * b->part : b->part;
    if (tile_amx(kind)) units = cpu_round_up(units, AMX_SIDE);
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = from; j < to; j += wide) {
        const char *right = t->bs + (j - from) / wide * panel_bytes(b->part, (int)wide, kind);
        for (int64_t i = 0; i < t->rows; i += high) {
            if (t->row + i + high <= t->column + j) continue;
            const char *left = t->a + i / high * panel_bytes(b->part, (int)high, kind);
            char *tile =
                b->parts > 1 ? t->sums + (j / wide * tiles + i / high) * high * wide * unit_bytes(kind) : scratch;
            tile_multiply(tile, left, right, units, part > 0, kind);
            if (part + 1 < b->parts) continue;
            const int64_t i_left = t->rows - i, j_left = t->columns - j;
            finish_tile(&p->to, tile, wide,
                        &(block_place){ t->batch, t->row + i, t->column + j, i_left < high ? i_left : high,
                                        j_left < wide ? j_left : wide });
        }
    }
}

static void run(task *t, int64_t index) {
    const product *p = t->p;
    const blocking *b = t->b;
    task_begin(t, index);
    if (t->row + t->rows <= t->column) return;
    const int64_t width = PANELS * tile_columns(p->kind);
    for (int64_t part = 0; part < b->parts; part++) {
        pack(t->a, &p->a, t->batch, t->row, t->rows, p->m, part, b, p, true);
        for (int64_t j = 0; j < t->columns; j += width) {
            const int64_t to = t->columns - j < width ? t->columns : j + width;
            if (t->row + t->rows <= t->column + j) break;
            pack(t->bs, &p->b, t->batch, t->column + j, to - j, p->n, part, b, p, false);
            switch (p->kind) {
            case UNIT_F64: multiply(t, j, to, part, UNIT_F64); break;
            case UNIT_BF16: multiply(t, j, to, part, UNIT_BF16); break;
            default: multiply(t, j, to, part, UNIT_F32); break;
            }
        }
    }
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const product p = symmetric_of(call);
    const blocking b = block(call, &p, false);
    return (size_t)(b.slice * b.team);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const product p = symmetric_of(call);
    const int64_t depth = unit_depth(p.kind), most = part_units(p.kind);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_M, tile_rows(p.kind));
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_M, tile_columns(p.kind));
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, depth);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, UNITS_STEP * depth);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, most * depth);
    trine_kernel_edge(edges, MATMUL_SYMMETRIC_DIM_K, 2 * most * depth);
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
    const product p = symmetric_of(call);
    const blocking b = block(call, &p, false);
    const int slices = b.slice > 0 ? (int)(call->workspace_size / (size_t)b.slice) : b.team,
              team = b.team < slices ? b.team : slices;
    cpu_tasks(call, team, p.g * b.down * b.right, run_tasks, &(tasks_job){ call, &p, &b });
    return TRINE_OK;
}

CPU_KERNELS(matmul_symmetric) = { { CPU_NAME, NULL, workspace, launch, .edges = edges }, { 0 } };
