/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_masked on the CPU: a row of weights at a time, and of a few rows of x those whose gate is open. */
#include "dots.h"
#include "spec/places/matvec_masked.h"

enum { COLUMNS = 16 }; /* of a task, which is the share of a thread that is free */

INLINE void column(const trine_call *call, int64_t first, int64_t last, int64_t j, trine_dtype T) {
    const trine_tensor *x = &call->tensor[MATVEC_MASKED_X], *gate = &call->tensor[MATVEC_MASKED_GATE],
                       *y = &call->tensor[MATVEC_MASKED_Y];
    const void *open[DOTS_MOST];
    void *to[DOTS_MOST];
    float factor[DOTS_MOST], sum[DOTS_MOST];
    int count = 0;
    for (int64_t i = first; i < last; i++) {
        const float g = sload(dots_row(gate, i), T, j);
        void *const row = dots_row(y, i);
        if (g == 0)
            sstore(row, T, j, 0);
        else
            open[count] = dots_row(x, i), to[count] = row, factor[count++] = g;
    }
    if (count == 0) return;
    dots(sum, open, count, dots_row(&call->tensor[MATVEC_MASKED_W], j), call->dim[MATVEC_MASKED_DIM_K], T);
    for (int i = 0; i < count; i++) sstore(to[i], T, j, factor[i] * sum[i]);
}

INLINE void columns(const trine_call *call, int64_t first, int64_t last, trine_dtype T) {
    const int64_t r = call->dim[MATVEC_MASKED_DIM_R];
    for (int64_t j = first; j < last; j++)
        for (int64_t i = 0; i < r; i += DOTS_MOST) column(call, i, i + DOTS_MOST < r ? i + DOTS_MOST : r, j, T);
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t n = call->dim[MATVEC_MASKED_DIM_N], end = last * COLUMNS < n ? last * COLUMNS : n;
    (void)thread;
    FOR_TYPE(call->type[MATVEC_MASKED_TYPE_T], columns, call, first * COLUMNS, end);
}

/* Of a column, for each row of x. */
static int64_t column_bytes(const trine_call *call) {
    return call->dim[MATVEC_MASKED_DIM_K] * (int64_t)vsize(call->type[MATVEC_MASKED_TYPE_T]);
}

static trine_status launch(const trine_call *call) {
    const int64_t n = call->dim[MATVEC_MASKED_DIM_N], count = (n + COLUMNS - 1) / COLUMNS;
    cpu_tasks(call, cpu_team(call, count, n * column_bytes(call) * call->dim[MATVEC_MASKED_DIM_R]), count, tasks, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    dots_edges(edges, MATVEC_MASKED_DIM_K);
    trine_kernel_edge(edges, MATVEC_MASKED_DIM_R, DOTS_MOST);
    trine_kernel_edge(edges, MATVEC_MASKED_DIM_N, COLUMNS);
    cpu_team_edge(edges, MATVEC_MASKED_DIM_N, column_bytes(call) * call->dim[MATVEC_MASKED_DIM_R]);
}

CPU_KERNELS(matvec_masked) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
