/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine on the CPU: a token's sums, a vector at a time, in the order of its slots. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/moe_combine.h"

/* A token's slots. */
typedef struct slots {
    const int32_t *place;
    const float *weight; /* NULL: all 1 */
    int64_t k, p, n;
} slots;

INLINE vf sum_of(const slots *s, const trine_tensor *x, int64_t at, int n, trine_dtype T) {
    vf sum = vzero();
    for (int64_t a = 0; a < s->k; a++) {
        if (s->place[a] < 0 || s->place[a] >= s->p) continue;
        const char *row = (const char *)x->data + s->place[a] * x->stride[0] * (int64_t)vsize(T);
        const vf v = n < VL ? vloadn(row, T, at, n, 0) : vload(row, T, at);
        sum = s->weight ? vfma(vset(s->weight[a]), v, sum) : sum + v;
    }
    return sum;
}

INLINE void combine(const slots *s, const trine_tensor *x, void *y, trine_dtype out, trine_dtype T) {
    for (int64_t j = 0; j < s->n; j += VL) {
        const int n = s->n - j < VL ? (int)(s->n - j) : VL;
        const vf sum = sum_of(s, x, j, n, T);
        if (n < VL)
            vstoren(y, out == T ? T : TRINE_F32, j, n, sum);
        else
            vstore(y, out == T ? T : TRINE_F32, j, sum);
    }
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_tensor *x = &call->tensor[MOE_COMBINE_X], *places = &call->tensor[MOE_COMBINE_PLACES],
                       *weights = &call->tensor[MOE_COMBINE_WEIGHTS], *y = &call->tensor[MOE_COMBINE_Y];
    const bool weighted = call->present >> MOE_COMBINE_WEIGHTS & 1;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const slots s = { .place = (const int32_t *)places->data + i * places->stride[0],
                          .weight = weighted ? (const float *)weights->data + i * weights->stride[0] : NULL,
                          .k = call->dim[MOE_COMBINE_DIM_K],
                          .p = call->dim[MOE_COMBINE_DIM_P],
                          .n = call->dim[MOE_COMBINE_DIM_N] };
        void *to = (char *)y->data + i * y->stride[0] * (int64_t)vsize(y->dtype);
        FOR_TYPE(x->dtype, combine, &s, x, to, y->dtype);
    }
}

static int64_t token_bytes(const trine_call *call) {
    return (call->dim[MOE_COMBINE_DIM_K] + 1) * call->dim[MOE_COMBINE_DIM_N] *
           (int64_t)vsize(call->tensor[MOE_COMBINE_X].dtype);
}

static trine_status launch(const trine_call *call) {
    const int64_t t = call->dim[MOE_COMBINE_DIM_T];
    cpu_shares(call, cpu_team(call, t, t * token_bytes(call)), t, rows, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MOE_COMBINE_DIM_N, VL);
    cpu_team_edge(edges, MOE_COMBINE_DIM_T, token_bytes(call));
}

CPU_KERNELS(moe_combine) = { { .name = CPU_NAME, .launch = launch, .edges = edges }, { 0 } };
