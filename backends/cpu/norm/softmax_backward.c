/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on the CPU. A row that fits a piece is read once, a longer one twice. */
#include "backends/cpu/core/row.h"
#include "spec/places/softmax_backward.h"

typedef struct softmax_gradient {
    const trine_tensor *y, *dy, *dx;
    int64_t s, n, rows;
    float scale;
    bool causal, stream;
} softmax_gradient;

/* Pieces of y and of dy; adds the sum of their products. */
INLINE void read_as(float *sum, float *y, float *dy, const void *y_row, const void *dy_row, int64_t at, int count,
                    trine_dtype T) {
    vf acc[ROW_ACC] = { 0 };
    ROW_EACH(count, j, k, m, {
        const vf p = row_get(y_row, T, at + j, m), d = row_get(dy_row, T, at + j, m);
        *row_vector(y, j) = p;
        *row_vector(dy, j) = d;
        acc[k] = vfma(p, d, acc[k]);
    });
    *sum += row_total(acc);
}

/* dx = scale y (dy - sum), while the next rows are fetched. */
INLINE void write_as(float scale, float sum, float *y, float *dy, row_sink dx, int count, const void *next_y,
                     const void *next_dy, trine_dtype T) {
    ROW_EACH(count, j, k, m, {
        row_prefetch(next_y, T, j, k);
        row_prefetch(next_dy, T, j, k);
        row_put(dx, T, j, m, *row_vector(y, j) * (*row_vector(dy, j) - sum) * scale);
    });
}

static inline void row(const softmax_gradient *a, float *y, float *dy, int64_t g, int64_t i) {
    const int64_t visible = a->causal ? row_visible(i, a->s, a->n) : a->n, next = i + 1 < a->s ? i + 1 : i;
    const void *y_row = row_at3(a->y, g, i), *dy_row = row_at3(a->dy, g, i);
    void *dx = row_at3(a->dx, g, i);
    float sum = 0, unused = 0;
    for (int64_t at = 0; at < visible; at += ROW_PIECE)
        FOR_TYPE(a->y->dtype, read_as, &sum, y, dy, y_row, dy_row, at, row_count(visible, at));
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        if (visible > ROW_PIECE) FOR_TYPE(a->y->dtype, read_as, &unused, y, dy, y_row, dy_row, at, count);
        const row_sink sink = row_sink_at(dx, a->dx->dtype, at, a->stream);
        FOR_TYPE(a->dx->dtype, write_as, a->scale, sum, y, dy, sink, count, row_at3(a->y, g, next),
                 row_at3(a->dy, g, next));
    }
    const int64_t size = (int64_t)vsize(a->dx->dtype);
    memset((char *)dx + visible * size, 0, (size_t)((a->n - visible) * size));
}

enum { CHUNK = 16 }; /* rows */

static void chunks(const void *context, int64_t first, int64_t last, int thread) {
    const softmax_gradient *a = context;
    row_piece y, dy;
    (void)thread;
    last = last * CHUNK < a->rows ? last * CHUNK : a->rows;
    for (int64_t i = first * CHUNK; i < last; i++) row(a, y, dy, i / a->s, i % a->s);
    if (a->stream) stream_fence();
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    trine_kernel_edge(edges, SOFTMAX_BACKWARD_DIM_S, CHUNK);
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
    const int64_t count = (a.rows + CHUNK - 1) / CHUNK;
    const int team = cpu_team(call, count, row_bytes(call));
    if (a.causal) /* rows grow */
        cpu_tasks(call, team, count, chunks, &a);
    else
        cpu_shares(call, team, count, chunks, &a);
    return TRINE_OK;
}

CPU_KERNELS(softmax_backward) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
