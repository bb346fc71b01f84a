/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on devices: the host side. */
#include <stdlib.h>

#include "reduce_sum.h"
#include "backends/simt/core/host.h"
#include "spec/places/reduce_sum.h"
#include "spec/same.h"

/* The matrix as it is summed: columns that lie closer than rows are taken for the rows. */
typedef struct view {
    const trine_call *call;
    bool turned;
    simt_rows x;
    int64_t rows, n, step;     /* step: between the elements of a row */
    int row_sums, column_sums; /* tensors */
} view;

static view view_of(const trine_call *call) {
    const trine_tensor *x = &call->tensor[REDUCE_SUM_X];
    const bool turned = x->stride[1] != 1 && llabs(x->stride[0]) < llabs(x->stride[1]);
    return (view){ .call = call,
                   .turned = turned,
                   .x = { .data = x->data, .row = x->stride[turned] },
                   .rows = x->shape[turned],
                   .n = x->shape[!turned],
                   .step = x->stride[!turned],
                   .row_sums = turned ? REDUCE_SUM_COLUMN_SUMS : REDUCE_SUM_ROW_SUMS,
                   .column_sums = turned ? REDUCE_SUM_ROW_SUMS : REDUCE_SUM_COLUMN_SUMS };
}

/* Is every row of x aligned to 16 bytes, and are they whole vectors? */
static bool aligned(const view *v) {
    const int64_t size = (int64_t)trine_dtype_size(v->call->tensor[REDUCE_SUM_X].dtype);
    return (uintptr_t)v->x.data % 16 == 0 && (v->rows == 1 || v->x.row * size % 16 == 0);
}
static bool whole(const view *v) {
    if (!v->turned) return simt_rows_whole(v->call, REDUCE_SUM_DIM_N);
    return v->n > 0 && v->n <= INT32_MAX - 65536 && v->n % 8 == 0 && aligned(v);
}

static int64_t piece_of(const view *v) {
    /* pieces, of which a device has hundreds in flight: with fewer, the last are waited for longer */
    enum { FEW = 4096 };
    return v->rows * simt_blocks(v->n, REDUCE_PIECE) < FEW ? REDUCE_SMALL : REDUCE_PIECE;
}
static int64_t pieces_of(const view *v) { return v->n > REDUCE_PIECE ? simt_blocks(v->n, piece_of(v)) : 1; }

/* Narrow rows one behind the other are summed as fewer long ones. */
static int64_t fold_of(const view *v) {
    int64_t fold = 1;
    while (v->n > 0 && v->step == 1 && v->x.row == v->n && 2 * fold * v->n <= COLUMNS_WIDTH && v->rows > 0 &&
           v->rows % (2 * fold) == 0)
        fold *= 2;
    return fold;
}

/* Of a block of rows: for more thread blocks than keep a device busy, partial sums cost more than they gain (H200). */
static int64_t block_rows_of(int64_t rows, int64_t n) {
    enum { BUSY = 1024 };
    const int64_t least = columns_block_rows(rows), even = simt_blocks(rows * simt_blocks(n, COLUMNS_WIDTH), BUSY);
    return even < least ? least : even > COLUMNS_MOST ? COLUMNS_MOST : even;
}
static int64_t blocks_of(const view *v) {
    const int64_t fold = fold_of(v), rows = v->rows / fold;
    return simt_blocks(rows, block_rows_of(rows, v->n * fold));
}

/* Are rows summed while columns are? Then in parts, one for each tile of columns. And so are rows whose elements are
 * apart, whatever is asked for. */
static bool joined(const view *v) {
    return v->step != 1 ||
           (simt_present(v->call, v->row_sums) && simt_present(v->call, v->column_sums) && fold_of(v) == 1);
}
static int64_t row_parts(const view *v) { return joined(v) ? simt_blocks(v->n, COLUMNS_WIDTH) : pieces_of(v); }

/* Floats: the sums of the parts of rows, then those of the blocks of columns. */
static int64_t row_partials(const view *v) {
    return simt_present(v->call, v->row_sums) && (joined(v) || pieces_of(v) > 1) ? row_parts(v) * v->rows : 0;
}
static int64_t column_partials(const view *v) {
    return simt_present(v->call, v->column_sums) ? blocks_of(v) * v->n : 0;
}

static size_t workspace(const trine_call *call) {
    const view v = view_of(call);
    return (size_t)(row_partials(&v) + column_partials(&v)) * sizeof(float);
}

/* Partial sums of the rows' parts, and of the columns. */
static columns_params row_sums_of(const view *v, float *partial) {
    return (columns_params){
        .out = simt_rows_of(v->call, v->row_sums), .partial = partial, .n = v->rows, .blocks = row_parts(v)
    };
}
static columns_params column_sums_of(const view *v, float *partial) {
    return (columns_params){
        .out = simt_rows_of(v->call, v->column_sums), .partial = partial, .n = v->n, .blocks = blocks_of(v)
    };
}

/* Adds the partial sums of one kind, or of both. For few columns more threads take the parts of each: one after the
 * other they would be as long as a launch. */
enum { NARROW = 64 };
static trine_status finish(const trine_call *call, int tensor, columns_params sums, columns_params others) {
    const bool narrow = sums.n + others.n <= NARROW;
    const int64_t width = narrow ? COLUMNS_NARROW : COLUMNS_FINISH;
    const reduce_finish_params p = { { sums, others }, simt_blocks(sums.n, width) };
    const simt_function function = { .step = narrow ? "finish_narrow" : "finish",
                                     .type = { call->tensor[tensor].dtype } };
    return simt_launch(call, &function, p.blocks + simt_blocks(others.n, width), SIMT_THREADS, &p, sizeof p);
}

