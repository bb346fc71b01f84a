/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add_backward on the CPU. */
#include "backends/cpu/core/columns.h"
#include "dropout_add.h"
#include "spec/places/dropout_add_backward.h"

typedef struct dropout_add_gradient {
    const trine_tensor *dy, *dx, *dresidual, *dbias;
    int64_t r, n;
    dropout dropout;
    bool all, stream; /* all: p = 0 */
} dropout_add_gradient;

/* The next elements of a row, DROPOUT_RUN at most; keep: NULL if all are kept; sum: of dbias of these columns,
 * NULL if it is not asked for. */
INLINE void run_as(const dropout_add_gradient *a, int64_t i, int64_t at, int count, const int32_t *keep, float *sum,
                   trine_dtype T) {
    const void *const dy = row_at(a->dy, i);
    const row_sink dx = row_sink_of(a->dx, i, at, a->stream);
    const bool copies = a->dresidual != NULL;
    const row_sink copy = row_sink_of(copies ? a->dresidual : a->dx, i, at, a->stream);
    ROW_EACH(count, j, k, m, {
        vf d = row_get(dy, T, at + j, m);
        if (copies) row_put(copy, T, j, m, d);
        if (keep) d = dropout_apply(&a->dropout, d, keep + j);
        row_put(dx, T, j, m, d);
        if (sum) *(vf_any *)(sum + j) += d;
    });
}

static void piece(const void *op, int64_t i, int64_t at, int count, const double *total,
                  float *const sum[COLUMNS_SUMS]) {
    const dropout_add_gradient *a = op;
    int32_t buffer[DROPOUT_BUFFER];
    (void)total;
    for (int base = 0; base < count; base += DROPOUT_RUN) {
        const int run = count - base < DROPOUT_RUN ? count - base : DROPOUT_RUN;
        const int32_t *keep = a->all ? NULL : dropout_add_keep(&a->dropout, i * a->n + at + base, run, buffer);
        FOR_TYPE(a->dy->dtype, run_as, a, i, at + base, run, keep, sum[0] ? sum[0] + base : NULL);
    }
}

static dropout_add_gradient gradient_of(const trine_call *call) {
    const trine_dropout_add_backward_args *args = call->args;
    return (dropout_add_gradient){ .dy = row_tensor(call, DROPOUT_ADD_BACKWARD_DY),
                                   .dx = row_tensor(call, DROPOUT_ADD_BACKWARD_DX),
                                   .dresidual = row_tensor(call, DROPOUT_ADD_BACKWARD_DRESIDUAL),
                                   .dbias = row_tensor(call, DROPOUT_ADD_BACKWARD_DBIAS),
                                   .r = call->dim[DROPOUT_ADD_BACKWARD_DIM_R],
                                   .n = call->dim[DROPOUT_ADD_BACKWARD_DIM_N],
                                   .all = args->p == 0 };
}

static size_t workspace(const trine_call *call) {
    const dropout_add_gradient a = gradient_of(call);
    return columns_workspace(call, a.r, a.n, a.dbias != NULL);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    columns_edges(edges, row_down(call), row_along(call));
    dropout_edges(edges, row_along(call));
}

static trine_status launch(const trine_call *call) {
    const trine_dropout_add_backward_args *args = call->args;
    dropout_add_gradient a = gradient_of(call);
    a.dropout = dropout_add_of(args->p, args->seed, args->offset, row_tensor(call, DROPOUT_ADD_BACKWARD_PHILOX));
    a.stream = row_streams(call);
    columns_job job = { .op = &a, .piece = piece, .r = a.r, .n = a.n, .out = { a.dbias }, .stream = a.stream };
    columns_run(call, &job, call->workspace);
    return TRINE_OK;
}

CPU_KERNELS(dropout_add_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                      { 0 } };
