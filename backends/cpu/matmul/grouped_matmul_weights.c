/* SPDX-License-Identifier: Apache-2.0 */
/* grouped_matmul_weights on the CPU: rows and columns of one group's result are a task, which packs the group's rows of
 * dy and x into panels across, a part of them at a time, and multiplies these tile by tile as matmul does.
 *
 * The order of an element's sum follows from the group's rows and the level alone. */
#include "grouped_offsets.h"
#include "backends/cpu/core/cpu.h"
#include "matmul_finish.h"
#include "matmul_tile.h"
#include "spec/places/grouped_matmul_weights.h"

/* A part of a group's rows is such that a panel of x stays in L1. Rows and columns of a task, and rows that are packed
 * at a time, at most: x's panels, dy's and the sums are to fit in L2. */
enum { PART_UNITS = VB == 64 ? 256 : 384, TASK_ROWS = 512, TASK_COLUMNS = 256, PACKED_ROWS = 96, AMX_STEP = 16 };

typedef struct weights {
    const trine_call *call;
    const int32_t *offsets, *gather; /* gather: NULL if absent */
    int64_t r, e, p, n, k, divide;
    unit_kind kind;
    view dy, x;
    int64_t size;                       /* bytes of an element */
    int64_t part;                       /* units of a group's rows */
    int64_t rows, columns, right, down; /* of a task; tasks along k and n */
    int64_t packed;                     /* rows */
    int64_t dy_bytes, x_bytes, sums_bytes, dy_lines, x_lines, slice;
} weights;

typedef struct task {
    const weights *a;
    char *dy, *x, *sums, *dy_lines, *x_lines;
    int64_t g, row, rows, column, columns; /* of the group's result */
    int64_t first, units;                  /* of the part: the row of dy it begins with */
    int64_t depth;
} task;

static int64_t divide_up(int64_t x, int64_t by) { return (x + by - 1) / by; }
static int64_t at_most(int64_t x, int64_t most) { return x < most ? x : most; }

static view across(const trine_tensor *t, int64_t size) {
    return (view){ .data = t->data, .dtype = t->dtype, .lane = size, .along = t->stride[0] * size, .across = true };
}

static weights weights_of(const trine_call *call) {
    const trine_grouped_matmul_weights_args *args = call->args;
    const trine_tensor *dy = &call->tensor[GROUPED_MATMUL_WEIGHTS_DY], *x = &call->tensor[GROUPED_MATMUL_WEIGHTS_X],
                       *gather = trine_call_given(call, GROUPED_MATMUL_WEIGHTS_GATHER);
    weights a = { .call = call,
                  .offsets = call->tensor[GROUPED_MATMUL_WEIGHTS_OFFSETS].data,
                  .gather = gather ? gather->data : NULL,
                  .r = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_R],
                  .e = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_E],
                  .p = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_P],
                  .n = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_N],
                  .k = call->dim[GROUPED_MATMUL_WEIGHTS_DIM_K],
                  .divide = args->divide,
                  .kind = unit_of(x->dtype),
                  .size = (int64_t)vsize(x->dtype) };
    const int64_t high = tile_rows(a.kind), wide = tile_columns(a.kind), step = unit_depth(a.kind);
    a.dy = across(dy, a.size), a.x = across(x, a.size);
    a.part = cpu_round_up(at_most(divide_up(a.p, step), PART_UNITS), AMX_STEP);
    a.rows = cpu_round_up(at_most(a.n, TASK_ROWS), high), a.columns = cpu_round_up(at_most(a.k, TASK_COLUMNS), wide);
    a.down = divide_up(a.n, TASK_ROWS), a.right = a.k > 0 ? divide_up(a.k, a.columns) : 1;
    a.packed = cpu_round_up(at_most(a.n, PACKED_ROWS), high);
    a.dy_bytes = cpu_round_up(panel_bytes(a.part, (int)high, a.kind) * (a.packed / high), 64);
    a.x_bytes = cpu_round_up(panel_bytes(a.part, (int)wide, a.kind) * (a.columns / wide), 64);
    a.sums_bytes = divide_up(a.p, step) > a.part ? (a.rows + high) * a.columns * 4 : 0;
    a.dy_lines = gather ? cpu_round_up(a.part * step * a.packed * a.size, 64) : 0;
    a.x_lines = gather ? cpu_round_up(a.part * step * a.columns * a.size, 64) : 0;
    a.slice = cpu_round_up(a.dy_bytes + a.x_bytes + a.sums_bytes + a.dy_lines + a.x_lines, 256);
    return a;
}

