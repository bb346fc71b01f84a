/* SPDX-License-Identifier: Apache-2.0 */
/* dropout_add on the CPU. */
#include "dropout_add.h"
#include "spec/places/dropout_add.h"

typedef struct dropout_add {
    const trine_tensor *x, *bias, *residual, *y;
    int64_t n;
    dropout dropout;
    bool all, stream; /* all: p = 0 */
} dropout_add;

/* The next elements of a piece, DROPOUT_RUN at most; keep: NULL if all are kept. */
INLINE void run_of(const dropout_add *a, int64_t i, int64_t at, int count, const int32_t *keep, trine_dtype B,
                   trine_dtype T) {
    const void *const x = row_at(a->x, i), *const bias = a->bias ? a->bias->data : NULL,
                      *const residual = a->residual ? row_at(a->residual, i) : NULL;
    const row_sink y = row_sink_of(a->y, i, at, a->stream);
    ROW_EACH(count, j, k, m, {
        vf h = row_get(x, T, at + j, m);
        if (bias) h += row_get(bias, B, at + j, m);
        if (keep) h = dropout_apply(&a->dropout, h, keep + j);
        if (residual) h += row_get(residual, T, at + j, m);
        row_put(y, T, j, m, h);
    });
}

static void piece(const void *op, int64_t i, int64_t at, int count) {
    const dropout_add *a = op;
    int32_t buffer[DROPOUT_BUFFER];
    for (int base = 0; base < count; base += DROPOUT_RUN) {
        const int run = count - base < DROPOUT_RUN ? count - base : DROPOUT_RUN;
        const int32_t *keep = a->all ? NULL : dropout_add_keep(&a->dropout, i * a->n + at + base, run, buffer);
        FOR_BIAS(a->x->dtype, a->bias ? a->bias->dtype : TRINE_F32, run_of, a, i, at + base, run, keep);
    }
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    dropout_edges(edges, row_along(call));
}

static trine_status launch(const trine_call *call) {
    const trine_dropout_add_args *args = call->args;
    const dropout_add a = { .x = row_tensor(call, DROPOUT_ADD_X),
                            .bias = row_tensor(call, DROPOUT_ADD_BIAS),
                            .residual = row_tensor(call, DROPOUT_ADD_RESIDUAL),
                            .y = row_tensor(call, DROPOUT_ADD_Y),
                            .n = call->dim[DROPOUT_ADD_DIM_N],
                            .dropout =
                                dropout_add_of(args->p, args->seed, args->offset, row_tensor(call, DROPOUT_ADD_PHILOX)),
                            .all = args->p == 0,
                            .stream = row_streams(call) };
    bias_run(call,
             &(bias_pass){ .op = &a, .piece = piece, .r = call->dim[DROPOUT_ADD_DIM_R], .n = a.n, .stream = a.stream });
    return TRINE_OK;
}

CPU_KERNELS(dropout_add) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
