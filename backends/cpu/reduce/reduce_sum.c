/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on the CPU: the matrix in tiles, a block of rows by a piece of columns, each read once for both sums.
 * Where columns lie closer than rows they are taken for the rows; rows whose elements are apart are gathered first. */
#include <stdlib.h>

#include "backends/cpu/core/columns.h"
#include "spec/places/reduce_sum.h"

typedef struct sums {
    trine_tensor x;
    const trine_tensor *rows, *columns;
    int64_t r, n, blocks, pieces;
    float *row_part;    /* by piece: r sums each; NULL if there is one piece, which gives the sums themselves */
    float *column_part; /* by block: n sums each */
} sums;

/* Are columns taken for rows? */
static bool turned(const trine_call *call) {
    const int64_t *stride = call->tensor[REDUCE_SUM_X].stride;
    return stride[1] != 1 && llabs(stride[0]) < llabs(stride[1]);
}

static trine_tensor exchanged(trine_tensor t) {
    const int64_t shape = t.shape[0], stride = t.stride[0];
    t.shape[0] = t.shape[1], t.shape[1] = shape;
    t.stride[0] = t.stride[1], t.stride[1] = stride;
    return t;
}

static sums arguments(const trine_call *call) {
    const bool turn = turned(call);
    const trine_tensor *x = &call->tensor[REDUCE_SUM_X];
    const int64_t r = x->shape[turn], n = x->shape[!turn];
    return (sums){
        .x = turn ? exchanged(*x) : *x,
        .rows = row_tensor(call, turn ? REDUCE_SUM_COLUMN_SUMS : REDUCE_SUM_ROW_SUMS),
        .columns = row_tensor(call, turn ? REDUCE_SUM_ROW_SUMS : REDUCE_SUM_COLUMN_SUMS),
        .r = r,
        .n = n,
        .blocks = columns_blocks(r),
        .pieces = n > 0 ? (n + ROW_PIECE - 1) / ROW_PIECE : 1,
    };
}

static int64_t row_part_size(const sums *a) { return a->rows && a->pieces > 1 ? a->pieces * columns_pitch(a->r) : 0; }
static int64_t column_part_size(const sums *a) { return a->columns ? a->blocks * columns_pitch(a->n) : 0; }

static size_t workspace(const trine_call *call) {
    const sums a = arguments(call);
    return (size_t)(row_part_size(&a) + column_part_size(&a)) * sizeof(float);
}

/* A piece of a row: its sum, and what `run` holds plus its elements; either may be NULL. */
INLINE void read_as(float *sum, float *run, const void *x, int64_t at, int count, trine_dtype T) {
    vf acc[ROW_ACC] = { 0 };
    ROW_EACH(count, j, k, m, {
        const vf v = row_get(x, T, at + j, m);
        acc[k] += v;
        if (run) *row_vector(run, j) += v;
    });
    if (sum) *sum = row_total(acc);
}

INLINE void gather(float *to, const void *from, int64_t stride, int count, trine_dtype T) {
    for (int j = 0; j < count; j++) to[j] = sload(from, T, j * stride);
}

/* Elements at .. at+count-1 of row i. */
static void read_row(const sums *a, float *sum, float *run, int64_t i, int64_t at, int count) {
    const char *row = row_at(&a->x, i);
    const int64_t stride = a->x.stride[1];
    row_piece gathered;
    if (stride == 1) {
        FOR_TYPE(a->x.dtype, read_as, sum, run, row, at, count);
        return;
    }
    FOR_TYPE(a->x.dtype, gather, gathered, row + at * stride * (int64_t)vsize(a->x.dtype), stride, count);
    read_as(sum, run, gathered, 0, count, TRINE_F32);
}

static void tile(const sums *a, int64_t block, int64_t piece, float *run) {
    const int64_t at = piece * ROW_PIECE, first = block * columns_rows(a->r);
    const int64_t last = first + columns_rows(a->r) < a->r ? first + columns_rows(a->r) : a->r;
    const int count = row_count(a->n, at);
    float *part = a->columns ? a->column_part + block * columns_pitch(a->n) + at : NULL;
    if (part) memset(part, 0, (size_t)count * sizeof(float));
    for (int64_t start = first; start < last; start += COLUMNS_RUN) {
        if (part) memset(run, 0, (size_t)cpu_round_up(count, VL) * sizeof(float));
        for (int64_t i = start; i < last && i < start + COLUMNS_RUN; i++) {
            float sum;
            read_row(a, a->rows ? &sum : NULL, part ? run : NULL, i, at, count);
            if (a->row_part)
                a->row_part[piece * columns_pitch(a->r) + i] = sum;
            else if (a->rows)
                sstore(a->rows->data, a->rows->dtype, i, sum);
        }
        if (part) columns_add(part, run, count);
    }
}

static void sum_tiles(const void *context, int64_t first, int64_t last, int thread) {
    const sums *a = context;
    row_piece run;
    (void)thread;
    for (int64_t t = first; t < last; t++) tile(a, t / a->pieces, t % a->pieces, run);
}

/* Sums by COLUMNS_SIDE, from those of all blocks or pieces. */
static void finish_columns(const void *context, int64_t first, int64_t last, int thread) {
    const sums *a = context;
    (void)thread;
    last = last * COLUMNS_SIDE < a->n ? last * COLUMNS_SIDE : a->n;
    columns_finish(a->column_part, a->blocks, columns_pitch(a->n), first * COLUMNS_SIDE, last, a->columns);
}
static void finish_rows(const void *context, int64_t first, int64_t last, int thread) {
    const sums *a = context;
    (void)thread;
    last = last * COLUMNS_SIDE < a->r ? last * COLUMNS_SIDE : a->r;
    columns_finish(a->row_part, a->pieces, columns_pitch(a->r), first * COLUMNS_SIDE, last, a->rows);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const bool turn = turned(call);
    row_edges(call, edges);
    if (turn) trine_kernel_edge(edges, REDUCE_SUM_DIM_R, ROW_PIECE);
    columns_edges(edges, turn ? REDUCE_SUM_DIM_N : REDUCE_SUM_DIM_R, turn ? REDUCE_SUM_DIM_R : REDUCE_SUM_DIM_N);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_R, COLUMNS_SIDE);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_R, COLUMNS_PIECE);
}

static trine_status launch(const trine_call *call) {
    sums a = arguments(call);
    if (a.columns) a.column_part = call->workspace;
    if (row_part_size(&a) > 0) a.row_part = (float *)call->workspace + column_part_size(&a);
    const int64_t tiles = a.blocks * a.pieces, columns = columns_pitch(a.n) / COLUMNS_SIDE,
                  rows = columns_pitch(a.r) / COLUMNS_SIDE;
    cpu_shares(call, cpu_team(call, tiles, row_bytes(call)), tiles, sum_tiles, &a);
    if (a.columns)
        cpu_shares(call, cpu_team(call, columns, a.n * a.blocks * (int64_t)sizeof(float)), columns, finish_columns, &a);
    if (a.row_part)
        cpu_shares(call, cpu_team(call, rows, a.r * a.pieces * (int64_t)sizeof(float)), rows, finish_rows, &a);
    return TRINE_OK;
}

#include "reduce_sum_same.h"

CPU_KERNELS(reduce_sum) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                            { .name = SAME_NAME, .launch = sums_same_launch, .edges = edges, .same = true },
                            { 0 } };
