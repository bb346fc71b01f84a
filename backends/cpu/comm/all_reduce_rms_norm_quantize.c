/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm_quantize on the CPU: rows of all ranks are added up, some at a time, and the residual to them;
 * rms_norm_quantize makes codes of these, which are f32, with a weight of f32. */
#include <trine/ops.h>

#include "backends/nested_step.h"
#include "backends/cpu/comm/row_sums.h"
#include "spec/places/all_reduce_rms_norm_quantize.h"

#define DIM(name) call->dim[ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_##name]
#define GIVEN(name) trine_call_given(call, ALL_REDUCE_RMS_NORM_QUANTIZE_##name)

typedef struct job {
    const trine_call *call;
    const trine_all_reduce_rms_norm_quantize_args *args;
    int64_t r, k, groups, panel;         /* panel: rows at a time */
    float *h, *weight, *y;               /* y: NULL where the output is of f32, or there is none */
    const trine_tensor *weights, *y_out; /* NULL: not given */
    const trine_tensor *residual, *residual_out;
    size_t bytes; /* of the workspace, before that of the ops within */
    int64_t row;  /* of the panel at hand the first */
} job;

static float *place(job *b, int64_t count) {
    void *at = b->call->workspace ? (char *)b->call->workspace + b->bytes : NULL;
    b->bytes += (size_t)cpu_round_up(count * (int64_t)sizeof(float), 64);
    return at;
}

static job job_of(const trine_call *call) {
    job b = { .call = call,
              .args = call->args,
              .r = DIM(R),
              .k = DIM(K),
              .groups = DIM(GROUPS),
              .panel = row_sums_panel(call, DIM(R), DIM(K)),
              .weights = GIVEN(WEIGHT),
              .y_out = GIVEN(Y),
              .residual = GIVEN(RESIDUAL),
              .residual_out = GIVEN(RESIDUAL_OUT) };
    b.h = place(&b, b.panel * b.k);
    b.weight = place(&b, b.weights && b.weights->dtype != TRINE_F32 ? b.k : 0);
    b.y = place(&b, b.y_out && b.y_out->dtype != TRINE_F32 ? b.panel * b.k : 0);
    return b;
}

/* ------------------------------------------------------------------------------------------------------- nested ops */

static trine_status widen_weight(const job *b, size_t *bytes) {
    if (!b->weights || b->weights->dtype == TRINE_F32) return TRINE_OK;
    const trine_tensor from = trine_tensor_1d(b->weights->data, b->weights->dtype, b->k),
                       to = trine_tensor_1d(b->weight, TRINE_F32, b->k);
    const trine_cast_args args = { .struct_size = sizeof args, .x = &from, .y = &to };
    return nested_step(b->call, b->bytes, TRINE_OP_CAST, &args, bytes);
}

/* Rows of an operand from the panel's first on; in a call of all ranks, whose sizes alone are asked for, without
 * gaps. */
static trine_tensor rows_of(const job *b, const trine_tensor *t, int64_t rows, int64_t n) {
    trine_tensor view = trine_tensor_2d(t->data, t->dtype, rows, n);
    if (!b->call->comm) return view;
    view.stride[0] = t->stride[0];
    view.data = row_at(t, b->row, 0);
    return view;
}

static trine_status quantize(const job *b, int64_t rows, size_t *bytes) {
    const trine_call *call = b->call;
    const bool wide = b->weights && b->weights->dtype == TRINE_F32, narrow = b->y_out && b->y_out->dtype != TRINE_F32;
    const trine_tensor h = trine_tensor_2d(b->h, TRINE_F32, rows, b->k),
                       weight = trine_tensor_1d(wide ? b->weights->data : b->weight, TRINE_F32, b->k),
                       codes = rows_of(b, &call->tensor[ALL_REDUCE_RMS_NORM_QUANTIZE_CODES], rows, b->k),
                       scales = rows_of(b, &call->tensor[ALL_REDUCE_RMS_NORM_QUANTIZE_SCALES], rows, b->groups),
                       y = b->y_out ? rows_of(b, b->y_out, rows, b->k) : (trine_tensor){ 0 },
                       kept = trine_tensor_2d(b->y, TRINE_F32, rows, b->k);
    const trine_rms_norm_quantize_args args = { .struct_size = sizeof args,
                                                .x = &h,
                                                .weight = b->weights ? &weight : NULL,
                                                .codes = &codes,
                                                .scales = &scales,
                                                .y = narrow     ? &kept
                                                     : b->y_out ? &y
                                                                : NULL,
                                                .eps = b->args->eps == 0 ? -0.0f : b->args->eps, /* a zero is meant */
                                                .weight_offset = b->args->weight_offset,
                                                .upward = b->args->upward,
                                                .powers = b->args->powers };
    const trine_cast_args cast = { .struct_size = sizeof cast, .x = &kept, .y = &y };
    const trine_status status = nested_step(b->call, b->bytes, TRINE_OP_RMS_NORM_QUANTIZE, &args, bytes);
    return status == TRINE_OK && narrow ? nested_step(b->call, b->bytes, TRINE_OP_CAST, &cast, bytes) : status;
}

