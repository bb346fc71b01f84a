/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias_backward on the CPU. */
#include "bias.h"
#include "backends/cpu/core/columns.h"
#include "backends/cpu/elementwise/gelu.h"
#include "spec/places/gelu_bias_backward.h"

typedef struct gelu_bias_gradient {
    const trine_tensor *dy, *x, *bias, *dx, *dbias;
    int64_t r, n;
    int32_t form;
    bool stream;
} gelu_bias_gradient;

/* `sum`: of dbias of these columns, NULL if it is not asked for. */
INLINE void piece_of(const gelu_bias_gradient *a, int64_t i, int64_t at, int count, float *sum, int32_t form,
                     trine_dtype B, trine_dtype T) {
    const void *const dy = row_at(a->dy, i), *const x = row_at(a->x, i), *const bias = a->bias->data;
    const row_sink dx = row_sink_of(a->dx, i, at, a->stream);
    ROW_EACH(count, j, k, m, {
        vf unused;
        const vf slope = vgelu_slope(form, row_get(x, T, at + j, m) + row_get(bias, B, at + j, m), &unused);
        const vf d = row_get(dy, T, at + j, m) * slope;
        row_put(dx, T, j, m, d);
        if (sum) *(vf_any *)(sum + j) += d;
    });
}

static void piece(const void *op, int64_t i, int64_t at, int count, const double *total,
                  float *const sum[COLUMNS_SUMS]) {
    const gelu_bias_gradient *a = op;
    (void)total;
    if (a->form == TRINE_GELU_TANH)
        FOR_BIAS(a->x->dtype, a->bias->dtype, piece_of, a, i, at, count, sum[0], TRINE_GELU_TANH);
    else
        FOR_BIAS(a->x->dtype, a->bias->dtype, piece_of, a, i, at, count, sum[0], TRINE_GELU_ERF);
}

static gelu_bias_gradient gradient_of(const trine_call *call) {
    const trine_gelu_bias_backward_args *args = call->args;
    return (gelu_bias_gradient){ .dy = row_tensor(call, GELU_BIAS_BACKWARD_DY),
                                 .x = row_tensor(call, GELU_BIAS_BACKWARD_X),
                                 .bias = row_tensor(call, GELU_BIAS_BACKWARD_BIAS),
                                 .dx = row_tensor(call, GELU_BIAS_BACKWARD_DX),
                                 .dbias = row_tensor(call, GELU_BIAS_BACKWARD_DBIAS),
                                 .r = call->dim[GELU_BIAS_BACKWARD_DIM_R],
                                 .n = call->dim[GELU_BIAS_BACKWARD_DIM_N],
                                 .form = args->form };
}

static size_t workspace(const trine_call *call) {
    const gelu_bias_gradient a = gradient_of(call);
    return columns_workspace(call, a.r, a.n, a.dbias != NULL);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    columns_edges(edges, row_down(call), row_along(call));
}

static trine_status launch(const trine_call *call) {
    gelu_bias_gradient a = gradient_of(call);
    a.stream = row_streams(call);
    columns_job job = { .op = &a, .piece = piece, .r = a.r, .n = a.n, .out = { a.dbias }, .stream = a.stream };
    columns_run(call, &job, call->workspace);
    return TRINE_OK;
}

CPU_KERNELS(gelu_bias_backward) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges },
                                    { 0 } };
