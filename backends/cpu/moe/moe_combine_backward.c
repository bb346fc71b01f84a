/* SPDX-License-Identifier: Apache-2.0 */
/* moe_combine_backward on the CPU: the slots that name a place are chained in their order, then each place's row is
 * their sum, and each slot's weight has the product of two rows. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/moe_combine_backward.h"

enum { PARTIAL = 2 }; /* vectors of partial sums of a product of rows */

typedef struct slots {
    const trine_call *call;
    int64_t t, k, p, n;
    int32_t *first, *next; /* the first slot of each place, and that which follows a slot; -1: none */
} slots;

static slots slots_of(const trine_call *call) {
    const int64_t p = call->dim[MOE_COMBINE_BACKWARD_DIM_P];
    int32_t *memory = call->workspace;
    return (slots){ .call = call,
                    .t = call->dim[MOE_COMBINE_BACKWARD_DIM_T],
                    .k = call->dim[MOE_COMBINE_BACKWARD_DIM_K],
                    .p = p,
                    .n = call->dim[MOE_COMBINE_BACKWARD_DIM_N],
                    .first = memory,
                    .next = memory ? memory + p : NULL };
}

static const char *row_of(const trine_tensor *t, int64_t i) {
    return (const char *)t->data + i * t->stride[0] * (int64_t)vsize(t->dtype);
}

static int64_t place_of(const slots *s, int64_t token, int64_t a) {
    const trine_tensor *places = &s->call->tensor[MOE_COMBINE_BACKWARD_PLACES];
    const int64_t place = ((const int32_t *)places->data)[token * places->stride[0] + a];
    return place >= 0 && place < s->p ? place : -1;
}

static void chain(const slots *s) {
    for (int64_t q = 0; q < s->p; q++) s->first[q] = -1;
    for (int64_t slot = s->t * s->k - 1; slot >= 0; slot--) {
        const int64_t place = place_of(s, slot / s->k, slot % s->k);
        if (place < 0) continue;
        s->next[slot] = s->first[place];
        s->first[place] = (int32_t)slot;
    }
}

/* The vector of dx from element j of place q on; `D`: the type of dy. */
INLINE vf sum_of(const slots *s, int64_t q, int64_t j, int n, trine_dtype D) {
    const trine_tensor *dy = &s->call->tensor[MOE_COMBINE_BACKWARD_DY],
                       *weights = trine_call_given(s->call, MOE_COMBINE_BACKWARD_WEIGHTS);
    vf sum = vzero();
    for (int32_t slot = s->first[q]; slot >= 0; slot = s->next[slot]) {
        const int64_t token = slot / s->k;
        const char *row = row_of(dy, token);
        const vf x = n < VL ? vloadn(row, D, j, n, 0) : vload(row, D, j);
        sum = weights ? vfma(vset(((const float *)weights->data)[token * weights->stride[0] + slot % s->k]), x, sum)
                      : sum + x;
    }
    return sum;
}

INLINE void place_row(const slots *s, int64_t q, trine_dtype out, trine_dtype D) {
    char *to = (char *)row_of(&s->call->tensor[MOE_COMBINE_BACKWARD_DX], q);
    for (int64_t j = 0; j < s->n; j += VL) {
        const int n = s->n - j < VL ? (int)(s->n - j) : VL;
        const vf sum = sum_of(s, q, j, n, D);
        if (n < VL)
            vstoren(to, out, j, n, sum);
        else
            vstore(to, out, j, sum);
    }
}

static void places(const void *context, int64_t first, int64_t last, int thread) {
    const slots *s = context;
    (void)thread;
    for (int64_t q = first; q < last; q++)
        FOR_TYPE(s->call->tensor[MOE_COMBINE_BACKWARD_DY].dtype, place_row, s, q,
                 s->call->tensor[MOE_COMBINE_BACKWARD_DX].dtype);
}

INLINE void product(const void *a, trine_dtype A, const void *b, int64_t n, float *to, trine_dtype T) {
    const trine_dtype D = A == T ? T : TRINE_F32;
    vf sum[PARTIAL] = { 0 };
    int64_t j = 0;
    for (; j + PARTIAL * VL <= n; j += PARTIAL * VL)
        for (int v = 0; v < PARTIAL; v++) sum[v] = vfma(vload(a, D, j + v * VL), vload(b, T, j + v * VL), sum[v]);
    for (; j + VL <= n; j += VL) sum[0] = vfma(vload(a, D, j), vload(b, T, j), sum[0]);
    if (j < n) sum[1] = vfma(vloadn(a, D, j, (int)(n - j), 0), vloadn(b, T, j, (int)(n - j), 0), sum[1]);
    *to = vhsum(sum[0] + sum[1]);
}

static void tokens(const void *context, int64_t first, int64_t last, int thread) {
    const slots *s = context;
    const trine_tensor *dy = &s->call->tensor[MOE_COMBINE_BACKWARD_DY], *x = &s->call->tensor[MOE_COMBINE_BACKWARD_X],
                       *dweights = &s->call->tensor[MOE_COMBINE_BACKWARD_DWEIGHTS];
    (void)thread;
    for (int64_t i = first; i < last; i++)
        for (int64_t a = 0; a < s->k; a++) {
            float *to = (float *)dweights->data + i * dweights->stride[0] + a;
            const int64_t place = place_of(s, i, a);
            *to = 0;
            if (place >= 0) FOR_TYPE(x->dtype, product, row_of(dy, i), dy->dtype, row_of(x, place), s->n, to);
        }
}

static int64_t row_bytes(const trine_call *call) {
    return 2 * call->dim[MOE_COMBINE_BACKWARD_DIM_N] * (int64_t)vsize(call->tensor[MOE_COMBINE_BACKWARD_X].dtype);
}

static const char *refuse(const trine_call *call) {
    const int64_t *dim = call->dim;
    if (dim[MOE_COMBINE_BACKWARD_DIM_P] > INT32_MAX) return "more than 2^31 - 1 places";
    return dim[MOE_COMBINE_BACKWARD_DIM_K] > 0 &&
                   dim[MOE_COMBINE_BACKWARD_DIM_T] > INT32_MAX / dim[MOE_COMBINE_BACKWARD_DIM_K]
               ? "more than 2^31 - 1 slots"
               : NULL;
}

static size_t workspace(const trine_call *call) {
    const int64_t *dim = call->dim, slots = dim[MOE_COMBINE_BACKWARD_DIM_T] * dim[MOE_COMBINE_BACKWARD_DIM_K];
    return (size_t)(dim[MOE_COMBINE_BACKWARD_DIM_P] + slots) * sizeof(int32_t);
}

static trine_status launch(const trine_call *call) {
    const slots s = slots_of(call);
    chain(&s);
    cpu_shares(call, cpu_team(call, s.p, s.p * row_bytes(call)), s.p, places, &s);
    if (trine_call_given(call, MOE_COMBINE_BACKWARD_DWEIGHTS))
        cpu_shares(call, cpu_team(call, s.t, s.t * s.k * row_bytes(call)), s.t, tokens, &s);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, VL);
    trine_kernel_edge(edges, MOE_COMBINE_BACKWARD_DIM_N, PARTIAL * VL);
    cpu_team_edge(edges, MOE_COMBINE_BACKWARD_DIM_P, row_bytes(call));
}

CPU_KERNELS(moe_combine_backward) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
