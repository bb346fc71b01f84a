/* SPDX-License-Identifier: Apache-2.0 */
/* The launches that rms_norm_backward and layer_norm_backward share. */
#include "norm_backward.h"

static int64_t blocks_of(const trine_call *call) { return simt_blocks(call->dim[0], columns_block_rows(call->dim[0])); }

static bool given(const trine_call *call, int tensor) { return tensor >= 0 && simt_present(call, tensor); }

size_t norm_backward_workspace(const trine_call *call, int dweight, int dbias) {
    return (size_t)((given(call, dweight) + given(call, dbias)) * blocks_of(call) * call->dim[1]) * sizeof(float);
}

static trine_status finish(const trine_call *call, const columns_params *columns, float *partial, int tensor) {
    columns_params p = *columns;
    p.partial = partial;
    p.out = simt_rows_of(call, tensor);
    const simt_function function = { .step = "finish", .type = { call->tensor[tensor].dtype } };
    return simt_launch(call, &function, simt_blocks(p.n, COLUMNS_FINISH), SIMT_THREADS, &p, sizeof p);
}

static trine_status sum_columns(const trine_call *call, const norm_backward_params *norm, int dweight, int dbias) {
    norm_columns_params p = {
        .norm = *norm,
        .columns = { .rows = norm->rows, .n = norm->n, .block_rows = columns_block_rows(norm->rows), .blocks = blocks_of(call), .wide = norm->wide },
    };
    float *next = call->workspace;
    if (given(call, dweight)) {
        p.weight_partial = next;
        next += p.columns.blocks * norm->n;
    }
    if (given(call, dbias)) p.bias_partial = next;
    const simt_function function = { .step = "columns", .type = { call->type[0], call->type[1] } };
    trine_status status = simt_launch(call, &function, p.columns.blocks * simt_blocks(norm->n, COLUMNS_WIDTH), SIMT_THREADS, &p, sizeof p);
    if (status == TRINE_OK && given(call, dweight)) status = finish(call, &p.columns, p.weight_partial, dweight);
    if (status == TRINE_OK && given(call, dbias)) status = finish(call, &p.columns, p.bias_partial, dbias);
    return status;
}

/* The sums come first: dx may be dy. */
trine_status norm_backward_launch(const trine_call *call, const norm_backward_params *p, int dweight, int dbias) {
    trine_status status = TRINE_OK;
    if (given(call, dweight) || given(call, dbias)) status = sum_columns(call, p, dweight, dbias);
    return status == TRINE_OK ? simt_launch_rows(call, p->rows, p->n, 2, p, sizeof *p) : status;
}
