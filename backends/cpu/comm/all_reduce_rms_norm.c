/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm on the CPU: rows of all ranks are added up, some at a time, and then normalized by every rank
 * while they are in a cache. */
#include <trine/norm.h>

#include "backends/cpu/comm/row_sums.h"
#include "spec/places/all_reduce_rms_norm.h"

enum { HALF = VL / 2 };

typedef double vd __attribute__((vector_size(VB)));
typedef float vf_half __attribute__((vector_size(VB / 2)));

typedef struct job {
    row_sums all;
    const trine_tensor *weight, *residual, *y, *residual_out, *rstd;
    float eps, weight_offset;
    bool round;
} job;

static int64_t panel_of(const trine_call *call) {
    return row_sums_panel(call, call->dim[ALL_REDUCE_RMS_NORM_DIM_R], call->dim[ALL_REDUCE_RMS_NORM_DIM_N]);
}

static job job_of(const trine_call *call) {
    const trine_all_reduce_rms_norm_args *args = call->args;
    return (job){ .all = row_sums_of(call, &call->tensor[ALL_REDUCE_RMS_NORM_X],
                                     call->dim[ALL_REDUCE_RMS_NORM_DIM_RANKS], call->dim[ALL_REDUCE_RMS_NORM_DIM_R],
                                     call->dim[ALL_REDUCE_RMS_NORM_DIM_N], call->workspace),
                  .weight = trine_call_given(call, ALL_REDUCE_RMS_NORM_WEIGHT),
                  .residual = trine_call_given(call, ALL_REDUCE_RMS_NORM_RESIDUAL),
                  .y = &call->tensor[ALL_REDUCE_RMS_NORM_Y],
                  .residual_out = trine_call_given(call, ALL_REDUCE_RMS_NORM_RESIDUAL_OUT),
                  .rstd = trine_call_given(call, ALL_REDUCE_RMS_NORM_RSTD),
                  .eps = args->eps,
                  .weight_offset = args->weight_offset,
                  .round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT };
}

/* ------------------------------------------------------------------------------------------------------------- rows */

INLINE vf load_some(const void *from, trine_dtype T, int64_t j, int count) {
    return count >= VL ? vload(from, T, j) : vloadn(from, T, j, count, 0);
}
INLINE void store_some(void *to, trine_dtype T, int64_t j, int count, vf x) {
    if (count >= VL)
        vstore(to, T, j, x);
    else
        vstoren(to, T, j, count, x);
}
INLINE int count_of(int64_t n, int64_t j) { return n - j < VL ? (int)(n - j) : VL; }

/* h becomes the sum with the residual; the mean of its squares, which f64 has all of, and has exactly. */
INLINE void add_residual(double *mean_out, float *h, const char *residual, char *residual_out, int64_t n,
                         trine_dtype R) {
    vd sum[4] = { { 0 } };
    for (int64_t j = 0; j < n; j += VL) {
        const int count = count_of(n, j);
        vf v = load_some(h, TRINE_F32, j, count);
        if (residual != NULL) {
            v += load_some(residual, R, j, count);
            store_some(h, TRINE_F32, j, count, v);
        }
        if (residual_out != NULL) store_some(residual_out, R, j, count, v);
        vf_half half[2];
        memcpy(half, &v, sizeof v);
        for (int k = 0; k < 2; k++) {
            const vd d = __builtin_convertvector(half[k], vd);
            sum[2 * (j / VL & 1) + k] += d * d;
        }
    }
    const vd all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    double total = 0;
    for (int k = 0; k < HALF; k++) total += all[k];
    *mean_out = total / (double)n;
}

/* rstd as the product of three floats, none of which overflows on the way of an h that it normalizes. */
typedef struct factors {
    float first, second, m;
} factors;
static factors factors_of(double rstd) {
    int e;
    if (!(rstd > 0 && rstd < INFINITY)) return (factors){ 1, 1, (float)rstd };
    const double m = frexp(rstd, &e);
    return (factors){ ldexpf(1, e >> 1), ldexpf(1, e - (e >> 1)), (float)m };
}

INLINE vf round_to(vf v, trine_dtype T) {
    return T == TRINE_BF16 ? vf_from_bf16(vf_to_bf16(v)) : T == TRINE_F16 ? vf_from_f16(vf_to_f16(v)) : v;
}

