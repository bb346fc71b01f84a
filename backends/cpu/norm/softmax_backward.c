/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on the CPU. */
#include "softmax_backward.h"
#include "spec/places/softmax_backward.h"

typedef struct softmax_gradient {
    const trine_tensor *y, *dy, *dx;
    int64_t s, n;
    float scale;
    bool causal, stream;
} softmax_gradient;

static softmax_gradient_row row_of(const void *op, int64_t row) {
    const softmax_gradient *a = op;
    const int64_t g = row / a->s, i = row % a->s, next = i + 1 < a->s ? i + 1 : i;
    return (softmax_gradient_row){ .y = row_at3(a->y, g, i),
                                   .dy = row_at3(a->dy, g, i),
                                   .next_y = row_at3(a->y, g, next),
                                   .next_dy = row_at3(a->dy, g, next),
                                   .dx = row_at3(a->dx, g, i),
                                   .T = a->y->dtype,
                                   .visible = a->causal ? row_visible(i, a->s, a->n) : a->n,
                                   .n = a->n,
                                   .scale = a->scale,
                                   .stream = a->stream };
}

static size_t workspace(const trine_call *call) {
    return softmax_gradient_workspace(call, call->dim[SOFTMAX_BACKWARD_DIM_G] * call->dim[SOFTMAX_BACKWARD_DIM_S],
                                      call->dim[SOFTMAX_BACKWARD_DIM_N]);
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_backward_args *args = call->args;
    const softmax_gradient a = {
        .y = row_tensor(call, SOFTMAX_BACKWARD_Y),
        .dy = row_tensor(call, SOFTMAX_BACKWARD_DY),
        .dx = row_tensor(call, SOFTMAX_BACKWARD_DX),
        .s = call->dim[SOFTMAX_BACKWARD_DIM_S],
        .n = call->dim[SOFTMAX_BACKWARD_DIM_N],
        .scale = args->scale,
        .causal = args->causal,
        .stream = !args->causal && row_streams(call),
    };
    const softmax_gradients all = { .row = row_of,
                                    .op = &a,
                                    .rows = call->dim[SOFTMAX_BACKWARD_DIM_G] * a.s,
                                    .n = a.n,
                                    .causal = a.causal,
                                    .stream = a.stream };
    softmax_gradient_run(call, &all);
    return TRINE_OK;
}

CPU_KERNELS(softmax_backward) = {
    { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = softmax_gradient_edges }, { 0 }
};