static trine_status sum_rows(const view *v, float *partial) {
    const trine_call *call = v->call;
    reduce_rows_params p = { .x = v->x,
                             .rows = v->rows,
                             .n = v->n,
                             .piece = piece_of(v),
                             .pieces = pieces_of(v),
                             .ahead = simt_ahead_of(call, REDUCE_SUM_X) };
    const bool split = p.pieces > 1;
    const simt_rows parts = { .data = partial };
    p.out = split ? parts : simt_rows_of(call, v->row_sums);
    const simt_group group = simt_row_group(p.rows * p.pieces, p.n, SIMT_STREAM);
    const simt_function function = { .step = "rows",
                                     .ragged = !whole(v),
                                     .type = { call->tensor[REDUCE_SUM_X].dtype,
                                               split ? TRINE_F32 : call->tensor[v->row_sums].dtype },
                                     .variant = group.size };
    const trine_status status = simt_launch(call, &function, group.blocks, group.threads, &p, sizeof p);
    if (status != TRINE_OK || !split) return status;
    return finish(call, v->row_sums, row_sums_of(v, partial), (columns_params){ 0 });
}

static trine_status sum_columns(const view *v, float *partial, float *row_partial) {
    const trine_call *call = v->call;
    const int64_t fold = fold_of(v), rows = v->rows / fold, n = v->n * fold;
    reduce_columns_params p = {
        .x = v->x,
        .step = v->step,
        .columns = { .partial = partial,
                     .rows = rows,
                     .n = n,
                     .fold = fold,
                     .block_rows = block_rows_of(rows, n),
                     .blocks = blocks_of(v),
                     .wide = aligned(v) || (fold > 1 && (uintptr_t)v->x.data % 16 == 0 && n % 8 == 0) },
        .row_partial = row_partial,
        .ahead = simt_ahead_of(call, REDUCE_SUM_X),
    };
    p.x.row *= fold;
    const simt_function function = { .step = v->step == 1 ? "columns" : "columns_any",
                                     .type = { call->tensor[REDUCE_SUM_X].dtype } };
    const trine_status status =
        simt_launch(call, &function, p.columns.blocks * simt_blocks(n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    const columns_params none = { 0 },
                         of_rows = joined(v) && simt_present(call, v->row_sums) ? row_sums_of(v, row_partial) : none;
    if (status != TRINE_OK) return status;
    return simt_present(call, v->column_sums) ? finish(call, v->column_sums, column_sums_of(v, partial), of_rows)
                                              : finish(call, v->row_sums, of_rows, none);
}

static trine_status launch(const trine_call *call) {
    const view v = view_of(call);
    const bool of_rows = simt_present(call, v.row_sums), of_columns = simt_present(call, v.column_sums);
    float *const rows = call->workspace, *const columns = rows + row_partials(&v);
    if (joined(&v)) return sum_columns(&v, of_columns ? columns : NULL, of_rows ? rows : NULL);
    trine_status status = TRINE_OK;
    if (of_rows) status = sum_rows(&v, rows);
    if (status == TRINE_OK && of_columns) status = sum_columns(&v, columns, NULL);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const bool turned = view_of(call).turned;
    const int rows = turned ? REDUCE_SUM_DIM_N : REDUCE_SUM_DIM_R, n = turned ? REDUCE_SUM_DIM_R : REDUCE_SUM_DIM_N;
    simt_row_edges(edges, rows, n, SIMT_STREAM);
    simt_columns_edges(edges, rows, n);
    trine_kernel_edge(edges, n, REDUCE_PIECE);
    trine_kernel_edge(edges, n, REDUCE_PIECE + REDUCE_SMALL);
    trine_kernel_edge(edges, n, COLUMNS_WIDTH / 2); /* narrow rows of which two count as one */
    trine_kernel_edge(edges, n, NARROW);
    trine_kernel_edge(edges, rows, NARROW);
    trine_kernel_edge(edges, n, COLUMNS_FINISH);
}

static trine_status sum_same(const trine_call *call, int tensor, const char *step, int64_t blocks) {
    const trine_tensor *x = &call->tensor[REDUCE_SUM_X];
    const reduce_same_params p = { .x = x->data,
                                   .out = call->tensor[tensor].data,
                                   .rows = x->shape[0],
                                   .n = x->shape[1],
                                   .row = x->stride[0],
                                   .step = x->stride[1],
                                   .wide = call->tensor[tensor].dtype == TRINE_F32 };
    const simt_function function = { .step = step, .type = { x->dtype } };
    return simt_present(call, tensor) ? simt_launch(call, &function, blocks, SAME_LANES, &p, sizeof p) : TRINE_OK;
}

static trine_status launch_same(const trine_call *call) {
    const int64_t *shape = call->tensor[REDUCE_SUM_X].shape;
    const trine_status status = sum_same(call, REDUCE_SUM_ROW_SUMS, "same_rows", shape[0]);
    if (status != TRINE_OK) return status;
    return sum_same(call, REDUCE_SUM_COLUMN_SUMS, "same_columns", simt_blocks(shape[1], SAME_LANES));
}

static void edges_same(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, REDUCE_SUM_DIM_N, SAME_LANES);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_R, SAME_CHAIN);
}

SIMT_KERNELS(reduce_sum) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                             { .name = SIMT_NAME "_same", .launch = launch_same, .edges = edges_same, .same = true },
                             { 0 } };
