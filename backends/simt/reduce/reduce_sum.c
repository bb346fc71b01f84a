/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on devices: the host side. */
#include "reduce_sum.h"
#include "backends/simt/core/host.h"
#include "spec/places/reduce_sum.h"

static int64_t piece_of(const trine_call *call) {
    /* pieces, of which a device has hundreds in flight: with fewer, the last are waited for longer */
    enum { FEW = 4096 };
    return call->dim[REDUCE_SUM_DIM_R] * simt_blocks(call->dim[REDUCE_SUM_DIM_N], REDUCE_PIECE) < FEW ? REDUCE_SMALL
                                                                                                      : REDUCE_PIECE;
}
static int64_t pieces_of(const trine_call *call) {
    return call->dim[REDUCE_SUM_DIM_N] > REDUCE_PIECE ? simt_blocks(call->dim[REDUCE_SUM_DIM_N], piece_of(call)) : 1;
}

/* Narrow rows one behind the other are summed as fewer long ones. */
static int64_t fold_of(const trine_call *call) {
    const int64_t rows = call->dim[REDUCE_SUM_DIM_R], n = call->dim[REDUCE_SUM_DIM_N];
    int64_t fold = 1;
    while (n > 0 && call->tensor[REDUCE_SUM_X].stride[0] == n && 2 * fold * n <= COLUMNS_WIDTH && rows > 0 &&
           rows % (2 * fold) == 0)
        fold *= 2;
    return fold;
}

/* Of a block of rows: for more thread blocks than keep a device busy, partial sums cost more than they gain (H200). */
static int64_t block_rows_of(int64_t rows, int64_t n) {
    enum { BUSY = 1024 };
    const int64_t least = columns_block_rows(rows), even = simt_blocks(rows * simt_blocks(n, COLUMNS_WIDTH), BUSY);
    return even < least ? least : even > COLUMNS_MOST ? COLUMNS_MOST : even;
}
static int64_t blocks_of(const trine_call *call) {
    const int64_t fold = fold_of(call), rows = call->dim[REDUCE_SUM_DIM_R] / fold;
    return simt_blocks(rows, block_rows_of(rows, call->dim[REDUCE_SUM_DIM_N] * fold));
}

/* Are rows summed while columns are? Then in parts, one for each tile of columns. */
static bool joined(const trine_call *call) {
    return simt_present(call, REDUCE_SUM_ROW_SUMS) && simt_present(call, REDUCE_SUM_COLUMN_SUMS) && fold_of(call) == 1;
}
static int64_t row_parts(const trine_call *call) {
    return joined(call) ? simt_blocks(call->dim[REDUCE_SUM_DIM_N], COLUMNS_WIDTH) : pieces_of(call);
}

/* Floats: the sums of the parts of rows, then those of the blocks of columns. */
static int64_t row_partials(const trine_call *call) {
    return joined(call) || (simt_present(call, REDUCE_SUM_ROW_SUMS) && pieces_of(call) > 1)
               ? row_parts(call) * call->dim[REDUCE_SUM_DIM_R]
               : 0;
}
static int64_t column_partials(const trine_call *call) {
    return simt_present(call, REDUCE_SUM_COLUMN_SUMS) ? blocks_of(call) * call->dim[REDUCE_SUM_DIM_N] : 0;
}

static size_t workspace(const trine_call *call) {
    return (size_t)(row_partials(call) + column_partials(call)) * sizeof(float);
}

