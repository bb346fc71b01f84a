/* SPDX-License-Identifier: Apache-2.0 */
/* gelu_bias on the CPU. */
#include "bias.h"
#include "backends/cpu/elementwise/gelu.h"
#include "spec/places/gelu_bias.h"

typedef struct gelu_bias {
    const trine_tensor *x, *bias, *y;
    int32_t form;
    bool stream;
} gelu_bias;

INLINE void piece_of(const gelu_bias *a, const void *x, row_sink y, int64_t at, int count, int32_t form, trine_dtype B,
                     trine_dtype T) {
    const void *const bias = a->bias->data;
    ROW_EACH(count, j, k, m, row_put(y, T, j, m, vgelu(form, row_get(x, T, at + j, m) + row_get(bias, B, at + j, m))));
}

static void piece(const void *op, int64_t i, int64_t at, int count) {
    const gelu_bias *a = op;
    const void *x = row_at(a->x, i);
    const row_sink y = row_sink_of(a->y, i, at, a->stream);
    if (a->form == TRINE_GELU_TANH)
        FOR_BIAS(a->x->dtype, a->bias->dtype, piece_of, a, x, y, at, count, TRINE_GELU_TANH);
    else
        FOR_BIAS(a->x->dtype, a->bias->dtype, piece_of, a, x, y, at, count, TRINE_GELU_ERF);
}

static trine_status launch(const trine_call *call) {
    const trine_gelu_bias_args *args = call->args;
    const gelu_bias a = { .x = row_tensor(call, GELU_BIAS_X),
                          .bias = row_tensor(call, GELU_BIAS_BIAS),
                          .y = row_tensor(call, GELU_BIAS_Y),
                          .form = args->form,
                          .stream = row_streams(call) };
    bias_run(call, &(bias_pass){ .op = &a,
                                 .piece = piece,
                                 .r = call->dim[GELU_BIAS_DIM_R],
                                 .n = call->dim[GELU_BIAS_DIM_N],
                                 .stream = a.stream });
    return TRINE_OK;
}

CPU_KERNELS(gelu_bias) = { { .name = CPU_NAME, .launch = launch, .edges = row_edges }, { 0 } };
