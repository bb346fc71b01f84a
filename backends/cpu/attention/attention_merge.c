/* SPDX-License-Identifier: Apache-2.0 */
/* attention_merge on the CPU: a row at a time. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "backends/cpu/core/vec_math.h"
#include "spec/places/attention_merge.h"

/* The weights of both states, which add up to 1, and the lse of the row. A state without weight is not read. */
typedef struct weights {
    float a, b, lse;
    bool none_of_a, none_of_b;
} weights;

static weights weights_of(float a, float b) {
    const float top = a > b ? a : b, base = top == -INFINITY ? 0 : top;
    const float x = vexp(vset(a - base))[0], y = vexp(vset(b - base))[0], sum = x + y;
    weights w = { .a = x / sum, .b = y / sum, .lse = base + vlog(vset(sum))[0] };
    w.none_of_a = a == -INFINITY, w.none_of_b = b == -INFINITY;
    return w;
}

INLINE vf weighted(const char *from, int64_t c, int n, float weight, bool none, trine_dtype S) {
    if (none) return vzero();
    return weight * (n == VL ? vload(from, S, c) : vloadn(from, S, c, n, 0));
}
INLINE void row_as(const char *a, const char *b, int64_t d, weights w, char *to, trine_dtype T, trine_dtype S) {
    for (int64_t c = 0; c < d; c += VL) {
        const int n = d - c < VL ? (int)(d - c) : VL;
        const vf sum = weighted(a, c, n, w.a, w.none_of_a, S) + weighted(b, c, n, w.b, w.none_of_b, S);
        if (n == VL)
            vstore(to, T, c, sum);
        else
            vstoren(to, T, c, n, sum);
    }
}
INLINE void row_to(const char *a, const char *b, int64_t d, weights w, char *to, trine_dtype S, trine_dtype T) {
    if (S == T)
        row_as(a, b, d, w, to, T, T);
    else
        row_as(a, b, d, w, to, T, TRINE_F32);
}

static char *row_at(const trine_tensor *t, int64_t n, int64_t i, int64_t head) {
    return (char *)t->data +
           (n * t->stride[0] + i * t->stride[1] + head * t->stride[2]) * (int64_t)trine_dtype_size(t->dtype);
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_tensor *t = call->tensor, *out = &t[ATTENTION_MERGE_OUT];
    const int64_t h = call->dim[ATTENTION_MERGE_DIM_H], sq = call->dim[ATTENTION_MERGE_DIM_SQ];
    (void)thread;
    for (int64_t row = first; row < last; row++) {
        const int64_t head = row % h, i = row / h % sq, n = row / h / sq;
        const float a = *(const float *)(void *)row_at(&t[ATTENTION_MERGE_LSE_A], n, head, i),
                    b = *(const float *)(void *)row_at(&t[ATTENTION_MERGE_LSE_B], n, head, i);
        const weights w = weights_of(a, b);
        FOR_TYPE(out->dtype, row_to, row_at(&t[ATTENTION_MERGE_OUT_A], n, i, head),
                 row_at(&t[ATTENTION_MERGE_OUT_B], n, i, head), call->dim[ATTENTION_MERGE_DIM_D], w,
                 row_at(out, n, i, head), t[ATTENTION_MERGE_OUT_A].dtype);
        if (call->present >> ATTENTION_MERGE_LSE & 1)
            *(float *)(void *)row_at(&t[ATTENTION_MERGE_LSE], n, head, i) = w.lse;
    }
}

static int64_t row_bytes_of(const trine_call *call) {
    return call->dim[ATTENTION_MERGE_DIM_D] *
           (int64_t)(2 * trine_dtype_size(call->tensor[ATTENTION_MERGE_OUT_A].dtype) +
                     trine_dtype_size(call->tensor[ATTENTION_MERGE_OUT].dtype));
}

static trine_status launch(const trine_call *call) {
    const int64_t count =
        call->dim[ATTENTION_MERGE_DIM_B] * call->dim[ATTENTION_MERGE_DIM_SQ] * call->dim[ATTENTION_MERGE_DIM_H];
    cpu_shares(call, cpu_team(call, count, count * row_bytes_of(call)), count, rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ATTENTION_MERGE_DIM_D, VL);
    cpu_team_edge(edges, ATTENTION_MERGE_DIM_H, row_bytes_of(call));
}

CPU_KERNELS(attention_merge) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
