/* SPDX-License-Identifier: Apache-2.0 */
/* matvec_rows on the CPU: where several rows of x have one list, a row of weights meets a few of them at once. */
#include <math.h>

#include "dots.h"
#include "spec/places/matvec_rows.h"

enum { PLACES = 8 }; /* of a task, which is the share of a thread that is free */

INLINE int64_t place_at(const trine_tensor *rows, int64_t i, int64_t a) {
    const int64_t at = i * rows->stride[0] + a * rows->stride[1];
    return rows->dtype == TRINE_I64 ? ((const int64_t *)rows->data)[at] : ((const int32_t *)rows->data)[at];
}

/* Output a of rows first .. last-1 of x, which are DOTS_MOST at most and have one list. */
INLINE void output(const trine_call *call, int64_t first, int64_t last, int64_t a, trine_dtype T) {
    const trine_matvec_rows_args *args = call->args;
    const trine_tensor *x = &call->tensor[MATVEC_ROWS_X], *w = &call->tensor[MATVEC_ROWS_W],
                       *bias = trine_call_given(call, MATVEC_ROWS_BIAS), *y = &call->tensor[MATVEC_ROWS_Y];
    const int64_t place = place_at(&call->tensor[MATVEC_ROWS_ROWS], first, a);
    const int count = (int)(last - first);
    const void *vector[DOTS_MOST];
    float sum[DOTS_MOST];
    for (int i = 0; i < count; i++) vector[i] = dots_row(x, first + i), sum[i] = args->pad && place == -1 ? 0 : NAN;
    if (place >= 0 && place < call->dim[MATVEC_ROWS_DIM_M]) {
        dots(sum, vector, count, dots_row(w, place), call->dim[MATVEC_ROWS_DIM_K], T);
        for (int i = 0; bias && i < count; i++) sum[i] += sload(bias->data, T, place);
    }
    for (int i = 0; i < count; i++) sstore(dots_row(y, first + i), y->dtype, a, sum[i]);
}

INLINE void outputs(const trine_call *call, int64_t step, int64_t first, int64_t last, trine_dtype T) {
    const int64_t t = call->dim[MATVEC_ROWS_DIM_T], r = call->dim[MATVEC_ROWS_DIM_R];
    for (int64_t at = first; at < last; at++) {
        const int64_t i = at / r * step;
        output(call, i, i + step < t ? i + step : t, at % r, T);
    }
}

/* Rows of x that share a list, at most so many at once. */
static int64_t step_of(const trine_call *call) { return call->tensor[MATVEC_ROWS_ROWS].stride[0] == 0 ? DOTS_MOST : 1; }

static int64_t outputs_of(const trine_call *call) {
    const int64_t step = step_of(call);
    return (call->dim[MATVEC_ROWS_DIM_T] + step - 1) / step * call->dim[MATVEC_ROWS_DIM_R];
}

static void tasks(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t all = outputs_of(call), end = last * PLACES < all ? last * PLACES : all;
    (void)thread;
    FOR_TYPE(call->type[MATVEC_ROWS_TYPE_T], outputs, call, step_of(call), first * PLACES, end);
}

static int64_t place_bytes(const trine_call *call) {
    return call->dim[MATVEC_ROWS_DIM_K] * (int64_t)vsize(call->type[MATVEC_ROWS_TYPE_T]);
}

static trine_status launch(const trine_call *call) {
    const int64_t all = outputs_of(call), count = (all + PLACES - 1) / PLACES;
    cpu_tasks(call, cpu_team(call, count, all * place_bytes(call)), count, tasks, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    dots_edges(edges, MATVEC_ROWS_DIM_K);
    trine_kernel_edge(edges, MATVEC_ROWS_DIM_T, DOTS_MOST);
    trine_kernel_edge(edges, MATVEC_ROWS_DIM_R, PLACES);
    cpu_team_edge(edges, MATVEC_ROWS_DIM_R, place_bytes(call));
}

CPU_KERNELS(matvec_rows) = { { CPU_NAME, NULL, NULL, launch, .edges = edges }, { 0 } };
