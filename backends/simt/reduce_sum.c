/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on devices: the host side. */
#include "reduce_sum.h"
#include "host.h"

enum { X, ROW_SUMS, COLUMN_SUMS }; /* as in the specification */

static int64_t pieces_of(const trine_call *call) { return call->dim[1] > REDUCE_PIECE ? simt_blocks(call->dim[1], REDUCE_PIECE) : 1; }
static int64_t blocks_of(const trine_call *call) { return simt_blocks(call->dim[0], columns_block_rows(call->dim[0])); }

/* Floats: the sums of the pieces of rows, then those of the blocks of columns. */
static int64_t row_partials(const trine_call *call) { return simt_present(call, ROW_SUMS) && pieces_of(call) > 1 ? pieces_of(call) * call->dim[0] : 0; }
static int64_t column_partials(const trine_call *call) { return simt_present(call, COLUMN_SUMS) ? blocks_of(call) * call->dim[1] : 0; }

static size_t workspace(const trine_call *call) { return (size_t)(row_partials(call) + column_partials(call)) * sizeof(float); }

/* Adds `blocks` partial sums of n each. */
static trine_status finish(const trine_call *call, float *partial, int64_t blocks, int64_t n, int tensor) {
    const columns_params p = { .out = simt_rows_of(call, tensor), .partial = partial, .n = n, .blocks = blocks };
    const simt_function function = { .step = "finish", .type = { call->tensor[tensor].dtype } };
    return simt_launch(call, &function, simt_blocks(n, COLUMNS_FINISH), SIMT_THREADS, &p, sizeof p);
}

static trine_status sum_rows(const trine_call *call, float *partial) {
    reduce_rows_params p = { .x = simt_rows_of(call, X), .rows = call->dim[0], .n = call->dim[1], .pieces = pieces_of(call) };
    const bool split = p.pieces > 1;
    p.out = split ? (simt_rows){ .data = partial } : simt_rows_of(call, ROW_SUMS);
    const simt_group group = simt_row_group(p.rows * p.pieces, p.n, SIMT_STREAM);
    const simt_function function = { .step = simt_rows_whole(call, 1) ? "rows" : "rows_ragged",
                                     .type = { call->tensor[X].dtype, split ? TRINE_F32 : call->tensor[ROW_SUMS].dtype },
                                     .variant = group.size };
    const trine_status status = simt_launch(call, &function, group.blocks, group.threads, &p, sizeof p);
    return status == TRINE_OK && split ? finish(call, partial, p.pieces, p.rows, ROW_SUMS) : status;
}

static trine_status sum_columns(const trine_call *call, float *partial) {
    const reduce_columns_params p = {
        .x = simt_rows_of(call, X),
        .columns = { .partial = partial,
                     .rows = call->dim[0],
                     .n = call->dim[1],
                     .block_rows = columns_block_rows(call->dim[0]),
                     .blocks = blocks_of(call),
                     .wide = simt_aligned(call, X) },
    };
    const simt_function function = { .step = "columns", .type = { call->tensor[X].dtype } };
    const trine_status status = simt_launch(call, &function, p.columns.blocks * simt_blocks(p.columns.n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? finish(call, partial, p.columns.blocks, p.columns.n, COLUMN_SUMS) : status;
}

static trine_status launch(const trine_call *call) {
    float *partial = call->workspace;
    trine_status status = TRINE_OK;
    if (simt_present(call, ROW_SUMS)) status = sum_rows(call, partial);
    if (status == TRINE_OK && simt_present(call, COLUMN_SUMS)) status = sum_columns(call, partial + row_partials(call));
    return status;
}

SIMT_KERNELS(reduce_sum) = { { .name = SIMT_NAME, .workspace = workspace, .launch = launch }, { 0 } };
