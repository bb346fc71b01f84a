/* SPDX-License-Identifier: Apache-2.0 */
/* all_reduce_rms_norm on the CPU: rows of all ranks are added up in f32, as many at a time as have room in a half, and
 * then normalized by every rank while they are in a cache. The sums are made as all_reduce makes them: in one step all
 * of them by every rank, in two a part by each. */
#include <trine/norm.h>

#include "backends/cpu/comm/sums.h"
#include "spec/places/all_reduce_rms_norm.h"

enum { ONE_STEP = 1, TWO_STEPS = 2, STEP_NS = 4000, HALF = VL / 2 };

typedef double vd __attribute__((vector_size(VB)));
typedef float vf_half __attribute__((vector_size(VB / 2)));

typedef struct job {
    const trine_call *call;
    const trine_tensor *x, *weight, *residual, *y, *residual_out, *rstd;
    trine_dtype T;
    int ranks, rank;
    int64_t r, n;
    float eps, weight_offset;
    bool round;
    int64_t panel, part; /* rows of a panel; columns of a part: all of them, or a panel is one row */
    float *h;            /* the rows of a panel */
    /* the piece at hand: rows of a panel, and columns of these */
    int64_t row, rows, column, columns;
    sums sums; /* of its elements, one behind the other; to: floats */
} job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Floats have room as well as elements, for the second step. */
static int64_t room_of(const trine_call *call) { return copy_room(call, TRINE_F32, 1); }
static int64_t panel_of(const trine_call *call) {
    const int64_t r = call->dim[ALL_REDUCE_RMS_NORM_DIM_R], n = call->dim[ALL_REDUCE_RMS_NORM_DIM_N],
                  rows = n > 0 ? room_of(call) / n : r;
    return least(rows > 0 ? rows : 1, r > 0 ? r : 1);
}

static job job_of(const trine_call *call) {
    const trine_all_reduce_rms_norm_args *args = call->args;
    job b = { .call = call,
              .x = &call->tensor[ALL_REDUCE_RMS_NORM_X],
              .weight = trine_call_given(call, ALL_REDUCE_RMS_NORM_WEIGHT),
              .residual = trine_call_given(call, ALL_REDUCE_RMS_NORM_RESIDUAL),
              .y = &call->tensor[ALL_REDUCE_RMS_NORM_Y],
              .residual_out = trine_call_given(call, ALL_REDUCE_RMS_NORM_RESIDUAL_OUT),
              .rstd = trine_call_given(call, ALL_REDUCE_RMS_NORM_RSTD),
              .T = call->type[ALL_REDUCE_RMS_NORM_TYPE_T],
              .ranks = (int)call->dim[ALL_REDUCE_RMS_NORM_DIM_RANKS],
              .rank = trine_cpu_group_rank(call),
              .r = call->dim[ALL_REDUCE_RMS_NORM_DIM_R],
              .n = call->dim[ALL_REDUCE_RMS_NORM_DIM_N],
              .eps = args->eps,
              .weight_offset = args->weight_offset,
              .round = args->rounding == TRINE_ROUND_BEFORE_WEIGHT,
              .panel = panel_of(call),
              .h = call->workspace };
    b.part = b.n > 0 ? least(b.n, room_of(call)) : 1;
    b.sums = (sums){ .T = b.T, .ranks = b.ranks };
    return b;
}

/* ------------------------------------------------------------------------------------------------------------- sums */

static int64_t pieces_of(int64_t n) { return (n + SUM_PIECE - 1) / SUM_PIECE; }

/* The rows of x, one behind the other, to this rank's half. */
static void copy_pieces_in(const void *context, int64_t first, int64_t last, int thread) {
    const job *b = context;
    const int64_t pieces = pieces_of(b->columns), width = (int64_t)trine_dtype_size(b->T);
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t i = k / pieces, at = k % pieces * SUM_PIECE, count = least(SUM_PIECE, b->columns - at);
        memcpy(b->sums.to + (i * b->columns + at) * width, row_at(b->x, b->row + i, b->column + at),
               (size_t)(count * width));
    }
}

INLINE void sum_floats(const sums *s, int64_t first, int64_t last, trine_dtype T) {
    int64_t i = first;
    for (; i + VL <= last; i += VL) vstore(s->to, TRINE_F32, i, sum_vector(s, i, VL, T, false));
    if (i < last) vstoren(s->to, TRINE_F32, i, (int)(last - i), sum_vector(s, i, (int)(last - i), T, false));
}

static void sum_some(const void *context, int64_t first, int64_t last, int thread) {
    const sums *s = context;
    (void)thread;
    FOR_TYPE(s->T, sum_floats, s, first * SUM_PIECE, least(last * SUM_PIECE, s->n));
}

static void add_up(const job *b, const sums *s) {
    const int64_t pieces = pieces_of(s->n), bytes = s->n * (b->ranks * (int64_t)trine_dtype_size(b->T) + 4);
    cpu_shares(b->call, cpu_team(b->call, pieces, bytes), pieces, sum_some, s);
}

/* Elements of a rank's part, the last ones' less: whole lines. */
static int64_t part_of(const job *b, int64_t count, int rank, int64_t *first_out) {
    const int64_t part = cpu_round_up((count + b->ranks - 1) / b->ranks, 64), first = least(rank * part, count);
    *first_out = first;
    return least(part, count - first);
}