/* The row of x that belongs to row i of dy; -1: none. */
static int64_t source_of(const weights *a, int64_t i) {
    if (!a->gather) return i;
    const int64_t from = a->gather[i];
    return from < 0 || from / a->divide >= a->r ? -1 : from / a->divide;
}

/* Packs `lanes` lanes of the part's rows, from lane `first` of the operand on, into panels of `wide`. With gather the
 * rows that count are copied to `lines` first, and zeros in place of others: a NaN of such a row is not to be seen. */
static void pack(const task *t, char *to, const view *from, char *lines, int64_t first, int64_t lanes, int wide,
                 bool is_dy) {
    const weights *a = t->a;
    view v = *from;
    const char *data = v.data + t->first * v.along + first * a->size;
    if (a->gather) {
        v.along = lanes * a->size;
        for (int64_t i = 0; i < t->depth; i++) {
            const int64_t source = source_of(a, t->first + i), row = is_dy ? t->first + i : source;
            if (source < 0)
                memset(lines + i * v.along, 0, (size_t)v.along);
            else
                memcpy(lines + i * v.along, from->data + row * from->along + first * a->size, (size_t)v.along);
        }
        data = lines;
    }
    for (int64_t j = 0; j < lanes; j += wide)
        panel_pack(to + j / wide * panel_bytes(a->part, wide, a->kind), data + j * a->size, &v, lanes - j, t->depth,
                   t->units, is_dy);
}

INLINE void finish_tile(const task *t, const char *tile, int64_t row, int64_t rows, int64_t column, int64_t columns,
                        trine_dtype T) {
    const trine_tensor *dw = &t->a->call->tensor[GROUPED_MATMUL_WEIGHTS_DW];
    const int64_t wide = tile_columns(t->a->kind);
    for (int64_t i = 0; i < rows; i++) {
        char *to = (char *)dw->data + (t->g * dw->stride[0] + (row + i) * dw->stride[1]) * (int64_t)vsize(T);
        const float *sums = (const float *)(const void *)tile + i * wide;
        for (int64_t j = 0; j < columns; j += VL) {
            const vf x = *(const vf_any *)(sums + j);
            if (columns - j < VL)
                vstoren(to, T, column + j, (int)(columns - j), x);
            else
                vstore(to, T, column + j, x);
        }
    }
}

/* All tiles of `rows` packed rows, from row `down` of the task on. */
INLINE void multiply(const task *t, int64_t down, int64_t rows, bool begun, bool last, unit_kind kind) {
    const weights *a = t->a;
    const int64_t high = tile_rows(kind), wide = tile_columns(kind), tiles = a->columns / wide;
    _Alignas(64) char scratch[TILE_BYTES];
    for (int64_t j = 0; j < t->columns; j += wide)
        for (int64_t i = 0; i < rows; i += high) {
            char *tile = begun || !last ? t->sums + ((down + i) / high * tiles + j / wide) * high * wide * 4 : scratch;
            tile_multiply(tile, t->dy + i / high * panel_bytes(a->part, (int)high, kind),
                          t->x + j / wide * panel_bytes(a->part, (int)wide, kind), t->units, begun, kind);
            if (last)
                FOR_TYPE(a->call->tensor[GROUPED_MATMUL_WEIGHTS_DW].dtype, finish_tile, t, tile, t->row + down + i,
                         at_most(rows - i, high), t->column + j, at_most(t->columns - j, wide));
        }
}

/* The sums of the group's rows of dy, in their order. */
INLINE void sum_rows(const task *t, int64_t first, int64_t last, trine_dtype T) {
    const weights *a = t->a;
    const trine_tensor *dbias = &a->call->tensor[GROUPED_MATMUL_WEIGHTS_DBIAS];
    const trine_dtype out = dbias->dtype;
    char *to = (char *)dbias->data + t->g * dbias->stride[0] * (int64_t)vsize(out);
    for (int64_t j = t->row; j < t->row + t->rows; j += VL) {
        const int n = (int)at_most(t->row + t->rows - j, VL);
        vf sum = vzero();
        for (int64_t i = first; i < last; i++) {
            const char *row = a->dy.data + i * a->dy.along;
            if (source_of(a, i) >= 0) sum += n < VL ? vloadn(row, T, j, n, 0) : vload(row, T, j);
        }
        if (n < VL)
            vstoren(to, out == T ? T : TRINE_F32, j, n, sum);
        else
            vstore(to, out == T ? T : TRINE_F32, j, sum);
    }
}

