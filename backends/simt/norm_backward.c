/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that rms_norm_backward and layer_norm_backward share. */
#include "norm_backward.h"

static bool given(const trine_call *call, int tensor) { return tensor >= 0 && simt_present(call, tensor); }

static bool fused(const trine_call *call) { return call->dim[1] <= NORM_FUSED_ITEMS * NORM_FUSED_MOST; }

/* Groups take the rows of a few blocks in turns. */
static simt_group fused_group(const trine_call *call, int64_t *turns_out) {
    static const int sizes[] = { 32, 64, 128, 256, NORM_FUSED_MOST };
    simt_group group = simt_group_of(call->dim[0], call->dim[1], NORM_FUSED_ITEMS, 5, sizes);
    const int64_t turns = simt_blocks(group.blocks, norm_fused_blocks(group.size)), most = NORM_FUSED_TURNS;
    *turns_out = turns < 1 ? 1 : turns > most ? most : turns;
    group.blocks = simt_blocks(group.blocks, *turns_out);
    return group;
}

/* Partial sums of a column. */
static int64_t blocks_of(const trine_call *call) {
    int64_t turns;
    return fused(call) ? fused_group(call, &turns).blocks : simt_blocks(call->dim[0], columns_block_rows(call->dim[0]));
}

size_t norm_backward_workspace(const trine_call *call, int dweight, int dbias) {
    return (size_t)((given(call, dweight) + given(call, dbias)) * blocks_of(call) * call->dim[1]) * sizeof(float);
}

static trine_status launch_fused(const trine_call *call, norm_backward_params *p) {
    const simt_group group = fused_group(call, &p->turns);
    p->blocks = group.blocks;
    const simt_function function = { .step = simt_rows_whole(call, 1) ? NULL : "ragged", .type = { call->type[0] }, .variant = group.size };
    return simt_launch(call, &function, group.blocks, group.threads, p, sizeof *p);
}

/* The sums come first: dx may be dy. */
static trine_status launch_long(const trine_call *call, const norm_backward_params *norm) {
    const bool whole = simt_rows_whole(call, 1);
    const norm_columns_params p = {
        .norm = *norm,
        .columns = { .rows = norm->rows, .n = norm->n, .block_rows = columns_block_rows(norm->rows), .blocks = blocks_of(call), .wide = whole },
    };
    const simt_function columns = { .step = "columns", .type = { call->type[0] } };
    const simt_function rows = { .step = whole ? "long" : "long_ragged", .type = { call->type[0] } };
    trine_status status = TRINE_OK;
    if (norm->weight_partial || norm->bias_partial)
        status = simt_launch(call, &columns, p.columns.blocks * simt_blocks(norm->n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    return status == TRINE_OK ? simt_launch(call, &rows, norm->rows, NORM_FUSED_MOST, norm, sizeof *norm) : status;
}

static trine_status finish(const trine_call *call, float *partial, int tensor) {
    const columns_params p = { .out = simt_rows_of(call, tensor), .partial = partial, .n = call->dim[1], .blocks = blocks_of(call) };
    const simt_function function = { .step = "finish", .type = { call->tensor[tensor].dtype } };
    return simt_launch(call, &function, simt_blocks(p.n, COLUMNS_FINISH), SIMT_THREADS, &p, sizeof p);
}

trine_status norm_backward_launch(const trine_call *call, norm_backward_params *p, int dweight, int dbias) {
    float *next = call->workspace;
    if (given(call, dweight)) {
        p->weight_partial = next;
        next += blocks_of(call) * p->n;
    }
    if (given(call, dbias)) p->bias_partial = next;
    trine_status status = fused(call) ? launch_fused(call, p) : launch_long(call, p);
    if (status == TRINE_OK && given(call, dweight)) status = finish(call, p->weight_partial, dweight);
    if (status == TRINE_OK && given(call, dbias)) status = finish(call, p->bias_partial, dbias);
    return status;
}
