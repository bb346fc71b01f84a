/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_masked_backward on the CPU. */
#include "scores.h"
#include "softmax_backward.h"
#include "spec/places/softmax_masked_backward.h"

typedef struct scores_gradient {
    const trine_tensor *y, *dy, *dx, *dbias;
    int64_t h, sq, n;
    float scale;
    bool causal, stream;
} scores_gradient;

static softmax_gradient_row row_of(const void *op, int64_t row) {
    const scores_gradient *a = op;
    const scores_place at = scores_place_of(row, a->h, a->sq), next = scores_next(at, a->sq);
    return (softmax_gradient_row){ .y = scores_row(a->y, at),
                                   .dy = scores_row(a->dy, at),
                                   .next_y = scores_row(a->y, next),
                                   .next_dy = scores_row(a->dy, next),
                                   .dx = scores_row(a->dx, at),
                                   .dz = a->dbias ? scores_row(a->dbias, at) : NULL,
                                   .T = a->y->dtype,
                                   .of_dz = a->dbias ? a->dbias->dtype : TRINE_F32,
                                   .visible = a->causal ? row_visible(at.i, a->sq, a->n) : a->n,
                                   .n = a->n,
                                   .scale = a->scale,
                                   .stream = a->stream };
}

static int64_t rows_of(const trine_call *call) {
    return call->dim[SOFTMAX_MASKED_BACKWARD_DIM_B] * call->dim[SOFTMAX_MASKED_BACKWARD_DIM_H] *
           call->dim[SOFTMAX_MASKED_BACKWARD_DIM_SQ];
}

static size_t workspace(const trine_call *call) {
    return softmax_gradient_workspace(call, rows_of(call), call->dim[SOFTMAX_MASKED_BACKWARD_DIM_SK]);
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_masked_backward_args *args = call->args;
    const int64_t *dim = call->dim;
    const scores_gradient a = {
        .y = row_tensor(call, SOFTMAX_MASKED_BACKWARD_Y),
        .dy = row_tensor(call, SOFTMAX_MASKED_BACKWARD_DY),
        .dx = row_tensor(call, SOFTMAX_MASKED_BACKWARD_DX),
        .dbias = row_tensor(call, SOFTMAX_MASKED_BACKWARD_DBIAS),
        .h = dim[SOFTMAX_MASKED_BACKWARD_DIM_H],
        .sq = dim[SOFTMAX_MASKED_BACKWARD_DIM_SQ],
        .n = dim[SOFTMAX_MASKED_BACKWARD_DIM_SK],
        .scale = args->scale,
        .causal = args->causal,
        .stream = !args->causal && row_streams(call),
    };
    const softmax_gradients all = {
        .row = row_of, .op = &a, .rows = rows_of(call), .n = a.n, .causal = a.causal, .stream = a.stream
    };
    softmax_gradient_run(call, &all);
    return TRINE_OK;
}

CPU_KERNELS(softmax_masked_backward) = {
    { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = softmax_gradient_edges }, { 0 }
};