static void run(task *t, int64_t index) {
    const weights *a = t->a;
    const int64_t high = tile_rows(a->kind), wide = tile_columns(a->kind), step = unit_depth(a->kind);
    t->g = index / (a->right * a->down);
    t->row = index / a->right % a->down * TASK_ROWS, t->column = index % a->right * a->columns;
    t->rows = at_most(a->n - t->row, TASK_ROWS), t->columns = at_most(a->k - t->column, a->columns);
    const int64_t from = a->offsets[t->g], to = a->offsets[t->g + 1];
    for (t->first = from; t->first == from || t->first < to; t->first += a->part * step) {
        t->depth = at_most(to - t->first, a->part * step), t->units = divide_up(t->depth, step);
        if (tile_amx(a->kind)) t->units = cpu_round_up(t->units, AMX_STEP);
        const bool begun = t->first > from, last = t->first + a->part * step >= to;
        pack(t, t->x, &a->x, t->x_lines, t->column, t->columns, (int)wide, false);
        for (int64_t down = 0; down < t->rows; down += a->packed) {
            const int64_t some = at_most(t->rows - down, a->packed);
            pack(t, t->dy, &a->dy, t->dy_lines, t->row + down, some, (int)high, true);
            if (HAVE_DOTS && a->kind == UNIT_BF16)
                multiply(t, down, some, begun, last, UNIT_BF16);
            else
                multiply(t, down, some, begun, last, UNIT_F32);
        }
        if (last) break;
    }
    if (t->column == 0 && trine_call_given(a->call, GROUPED_MATMUL_WEIGHTS_DBIAS))
        FOR_TYPE(a->dy.dtype, sum_rows, t, from, to);
}

static void run_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const weights *a = context;
    char *memory = (char *)a->call->workspace + thread * a->slice;
    task t = { .a = a, .dy = memory, .x = memory + a->dy_bytes };
    t.sums = t.x + a->x_bytes, t.dy_lines = t.sums + a->sums_bytes, t.x_lines = t.dy_lines + a->dy_lines;
    tile_begin(a->kind);
    for (int64_t i = first; i < last; i++) run(&t, i);
    tile_end(a->kind);
}

static int team_of(const weights *a) {
    const double flops = 2.0 * (double)a->p * (double)a->n * (double)a->k,
                 bytes = (double)a->e * (double)a->n * (double)(a->k + 1) * (double)a->size;
    return cpu_team(a->call, a->e * a->right * a->down, (int64_t)fmin(fmax(bytes, flops / 4), 0x1p62));
}

static const char *refuse(const trine_call *call) {
    const trine_grouped_matmul_weights_args *args = call->args;
    if (call->dim[GROUPED_MATMUL_WEIGHTS_DIM_P] > INT32_MAX) return "more than 2^31 - 1 rows";
    if (call->dim[GROUPED_MATMUL_WEIGHTS_DIM_E] > INT32_MAX) return "more than 2^31 - 1 groups";
    return call->dim[GROUPED_MATMUL_WEIGHTS_DIM_R] > INT32_MAX / args->divide &&
                   trine_call_given(call, GROUPED_MATMUL_WEIGHTS_GATHER)
               ? "more than 2^31 - 1 numbers to gather by"
               : NULL;
}

static size_t workspace(const trine_call *call) {
    if (call->empty) return 0;
    const weights a = weights_of(call);
    return (size_t)(a.slice * team_of(&a));
}

static trine_status launch(const trine_call *call) {
    const weights a = weights_of(call);
    const trine_status status = grouped_offsets_ascend(call, "grouped_matmul_weights", a.offsets, a.e, a.p);
    if (status != TRINE_OK) return status;
    cpu_tasks(call, team_of(&a), a.e * a.right * a.down, run_tasks, &a);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const weights a = weights_of(call);
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_K, tile_columns(a.kind));
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_K, TASK_COLUMNS);
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_N, tile_rows(a.kind));
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_N, PACKED_ROWS);
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_N, TASK_ROWS);
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_P, unit_depth(a.kind));
    trine_kernel_edge(edges, GROUPED_MATMUL_WEIGHTS_DIM_P, PART_UNITS * unit_depth(a.kind));
}

CPU_KERNELS(grouped_matmul_weights) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
