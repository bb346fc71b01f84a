/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_sum on the CPU with the same bits as on every device (spec/same.h). */
#include "backends/cpu/core/same.h"

/* Elements j .. of row i, 0 beyond `n`; those that lie apart one by one. */
INLINE vf sums_same_load(const trine_tensor *x, int64_t i, int64_t j, int64_t n, trine_dtype T) {
    const char *row = (const char *)x->data + i * x->stride[0] * (int64_t)vsize(T);
    if (x->stride[1] == 1) return same_load(row, T, j, n, 0);
    vf r = vzero();
    for (int k = 0; k < VL && j + k < n; k++) r[k] = sload(row, T, (j + k) * x->stride[1]);
    return r;
}

INLINE void sums_same_rows_as(const sums *a, int64_t first, int64_t last, trine_dtype T) {
    for (int64_t i = first; i < last; i++) {
        same_lanes lanes = { 0 };
        for (int64_t j = 0; j < a->n; j += VL) same_add(&lanes, j, sums_same_load(&a->x, i, j, a->n, T));
        sstore(a->rows->data, a->rows->dtype, i * a->rows->stride[0], same_total(lanes.v, SAME_LANES));
    }
}
static void sums_same_rows(const void *context, int64_t first, int64_t last, int thread) {
    const sums *a = context;
    (void)thread;
    FOR_TYPE(a->x.dtype, sums_same_rows_as, a, first, last);
}

enum { SUMS_SAME_COLUMNS = 4 * VL };

INLINE void sums_same_columns_as(const sums *a, int64_t first, int64_t last, trine_dtype T) {
    for (int64_t at = first * SUMS_SAME_COLUMNS; at < a->n && at < last * SUMS_SAME_COLUMNS; at += VL) {
        vf total = vzero();
        for (int64_t start = 0; start < a->r; start += SAME_CHAIN) {
            vf run = vzero();
            for (int64_t i = start; i < a->r && i < start + SAME_CHAIN; i++)
                run += sums_same_load(&a->x, i, at, a->n, T);
            total += run;
        }
        for (int k = 0; k < VL && at + k < a->n; k++)
            sstore(a->columns->data, a->columns->dtype, (at + k) * a->columns->stride[0], total[k]);
    }
}
static void sums_same_columns(const void *context, int64_t first, int64_t last, int thread) {
    const sums *a = context;
    (void)thread;
    FOR_TYPE(a->x.dtype, sums_same_columns_as, a, first, last);
}

static trine_status sums_same_launch(const trine_call *call) {
    const sums a = { .x = call->tensor[REDUCE_SUM_X],
                     .rows = row_tensor(call, REDUCE_SUM_ROW_SUMS),
                     .columns = row_tensor(call, REDUCE_SUM_COLUMN_SUMS),
                     .r = call->dim[REDUCE_SUM_DIM_R],
                     .n = call->dim[REDUCE_SUM_DIM_N] };
    const int64_t pieces = (a.n + SUMS_SAME_COLUMNS - 1) / SUMS_SAME_COLUMNS;
    if (a.rows) cpu_shares(call, cpu_team(call, a.r, row_bytes(call)), a.r, sums_same_rows, &a);
    if (a.columns) cpu_shares(call, cpu_team(call, pieces, row_bytes(call)), pieces, sums_same_columns, &a);
    return TRINE_OK;
}
