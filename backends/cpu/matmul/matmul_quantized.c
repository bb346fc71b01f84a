/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_quantized on the CPU: all rows of x, which are few, are laid out, and a task is a strip of rows of codes. */
#include "matmul_finish.h"
#include "quantized_dots.h"
#include "spec/places/matmul_quantized.h"

typedef struct job {
    const trine_call *call;
    quantized q;
    int64_t m, n;
    char *own; /* of the first thread */
    int64_t own_bytes, all_bytes;
    int team;
} job;

static job job_of(const trine_call *call) {
    const trine_matmul_quantized_args *args = call->args;
    job b = { .call = call,
              .q = quantized_of(&call->tensor[MATMUL_QUANTIZED_CODES], &call->tensor[MATMUL_QUANTIZED_SCALES],
                                trine_call_given(call, MATMUL_QUANTIZED_ZEROS),
                                trine_call_given(call, MATMUL_QUANTIZED_MINS), call->dim[MATMUL_QUANTIZED_DIM_K],
                                args->offset, args->format),
              .m = call->dim[MATMUL_QUANTIZED_DIM_M],
              .n = call->dim[MATMUL_QUANTIZED_DIM_N] };
    const quantized *q = &b.q;
    const int64_t read = b.n * q->groups * q->bytes, much = 1 << 30, x_bytes = cpu_round_up(b.m * q->x_row * 4, 256),
                  sums_bytes = cpu_round_up(b.m * q->sums_row * 4, 256);
    b.team = cpu_team(call, (b.n + STRIP - 1) / STRIP, (read < much ? read : much) * (1 + b.m / SIDE));
    b.own_bytes = strip_bytes(q, b.m);
    b.all_bytes = x_bytes + sums_bytes + b.team * b.own_bytes;
    b.q.x = call->workspace;
    b.q.sums = (float *)(void *)((char *)call->workspace + x_bytes);
    b.own = (char *)call->workspace + x_bytes + sums_bytes;
    return b;
}

static const char *refuse(const trine_call *call) {
    if (call->dim[MATMUL_QUANTIZED_DIM_M] > FEW) return "more than 16 rows";
    return call->dim[MATMUL_QUANTIZED_DIM_K] > (int64_t)1 << 40 ? "rows of more than 2^40 weights" : NULL;
}

static size_t workspace(const trine_call *call) { return (size_t)job_of(call).all_bytes; }

static void lay_out_rows(const void *context, int64_t begin, int64_t end, int thread) {
    const job *b = context;
    const trine_tensor *x = &b->call->tensor[MATMUL_QUANTIZED_X];
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        lay_out(&b->q, i, (const char *)x->data + i * x->stride[0] * (int64_t)trine_dtype_size(x->dtype), x->dtype);
}

INLINE void finish_outputs(const trine_call *call, const float *sums, int64_t i, int64_t j, int64_t columns) {
    const trine_matmul_quantized_args *args = call->args;
    const trine_tensor *y = &call->tensor[MATMUL_QUANTIZED_Y], *bias = &call->tensor[MATMUL_QUANTIZED_BIAS];
    const target t = { .bias = call->present >> MATMUL_QUANTIZED_BIAS & 1 ? bias->data : NULL,
                       .bias_type = bias->dtype,
                       .activation = args->activation };
    const factors f = { .whole = 1 };
    char *row = (char *)y->data + i * y->stride[0] * (int64_t)trine_dtype_size(y->dtype);
    if (y->dtype == TRINE_F32)
        finish_row(&t, sums, &f, row, NULL, j, columns, TRINE_F32);
    else if (y->dtype == TRINE_BF16)
        finish_row(&t, sums, &f, row, NULL, j, columns, TRINE_BF16);
    else
        finish_row(&t, sums, &f, row, NULL, j, columns, TRINE_F16);
}

static void strips(const void *context, int64_t begin, int64_t end, int thread) {
    const job *b = context;
    const strip_memory own = strip_memory_at(&b->q, b->m, b->own + thread * b->own_bytes);
    for (int64_t s = begin; s < end; s++) {
        const int64_t first = s * STRIP, columns = b->n - first < STRIP ? b->n - first : STRIP;
        strip_dots(&b->q, b->m, first, columns, &own);
        for (int64_t i = 0; i < b->m; i++) finish_outputs(b->call, own.sums + i * STRIP, i, first, columns);
    }
}

static trine_status launch(const trine_call *call) {
    const job b = job_of(call);
    cpu_shares(call, cpu_team(call, b.m, b.m * b.q.x_row * 8), b.m, lay_out_rows, &b);
    cpu_tasks(call, b.team, (b.n + STRIP - 1) / STRIP, strips, &b);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    (void)call;
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, SIDE);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_M, FEW);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, SIDE);
    trine_kernel_edge(edges, MATMUL_QUANTIZED_DIM_N, STRIP);
}

CPU_KERNELS(matmul_quantized) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
