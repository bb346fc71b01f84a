/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on the CPU. */
#include "softmax_backward.h"
#include "spec/places/softmax_backward.h"

typedef struct softmax_gradient {
    const trine_tensor *y, *dy, *dx;
    int64_t s, n, rows;
    float scale;
    bool causal, stream;
} softmax_gradient;

static void chunks(const void *context, int64_t first, int64_t last, int thread) {
    const softmax_gradient *a = context;
    const int64_t end = last * SOFTMAX_GRADIENT_CHUNK;
    (void)thread;
    for (int64_t row = first * SOFTMAX_GRADIENT_CHUNK; row < end && row < a->rows; row++) {
        const int64_t g = row / a->s, i = row % a->s, next = i + 1 < a->s ? i + 1 : i;
        const softmax_gradient_row r = { .y = row_at3(a->y, g, i),
                                         .dy = row_at3(a->dy, g, i),
                                         .next_y = row_at3(a->y, g, next),
                                         .next_dy = row_at3(a->dy, g, next),
                                         .dx = row_at3(a->dx, g, i),
                                         .T = a->y->dtype,
                                         .visible = a->causal ? row_visible(i, a->s, a->n) : a->n,
                                         .n = a->n,
                                         .scale = a->scale,
                                         .stream = a->stream };
        softmax_gradient_do(&r);
    }
    if (a->stream) stream_fence();
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_backward_args *args = call->args;
    const softmax_gradient a = {
        .y = row_tensor(call, SOFTMAX_BACKWARD_Y),
        .dy = row_tensor(call, SOFTMAX_BACKWARD_DY),
        .dx = row_tensor(call, SOFTMAX_BACKWARD_DX),
        .s = call->dim[SOFTMAX_BACKWARD_DIM_S],
        .n = call->dim[SOFTMAX_BACKWARD_DIM_N],
        .rows = call->dim[SOFTMAX_BACKWARD_DIM_G] * call->dim[SOFTMAX_BACKWARD_DIM_S],
        .scale = args->scale,
        .causal = args->causal,
        .stream = !args->causal && row_streams(call),
    };
    softmax_gradient_run(call, a.rows, a.causal, chunks, &a);
    return TRINE_OK;
}

CPU_KERNELS(softmax_backward) = { { .name = CPU_NAME, .launch = launch, .edges = softmax_gradient_edges }, { 0 } };
