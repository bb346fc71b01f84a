/* SPDX-License-Identifier: Apache-2.0 */
/* What the host sides of the ops of x + bias share. */
#ifndef TRINE_SIMT_BIAS_HOST_H
#define TRINE_SIMT_BIAS_HOST_H

#include "backends/simt/core/host.h"
#include "bias.h"
#include "spec/alike.h"
#include "spec/places/dropout_add.h"
#include "spec/places/dropout_add_backward.h"
#include "spec/places/gelu_bias.h"
#include "spec/places/gelu_bias_backward.h"

/* What their tables say alike. */
enum {
    BIAS_DIM_R = GELU_BIAS_DIM_R,
    BIAS_DIM_N = GELU_BIAS_DIM_N,
    BIAS_TYPE_T = GELU_BIAS_TYPE_T,
    BIAS_TYPE_W = GELU_BIAS_TYPE_W
};
#define BIAS_ALIKE(OP) \
    TRINE_ALIKE(BIAS_DIM_R, OP##_DIM_R); \
    TRINE_ALIKE(BIAS_DIM_N, OP##_DIM_N); \
    TRINE_ALIKE(BIAS_TYPE_T, OP##_TYPE_T); \
    TRINE_ALIKE(BIAS_TYPE_W, OP##_TYPE_W)
BIAS_ALIKE(GELU_BIAS_BACKWARD);
BIAS_ALIKE(DROPOUT_ADD);
BIAS_ALIKE(DROPOUT_ADD_BACKWARD);
#undef BIAS_ALIKE

/* Who does which rows and columns, with partial sums in the workspace if there is a dbias: a tensor, -1 if the op has
 * none. */
static inline columns_params bias_columns_of(const trine_call *call, int dbias) {
    const int64_t r = call->dim[BIAS_DIM_R], rows = columns_block_rows(r);
    columns_params p = {
        .rows = r, .n = call->dim[BIAS_DIM_N], .block_rows = rows, .blocks = simt_blocks(r, rows), .wide = true
    };
    for (int t = 0; t < call->plan->tensors; t++) {
        const trine_plan_tensor *tensor = &call->plan->tensor[t];
        if (tensor->dim[tensor->rank - 1].symbol == BIAS_DIM_N && !simt_aligned(call, t)) p.wide = false;
    }
    if (dbias >= 0 && simt_present(call, dbias)) {
        p.partial = call->workspace;
        p.out = simt_rows_of(call, dbias);
    }
    return p;
}

static inline bool bias_f32(const trine_call *call) { return call->type[BIAS_TYPE_W] == TRINE_F32; }

static inline size_t bias_workspace(const trine_call *call, int dbias) {
    const columns_params p = bias_columns_of(call, dbias);
    return simt_present(call, dbias) ? (size_t)(p.blocks * p.n) * sizeof(float) : 0;
}

/* The rows, and behind them the sums of dbias. */
static inline trine_status bias_launch(const trine_call *call, const char *step, const columns_params *columns,
                                       const void *params, size_t size) {
    const simt_function rows = { .step = step, .type = { call->type[BIAS_TYPE_T] } };
    const trine_status status =
        simt_launch(call, &rows, columns->blocks * simt_blocks(columns->n, COLUMNS_WIDTH), SIMT_THREADS, params, size);
    if (status != TRINE_OK || !columns->out.data) return status;
    const simt_function finish = { .step = "finish", .type = { call->type[BIAS_TYPE_W] } };
    return simt_launch(call, &finish, simt_blocks(columns->n, COLUMNS_FINISH), SIMT_THREADS, columns, sizeof *columns);
}

static inline void bias_edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    simt_columns_edges(edges, BIAS_DIM_R, BIAS_DIM_N);
    trine_kernel_edge(edges, BIAS_DIM_N, COLUMNS_FINISH);
}

#endif