static trine_status by_parts(const job *b, int64_t count, float *to) {
    const int64_t width = (int64_t)trine_dtype_size(b->T);
    sums s = b->sums;
    int64_t first;
    s.n = part_of(b, count, b->rank, &first);
    for (int q = 0; q < b->ranks; q++) s.from[q] += first * width;
    trine_status status = trine_cpu_group_ready(b->call, &s.to);
    if (status != TRINE_OK) return status;
    add_up(b, &s);
    if ((status = trine_cpu_group_post(b->call, false, TWO_STEPS)) != TRINE_OK) return status;
    for (int q = 0; q < b->ranks; q++) {
        const int64_t part = part_of(b, count, q, &first);
        copy_row(b->call, (char *)(to + first), trine_cpu_group_half(b->call, q), part * 4);
    }
    return TRINE_OK;
}

/* The sums of the piece at hand, in its place of the panel. */
static trine_status piece(job *b, int way) {
    const int64_t count = b->rows * b->columns, items = b->rows * pieces_of(b->columns);
    float *to = b->h + b->column;
    trine_status status = trine_cpu_group_ready(b->call, &b->sums.to);
    if (status != TRINE_OK) return status;
    cpu_shares(b->call, cpu_team(b->call, items, count * (int64_t)trine_dtype_size(b->T)), items, copy_pieces_in, b);
    status = trine_cpu_group_post(b->call, b->row == 0 && b->column == 0, way);
    if (status != TRINE_OK || count == 0) return status;
    for (int q = 0; q < b->ranks; q++) b->sums.from[q] = trine_cpu_group_half(b->call, q);
    if (way == TWO_STEPS) return by_parts(b, count, to);
    b->sums.n = count;
    b->sums.to = (char *)to;
    add_up(b, &b->sums);
    return TRINE_OK;
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
    for (int64_t j = 0; j < b->n; j += VL) {
        const int count = count_of(b->n, j);
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
    const trine_dtype R = b->call->type[ALL_REDUCE_RMS_NORM_TYPE_R];
    (void)thread;
    for (int64_t k = first; k < last; k++) {
        const int64_t i = b->row + k;
        const char *residual = b->residual ? row_at(b->residual, i, 0) : NULL;
        char *residual_out = b->residual_out ? row_at(b->residual_out, i, 0) : NULL;
        float *h = b->h + k * b->n;
        double mean;
        FOR_TYPE(R, add_residual, &mean, h, residual, residual_out, b->n);
        const double rstd = 1 / sqrt(mean + (double)b->eps);
        if (b->rstd) *(float *)(void *)row_at(b->rstd, i, 0) = (float)rstd;
        FOR_TYPE(b->T, normalize, b, h, i, factors_of(rstd));
    }
}

/* --------------------------------------------------------------------------------------------------------- launches */

static size_t workspace(const trine_call *call) {
    return (size_t)(panel_of(call) * call->dim[ALL_REDUCE_RMS_NORM_DIM_N]) * sizeof(float);
}

static trine_status run(const trine_call *call, int way) {
    job b = job_of(call);
    const int64_t bytes = (int64_t)(trine_dtype_size(b.T) * 2 + 4) * b.n;
    for (b.row = 0; b.row == 0 || b.row < b.r; b.row += b.panel) {
        b.rows = least(b.panel, b.r - b.row);
        for (b.column = 0; b.column == 0 || b.column < b.n; b.column += b.part) {
            b.columns = least(b.part, b.n - b.column);
            const trine_status status = piece(&b, way);
            if (status != TRINE_OK) return status;
        }
        cpu_shares(call, cpu_team(call, b.rows, b.rows * bytes), b.rows, do_rows, &b);
    }
    return TRINE_OK;
}

static trine_status launch_one(const trine_call *call) { return run(call, ONE_STEP); }
static trine_status launch_two(const trine_call *call) { return run(call, TWO_STEPS); }

/* A prediction that all ranks must have alike, as all_reduce's: the sums are floats in the second step. */
static double seconds_of(const trine_call *call, int way) {
    const double ranks = (double)call->dim[ALL_REDUCE_RMS_NORM_DIM_RANKS],
                 elements = (double)call->dim[ALL_REDUCE_RMS_NORM_DIM_R] * (double)call->dim[ALL_REDUCE_RMS_NORM_DIM_N],
                 width = (double)trine_dtype_size(call->type[ALL_REDUCE_RMS_NORM_TYPE_T]),
                 steps = 1 + floor(elements / (double)room_of(call));
    return 1e-10 * elements * (way == ONE_STEP ? (4 + ranks) * width + 8 : 5 * width + 20) +
           1e-9 * STEP_NS * steps * way;
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
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_N, room_of(call));
    trine_kernel_edge(edges, ALL_REDUCE_RMS_NORM_DIM_R, n > 0 ? room_of(call) / n : 1);
}

CPU_KERNELS(all_reduce_rms_norm) = {
    { CPU_NAME, NULL, workspace, launch_best, seconds_best, .edges = edges },
    { CPU_VARIANT("one_step"), NULL, workspace, launch_one, seconds_one, .edges = edges },
    { CPU_VARIANT("two_steps"), NULL, workspace, launch_two, seconds_two, .edges = edges },
    { 0 }
};
