/* SPDX-License-Identifier: Apache-2.0 */
/* dequantize on the CPU: 16 codes at a time. */
#include "expand.h"
#include "spec/places/dequantize.h"

typedef struct job {
    const trine_call *call;
    int64_t n, groups; /* of a group; in a row */
    int bits, offset;
    bool sign, e2m1;
    trine_dtype type; /* of codes */
} job;

static job job_of(const trine_call *call) {
    const trine_dequantize_args *args = call->args;
    const int64_t k = call->dim[DEQUANTIZE_DIM_K], groups = call->dim[DEQUANTIZE_DIM_GROUPS];
    return (job){ .call = call,
                  .n = groups > 0 ? k / groups : 0,
                  .groups = groups,
                  .bits = k > 0 ? (int)(8 * call->dim[DEQUANTIZE_DIM_BYTES] * groups / k) : 8,
                  .offset = args->offset,
                  .sign = call->type[DEQUANTIZE_TYPE_C] == TRINE_I8,
                  .e2m1 = args->format == TRINE_CODES_E2M1,
                  .type = call->type[DEQUANTIZE_TYPE_C] };
}

static float load_number(const trine_call *call, int tensor, int64_t i, int64_t g, float absent) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? codes_number(t, i, g) : absent;
}

INLINE void group(const job *b, int64_t i, int64_t g, trine_dtype T) {
    const trine_tensor *y = &b->call->tensor[DEQUANTIZE_Y];
    char *row = (char *)y->data + i * y->stride[0] * (int64_t)vsize(T);
    const uint8_t *from = (const uint8_t *)codes_at(&b->call->tensor[DEQUANTIZE_CODES], i, g);
    const affine a = { vset(load_number(b->call, DEQUANTIZE_SCALES, i, g, 0)),
                       vset(load_number(b->call, DEQUANTIZE_ZEROS, i, g, 0)),
                       vset(load_number(b->call, DEQUANTIZE_MINS, i, g, -0.0f)),
                       viset(b->sign ? 1 << (b->bits - 1) : 0),
                       viset(b->offset),
                       b->e2m1,
                       b->type };
    CODES_FOR_BITS(b->bits, expand, a, from, b->n, row, g * b->n, T);
}

static void some(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    (void)thread;
    for (int64_t item = first; item < last; item++)
        FOR_TYPE(b->call->tensor[DEQUANTIZE_Y].dtype, group, b, item / b->groups, item % b->groups);
}

static int64_t row_bytes(const trine_call *call) {
    return call->dim[DEQUANTIZE_DIM_K] * (int64_t)(trine_dtype_size(call->type[DEQUANTIZE_TYPE_T]) + 1);
}

static trine_status launch(const trine_call *call) {
    const job b = job_of(call);
    const int64_t r = call->dim[DEQUANTIZE_DIM_R];
    cpu_shares(call, cpu_team(call, r * b.groups, r * row_bytes(call)), r * b.groups, some, &b);
    return TRINE_OK;
}

/* Units of a group; and the second thread. */
static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, DEQUANTIZE_DIM_K, CODES_UNIT);
    cpu_team_edge(edges, DEQUANTIZE_DIM_R, row_bytes(call));
}

CPU_KERNELS(dequantize) = { { CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
