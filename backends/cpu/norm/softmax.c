/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on the CPU. */
#include "softmax.h"
#include "spec/places/softmax.h"
#include "softmax_same.h"

typedef struct softmax {
    softmax_way way;
    const trine_tensor *x, *y;
    int64_t s, n, pitch;
    float *held; /* `pitch` floats for each thread */
    bool causal;
} softmax;

/* Rows [first, last), of one matrix. */
INLINE void softmax_rows_as(const softmax *a, float *h, int64_t first, int64_t last, trine_dtype T) {
    const int64_t size = (int64_t)vsize(T), g = first / a->s, i = first % a->s;
    const char *x = row_at3(a->x, g, i);
    char *y = row_at3(a->y, g, i);
    for (int64_t k = 0; k < last - first; k++, x += a->x->stride[1] * size, y += a->y->stride[1] * size) {
        const int64_t visible = a->causal ? row_visible(i + k, a->s, a->n) : a->n;
        if (visible <= SOFTMAX_HELD)
            softmax_row_as(&a->way, h, x, x + a->x->stride[1] * size, y, visible, T);
        else
            softmax_long_row_as(&a->way, h, x, y, visible, T);
        if (visible < a->n) memset(y + visible * size, 0, (size_t)((a->n - visible) * size));
    }
}

static void softmax_part(const void *context, int64_t first_chunk, int64_t last_chunk, int thread) {
    const softmax *a = context;
    row_piece piece;
    float *h = a->pitch > 0 ? a->held + thread * a->pitch : piece;
    const int64_t chunks = softmax_chunks(a->s);
    for (int64_t c = first_chunk; c < last_chunk; c++) {
        const int64_t i = c % chunks * SOFTMAX_CHUNK, first = c / chunks * a->s + i;
        FOR_TYPE(a->x->dtype, softmax_rows_as, a, h, first,
                 first + (a->s - i < SOFTMAX_CHUNK ? a->s - i : SOFTMAX_CHUNK));
    }
    if (a->way.stream) stream_fence();
}

static size_t workspace(const trine_call *call) {
    const int64_t *dim = call->dim;
    return softmax_workspace(call, dim[SOFTMAX_DIM_G], dim[SOFTMAX_DIM_S], dim[SOFTMAX_DIM_N]);
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    const int64_t matrices = call->dim[SOFTMAX_DIM_G], s = call->dim[SOFTMAX_DIM_S], n = call->dim[SOFTMAX_DIM_N];
    const softmax a = {
        /* a line stored in part past the caches costs more than it saves */
        .way = softmax_way_of(args->scale, INFINITY, !args->causal && row_streams(call)),
        .x = row_tensor(call, SOFTMAX_X),
        .y = row_tensor(call, SOFTMAX_Y),
        .s = s,
        .n = n,
        .pitch = softmax_pitch(n),
        .held = call->workspace,
        .causal = args->causal,
    };
    const int team = softmax_team(call, matrices, s);
    if (a.causal) /* rows grow */
        cpu_tasks(call, team, matrices * softmax_chunks(s), softmax_part, &a);
    else
        cpu_shares(call, team, matrices * softmax_chunks(s), softmax_part, &a);
    return TRINE_OK;
}

CPU_KERNELS(softmax) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = softmax_edges },
                         { .name = SAME_NAME, .launch = softmax_same_launch, .edges = row_edges, .same = true },
                         { 0 } };
