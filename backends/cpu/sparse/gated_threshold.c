/* SPDX-License-Identifier: Apache-2.0 */
/* gated_threshold on the CPU: a row a vector at a time; its list, where one is asked for, as it goes. */
#include "backends/cpu/core/cpu.h"
#include "gate.h"
#include "spec/places/gated_threshold.h"

enum { BLOCK = 1024, WORK = 16 /* bytes that the work on an element stands for */ };

/* A row's memory; NULL what was not asked for. */
typedef struct row {
    const void *x;
    void *y;
    const float *thresholds;
    int64_t step; /* of thresholds, 0: one for all */
    uint8_t *mask;
    int32_t *columns;
    int64_t count; /* of those kept so far */
} row;

INLINE vf threshold_at(const row *a, float threshold, int64_t j, int n) {
    if (a->thresholds == NULL) return vset(threshold);
    if (a->step == 0) return vset(*a->thresholds);
    return n < VL ? vloadn(a->thresholds, TRINE_F32, j, n, 0) : vload(a->thresholds, TRINE_F32, j);
}

/* Elements j .. j+n-1. A list's next place is never behind the element that is looked at, so that it may be written
 * before it is known whether it stays. */
INLINE void step(row *a, const trine_gated_threshold_args *args, int64_t j, int n, trine_dtype T) {
    const vf x = n < VL ? vloadn(a->x, T, j, n, 0) : vload(a->x, T, j), y = gate_of(args->activation, x);
    const vi left_out = vabs(y) <= threshold_at(a, args->threshold, j, n);
    const vf kept = vsel(left_out, vzero(), y);
    if (n < VL)
        vstoren(a->y, T, j, n, kept);
    else
        vstore(a->y, T, j, kept);
    for (int i = 0; a->mask && i < n; i++) a->mask[j + i] = (uint8_t)(1 + left_out[i]);
    for (int i = 0; a->columns && i < n; i++) {
        a->columns[a->count] = (int32_t)(j + i);
        a->count += 1 + left_out[i];
    }
    for (int i = 0; !a->columns && i < n; i++) a->count += 1 + left_out[i];
}

INLINE void steps(row *a, const trine_gated_threshold_args *args, int64_t first, int64_t last, trine_dtype T) {
    int64_t j = first;
    for (; j + VL <= last; j += VL) step(a, args, j, VL, T);
    if (j < last) step(a, args, j, (int)(last - j), T);
}

static void *row_of(const trine_call *call, int tensor, int64_t i) {
    const trine_tensor *t = trine_call_given(call, tensor);
    return t ? (char *)t->data + i * t->stride[0] * (int64_t)trine_dtype_size(t->dtype) : NULL;
}

static row row_at(const trine_call *call, int64_t i) {
    const trine_tensor *thresholds = trine_call_given(call, GATED_THRESHOLD_THRESHOLDS);
    return (row){ .x = row_of(call, GATED_THRESHOLD_X, i),
                  .y = row_of(call, GATED_THRESHOLD_Y, i),
                  .thresholds = thresholds ? thresholds->data : NULL,
                  .step = thresholds ? thresholds->stride[0] : 0,
                  .mask = row_of(call, GATED_THRESHOLD_MASK, i),
                  .columns = row_of(call, GATED_THRESHOLD_COLUMNS, i) };
}

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t n = call->dim[GATED_THRESHOLD_DIM_N];
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        row a = row_at(call, i);
        FOR_TYPE(call->type[GATED_THRESHOLD_TYPE_T], steps, &a, call->args, 0, n);
        for (int64_t j = a.count; a.columns && j < n; j++) a.columns[j] = -1;
        int32_t *const count = row_of(call, GATED_THRESHOLD_COUNTS, i);
        if (count) *count = (int32_t)a.count;
    }
}

/* Without lists, blocks of rows. */
static void blocks(const void *context, int64_t first, int64_t last, int thread) {
    const trine_call *call = context;
    const int64_t n = call->dim[GATED_THRESHOLD_DIM_N], each = (n + BLOCK - 1) / BLOCK;
    (void)thread;
    for (int64_t b = first; b < last; b++) {
        row a = row_at(call, b / each);
        const int64_t at = b % each * BLOCK, end = at + BLOCK < n ? at + BLOCK : n;
        FOR_TYPE(call->type[GATED_THRESHOLD_TYPE_T], steps, &a, call->args, at, end);
    }
}

static const char *refuse(const trine_call *call) {
    return call->dim[GATED_THRESHOLD_DIM_N] > INT32_MAX ? "more than 2^31 - 1 columns" : NULL;
}

static trine_status launch(const trine_call *call) {
    const int64_t r = call->dim[GATED_THRESHOLD_DIM_R], n = call->dim[GATED_THRESHOLD_DIM_N], bytes = r * n * WORK;
    const bool listed =
        trine_call_given(call, GATED_THRESHOLD_COLUMNS) || trine_call_given(call, GATED_THRESHOLD_COUNTS);
    const int64_t tasks = listed ? r : r * ((n + BLOCK - 1) / BLOCK);
    cpu_shares(call, cpu_team(call, tasks, bytes), tasks, listed ? rows : blocks, call);
    return TRINE_OK;
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, GATED_THRESHOLD_DIM_N, VL);
    trine_kernel_edge(edges, GATED_THRESHOLD_DIM_N, BLOCK);
    cpu_team_edge(edges, GATED_THRESHOLD_DIM_R, call->dim[GATED_THRESHOLD_DIM_N] * WORK);
}

CPU_KERNELS(gated_threshold) = { { CPU_NAME, refuse, NULL, launch, .edges = edges }, { 0 } };