INLINE void normalize(const job *b, const float *h, int64_t i, factors f, trine_dtype T) {
    char *y = row_at(b->y, i, 0);
    for (int64_t j = 0; j < b->all.n; j += VL) {
        const int count = count_of(b->all.n, j);
        vf v = load_some(h, TRINE_F32, j, count) * f.first * f.second * f.m;
        if (b->round) v = round_to(v, T);
        if (b->weight != NULL) {
            const vf w = b->weight->dtype == TRINE_F32 ? load_some(b->weight->data, TRINE_F32, j, count)
                                                       : load_some(b->weight->data, T, j, count);
            v *= w + b->weight_offset;
        }
        store_some(y, T, j, count, v);
    }
}

static void do_rows(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const trine_dtype R = b->all.call->type[ALL_REDUCE_RMS_NORM_TYPE_R];
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t i = b->all.row + k;
        const char *residual = b->residual ? row_at(b->residual, i, 0) : NULL;
        char *residual_out = b->residual_out ? row_at(b->residual_out, i, 0) : NULL;
        float *h = b->all.h + k * b->all.n;
        double mean;
        FOR_TYPE(R, add_residual, &mean, h, residual, residual_out, b->all.n);
        const double rstd = 1 / sqrt(mean + (double)b->eps);
        if (b->rstd) *(float *)(void *)row_at(b->rstd, i, 0) = (float)rstd;
        FOR_TYPE(b->all.T, normalize, b, h, i, factors_of(rstd));
    }
}

/* --------------------------------------------------------------------------------------------------------- launches */

static size_t workspace(const trine_call *call) {
    return (size_t)(panel_of(call) * call->dim[ALL_REDUCE_RMS_NORM_DIM_N]) * sizeof(float);
}

static trine_status run(const trine_call *call, int way) {
    job b = job_of(call);
    row_sums *all = &b.all;
    const int64_t bytes = (int64_t)(trine_dtype_size(all->T) * 2 + 4) * all->n;
    for (all->row = 0; all->row == 0 || all->row < all->r; all->row += all->panel) {
        const trine_status status = row_sums_add(all, way);
        if (status != TRINE_OK) return status;
        cpu_shares(call, cpu_team(call, all->rows, all->rows * bytes), all->rows, do_rows, &b);
    }
    return TRINE_OK;
}

static trine_status launch_one(const trine_call *call) { return run(call, ONE_STEP); }
static trine_status launch_two(const trine_call *call) { return run(call, TWO_STEPS); }

static double seconds_of(const trine_call *call, int way) {
    return row_sums_seconds(call, call->type[ALL_REDUCE_RMS_NORM_TYPE_T], call->dim[ALL_REDUCE_RMS_NORM_DIM_RANKS],
                            (double)call->dim[ALL_REDUCE_RMS_NORM_DIM_R] * (double)call->dim[ALL_REDUCE_RMS_NORM_DIM_N],
                            way);
}
static double seconds_one(const trine_call *call) { return seconds_of(call, ONE_STEP); }
static double seconds_two(const trine_call *call) { return seconds_of(call, TWO_STEPS); }

/* The faster by prediction. */
static int best_of(const trine_call *call) { return seconds_two(call) < seconds_one(call) ? TWO_STEPS : ONE_STEP; }
static trine_status launch_best(const trine_call *call) { return run(call, best_of(call)); }
static double seconds_best(const trine_call *call) { return seconds_of(call, best_of(call)); }

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    const int64_t n = call->dim[ALL_REDUCE_RMS_NORM_DIM_N];
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_N, VL);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_N, SUM_PIECE);
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_N, row_sums_room(call));
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_R, n > 0 ? row_sums_room(call) / n : 1);
}

CPU_KERNELS(all_reduce_rms_norm) = {
    { CPU_NAME, NULL, workspace, launch_best, seconds_best, .edges = edges },
    { CPU_VARIANT("one_step"), NULL, workspace, launch_one, seconds_one, .edges = edges },
    { CPU_VARIANT("two_steps"), NULL, workspace, launch_two, seconds_two, .edges = edges },
    { 0 }
};
