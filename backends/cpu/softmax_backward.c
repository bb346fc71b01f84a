/* SPDX-License-Identifier: Apache-2.0 */
/* softmax_backward on the CPU. A row that fits a piece is read once, a longer one twice. */
#include "row.h"

typedef struct softmax_gradient {
    const trine_tensor *y, *dy, *dx;
    int64_t s, n;
    float scale;
    bool causal, stream;
} softmax_gradient;

static inline float gather(const softmax_gradient *a, float *y, float *dy, int64_t g, int64_t i, int64_t at, int count) {
    row_load(y, row_at3(a->y, g, i), at, count, a->y->dtype);
    row_load(dy, row_at3(a->dy, g, i), at, count, a->dy->dtype);
    row_pad(y, count, 0);
    row_pad(dy, count, 0);
    vf acc[ROW_ACC] = {0};
    ROW_SUM(count, j, k, acc, acc[k] = vfma(*row_vector(y, j), *row_vector(dy, j), acc[k]));
    return row_total(acc);
}

static inline void row(const softmax_gradient *a, float *y, float *dy, int64_t g, int64_t i) {
    const int64_t visible = a->causal ? row_visible(i, a->s, a->n) : a->n;
    float sum = 0;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) sum += gather(a, y, dy, g, i, at, row_count(visible, at));
    void *dx = row_at3(a->dx, g, i);
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        if (visible > ROW_PIECE) gather(a, y, dy, g, i, at, count);
        for (int j = 0; j < count; j += VL) *row_vector(y, j) = *row_vector(y, j) * (*row_vector(dy, j) - sum) * a->scale;
        row_store(y, dx, at, count, a->dx->dtype, a->stream);
    }
    const int64_t size = (int64_t)vsize(a->dx->dtype);
    memset((char *)dx + visible * size, 0, (size_t)((a->n - visible) * size));
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_backward_args *args = call->args;
    const softmax_gradient a = {
        .y = row_tensor(call, 0),
        .dy = row_tensor(call, 1),
        .dx = row_tensor(call, 2),
        .s = call->dim[1],
        .n = call->dim[2],
        .scale = args->scale,
        .causal = args->causal,
        .stream = row_streams(call),
    };
    const int64_t rows = call->dim[0] * a.s;
    const int team = cpu_team(call, rows, row_bytes(call));
#pragma omp parallel num_threads(team) if (team > 1)
    {
        row_piece y, dy;
#pragma omp for schedule(static, 16) /* causal rows grow */
        for (int64_t i = 0; i < rows; i++) row(&a, y, dy, i / a.s, i % a.s);
        if (a.stream) stream_fence();
    }
    return TRINE_OK;
}

CPU_KERNELS(softmax_backward) = { { .name = CPU_NAME, .launch = launch }, { 0 } };