/* The last panel may have fewer rows, and so need more. */
static size_t workspace(const trine_call *call) {
    const job b = job_of(call);
    size_t bytes = 0;
    widen_weight(&b, &bytes);
    quantize(&b, least(b.panel, b.r), &bytes);
    if (b.r > b.panel) quantize(&b, b.r % b.panel, &bytes);
    return b.bytes + bytes;
}

/* ------------------------------------------------------------------------------------------------------------- rows */

INLINE void add_residual(float *h, const char *residual, char *residual_out, int64_t n, trine_dtype R) {
    for (int64_t j = 0; j < n; j += VL) {
        const int count = n - j < VL ? (int)(n - j) : VL;
        vf v = count == VL ? vload(h, TRINE_F32, j) : vloadn(h, TRINE_F32, j, count, 0);
        if (residual) {
            v += count == VL ? vload(residual, R, j) : vloadn(residual, R, j, count, 0);
            vstoren(h, TRINE_F32, j, count, v);
        }
        if (residual_out) vstoren(residual_out, R, j, count, v);
    }
}

static void add_rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const trine_dtype R = b->call->type[ALL_REDUCE_RMS_NORM_QUANTIZE_TYPE_R];
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const char *residual = b->residual ? row_at(b->residual, b->row + i, 0) : NULL;
        char *residual_out = b->residual_out ? row_at(b->residual_out, b->row + i, 0) : NULL;
        FOR_TYPE(R, add_residual, b->h + i * b->k, residual, residual_out, b->k);
    }
}

/* --------------------------------------------------------------------------------------------------------- launches */

static trine_status run(const trine_call *call, int way) {
    job b = job_of(call);
    row_sums all = row_sums_of(call, &call->tensor[ALL_REDUCE_RMS_NORM_QUANTIZE_X], DIM(RANKS), b.r, b.k, b.h);
    trine_status status = widen_weight(&b, NULL);
    for (b.row = 0; status == TRINE_OK && (b.row == 0 || b.row < b.r); b.row += b.panel) {
        all.row = b.row;
        status = row_sums_add(&all, way);
        if (status != TRINE_OK || all.rows == 0) return status;
        if (b.residual || b.residual_out)
            cpu_shares(call, cpu_team(call, all.rows, all.rows * b.k * 12), all.rows, add_rows, &b);
        status = quantize(&b, all.rows, NULL);
    }
    return status;
}

static trine_status launch_one(const trine_call *call) { return run(call, ONE_STEP); }
static trine_status launch_two(const trine_call *call) { return run(call, TWO_STEPS); }

static double seconds_of(const trine_call *call, int way) {
    return row_sums_seconds(call, call->type[ALL_REDUCE_RMS_NORM_QUANTIZE_TYPE_T], DIM(RANKS),
                            (double)DIM(R) * (double)DIM(K), way);
}
static double seconds_one(const trine_call *call) { return seconds_of(call, ONE_STEP); }
static double seconds_two(const trine_call *call) { return seconds_of(call, TWO_STEPS); }

/* The faster by prediction, which all ranks have alike. */
static int best_of(const trine_call *call) { return seconds_two(call) < seconds_one(call) ? TWO_STEPS : ONE_STEP; }
static trine_status launch_best(const trine_call *call) { return run(call, best_of(call)); }
static double seconds_best(const trine_call *call) { return seconds_of(call, best_of(call)); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_K, VL);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_K, SUM_PIECE);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_K, row_sums_room(call));
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_QUANTIZE_DIM_R, DIM(K) > 0 ? row_sums_room(call) / DIM(K) : 1);
}

CPU_KERNELS(all_reduce_rms_norm_quantize) = {
    { CPU_NAME, NULL, workspace, launch_best, seconds_best, .edges = edges },
    { CPU_VARIANT("one_step"), NULL, workspace, launch_one, seconds_one, .edges = edges },
    { CPU_VARIANT("two_steps"), NULL, workspace, launch_two, seconds_two, .edges = edges },
    { 0 }
};
