/* SPDX-License-Identifier: Apache-2.0 */
/* argmax on the CPU. Rows are taken in parts, so that few long rows keep all threads busy; of elements that are equal
 * the first is taken, so that it does not matter who looks at which. */
#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec.h"
#include "spec/places/argmax.h"

enum {
    PART = 1 << 15, /* elements */
    RUN = 1024,     /* of which the largest is found before its place is */
};

/* Larger numbers for larger elements, or for smaller ones if `flip` has all bits: those of -0 and 0 are equal, and
 * NaN's is the largest. */
INLINE vi order_of(vf x, int32_t flip) {
    const vi bits = (vi)x, magnitude = bits & INT32_MAX, order = bits ^ ((bits >> 31) & INT32_MAX);
    return visel(magnitude > 0x7f800000, viset(INT32_MAX), visel(magnitude == 0, viset(0), order)) ^ flip;
}

INLINE vi orders_at(const void *row, int64_t i, int64_t end, int32_t flip, trine_dtype T) {
    if (i + VL <= end) return order_of(vload(row, T, i), flip);
    const int n = (int)(end - i);
    return visel(viota() < n, order_of(vloadn(row, T, i, n, 0), flip), viset(INT32_MIN));
}

INLINE int32_t largest(vi x) {
    int32_t most = x[0];
    for (int k = 1; k < VL; k++) most = x[k] > most ? x[k] : most;
    return most;
}

typedef struct best {
    int64_t at; /* -1: there is none */
    int32_t order;
} best;

/* Of elements first .. end-1 of a row. */
INLINE void find(const void *row, int64_t first, int64_t end, int32_t flip, best *best_out, trine_dtype T) {
    int64_t run = first;
    int32_t order = INT32_MIN;
    for (int64_t from = first; from < end; from += RUN) {
        const int64_t to = from + RUN < end ? from + RUN : end;
        vi most = viset(INT32_MIN);
        for (int64_t i = from; i < to; i += VL) {
            const vi x = orders_at(row, i, to, flip, T);
            most = visel(x > most, x, most);
        }
        const int32_t one = largest(most);
        if (one > order || from == first) order = one, run = from;
    }
    int64_t at = run;
    for (;; at += VL) {
        const vi x = orders_at(row, at, end, flip, T);
        if (!vany(x == order)) continue;
        int k = 0;
        while (x[k] != order) k++;
        *best_out = (best){ at + k, order };
        return;
    }
}

static int64_t parts_of(const trine_call *call) { return (call->dim[ARGMAX_DIM_N] + PART - 1) / PART; }

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const trine_argmax_args *args = call->args;
    const trine_tensor *x = &call->tensor[ARGMAX_X];
    const int64_t n = call->dim[ARGMAX_DIM_N], parts = parts_of(call);
    best *found = call->workspace;
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t from = k % parts * PART, to = from + PART < n ? from + PART : n;
        const char *row = (const char *)x->data + k / parts * x->stride[0] * (int64_t)vsize(x->dtype);
        FOR_TYPE(x->dtype, find, row, from, to, args->smallest ? -1 : 0, &found[k]);
    }
}

static size_t workspace(const trine_call *call) {
    return (size_t)(call->dim[ARGMAX_DIM_R] * parts_of(call)) * sizeof(best);
}

static void put(const trine_call *call, int64_t row, int64_t at) {
    const trine_tensor *x = &call->tensor[ARGMAX_X], *indices = &call->tensor[ARGMAX_INDICES],
                       *values = &call->tensor[ARGMAX_VALUES];
    const size_t size = vsize(x->dtype);
    if (indices->dtype == TRINE_I32)
        ((int32_t *)indices->data)[row] = (int32_t)at;
    else
        ((int64_t *)indices->data)[row] = at;
    if (call->present >> ARGMAX_VALUES & 1)
        memcpy((char *)values->data + row * (int64_t)size,
               (const char *)x->data + (row * x->stride[0] + at) * (int64_t)size, size);
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[ARGMAX_DIM_R], parts = parts_of(call),
                  bytes = r * call->dim[ARGMAX_DIM_N] * (int64_t)vsize(call->type[ARGMAX_TYPE_T]);
    const best *found = call->workspace;
    cpu_shares(call, cpu_team(call, r * parts, bytes), r * parts, rows, call);
    for (int64_t i = 0; i < r; i++, found += parts) {
        best one = found[0];
        for (int64_t k = 1; k < parts; k++)
            if (found[k].order > one.order) one = found[k];
        put(call, i, one.at);
    }
    return TRINE_OK;
}

static const char *refuse(const trine_call *call) {
    return call->type[ARGMAX_TYPE_I] == TRINE_I32 && call->dim[ARGMAX_DIM_N] > INT32_MAX
               ? "rows of more than 2^31 - 1 elements with indices of 32 bits"
               : NULL;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ARGMAX_DIM_N, VL);
    trine_kernel_edge(edges, ARGMAX_DIM_N, RUN);
    trine_kernel_edge(edges, ARGMAX_DIM_N, PART);
    cpu_team_edge(edges, ARGMAX_DIM_R, call->dim[ARGMAX_DIM_N] * (int64_t)vsize(call->type[ARGMAX_TYPE_T]));
}

CPU_KERNELS(argmax) = { { CPU_NAME, refuse, workspace, launch, .edges = edges }, { 0 } };