/* Partial sums of the rows' parts, and of the columns. */
static columns_params row_sums_of(const trine_call *call, float *partial) {
    return (columns_params){ .out = simt_rows_of(call, REDUCE_SUM_ROW_SUMS),
                             .partial = partial,
                             .n = call->dim[REDUCE_SUM_DIM_R],
                             .blocks = row_parts(call) };
}
static columns_params column_sums_of(const trine_call *call, float *partial) {
    const int64_t n = call->dim[REDUCE_SUM_DIM_N];
    return (columns_params){
        .out = simt_rows_of(call, REDUCE_SUM_COLUMN_SUMS), .partial = partial, .n = n, .blocks = blocks_of(call)
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

static trine_status sum_rows(const trine_call *call, float *partial) {
    reduce_rows_params p = { .x = simt_rows_of(call, REDUCE_SUM_X),
                             .rows = call->dim[REDUCE_SUM_DIM_R],
                             .n = call->dim[REDUCE_SUM_DIM_N],
                             .piece = piece_of(call),
                             .pieces = pieces_of(call),
                             .ahead = simt_ahead_of(call, REDUCE_SUM_X) };
    const bool split = p.pieces > 1;
    const simt_rows parts = { .data = partial };
    p.out = split ? parts : simt_rows_of(call, REDUCE_SUM_ROW_SUMS);
    const simt_group group = simt_row_group(p.rows * p.pieces, p.n, SIMT_STREAM);
    const simt_function function = { .step = "rows",
                                     .ragged = !simt_rows_whole(call, REDUCE_SUM_DIM_N),
                                     .type = { call->tensor[REDUCE_SUM_X].dtype,
                                               split ? TRINE_F32 : call->tensor[REDUCE_SUM_ROW_SUMS].dtype },
                                     .variant = group.size };
    const trine_status status = simt_launch(call, &function, group.blocks, group.threads, &p, sizeof p);
    if (status != TRINE_OK || !split) return status;
    return finish(call, REDUCE_SUM_ROW_SUMS, row_sums_of(call, partial), (columns_params){ 0 });
}

static trine_status sum_columns(const trine_call *call, float *partial, float *row_partial) {
    const int64_t fold = fold_of(call), rows = call->dim[REDUCE_SUM_DIM_R] / fold,
                  n = call->dim[REDUCE_SUM_DIM_N] * fold;
    reduce_columns_params p = {
        .x = simt_rows_of(call, REDUCE_SUM_X),
        .columns = { .partial = partial,
                     .rows = rows,
                     .n = n,
                     .fold = fold,
                     .block_rows = block_rows_of(rows, n),
                     .blocks = blocks_of(call),
                     .wide = simt_aligned(call, REDUCE_SUM_X) ||
                             (fold > 1 && (uintptr_t)call->tensor[REDUCE_SUM_X].data % 16 == 0 && n % 8 == 0) },
        .row_partial = row_partial,
        .ahead = simt_ahead_of(call, REDUCE_SUM_X),
    };
    p.x.row *= fold;
    const simt_function function = { .step = "columns", .type = { call->tensor[REDUCE_SUM_X].dtype } };
    const trine_status status =
        simt_launch(call, &function, p.columns.blocks * simt_blocks(n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    const columns_params rest = joined(call) ? row_sums_of(call, row_partial) : (columns_params){ 0 };
    return status == TRINE_OK ? finish(call, REDUCE_SUM_COLUMN_SUMS, column_sums_of(call, partial), rest) : status;
}

static trine_status launch(const trine_call *call) {
    float *const rows = call->workspace, *const columns = rows + row_partials(call);
    if (joined(call)) return sum_columns(call, columns, rows);
    trine_status status = TRINE_OK;
    if (simt_present(call, REDUCE_SUM_ROW_SUMS)) status = sum_rows(call, rows);
    if (status == TRINE_OK && simt_present(call, REDUCE_SUM_COLUMN_SUMS)) status = sum_columns(call, columns, NULL);
    return status;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_row_edges(edges, REDUCE_SUM_DIM_R, REDUCE_SUM_DIM_N, SIMT_STREAM);
    simt_columns_edges(edges, REDUCE_SUM_DIM_R, REDUCE_SUM_DIM_N);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_N, REDUCE_PIECE);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_N, REDUCE_PIECE + REDUCE_SMALL);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_N, COLUMNS_WIDTH / 2); /* narrow rows of which two count as one */
    trine_kernel_edge(edges, REDUCE_SUM_DIM_N, NARROW);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_R, NARROW);
    trine_kernel_edge(edges, REDUCE_SUM_DIM_N, COLUMNS_FINISH);
}

SIMT_KERNELS(reduce_sum) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
