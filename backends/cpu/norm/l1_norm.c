/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm on the CPU: a row is held as floats, or if it is long read three times: each of its pieces has a mean of its
 * own first. */
#include "backends/cpu/core/parts.h"
#include "spec/places/l1_norm.h"

typedef struct l1_norm {
    const trine_tensor *x, *weight, *bias, *y, *mean, *rmad;
    int64_t r, n;
    float eps;
    bool stream;
} l1_norm;

/* The sum of a piece's elements less `minus`, or of their sizes. */
static float sum_of(float *h, int count, float minus, bool sizes) {
    vf acc[ROW_ACC] = { { 0 } };
    if (sizes)
        ROW_EACH(count, j, k, m, acc[k] += row_mask(vabs(*row_vector(h, j) - minus), m, 0));
    else
        ROW_EACH(count, j, k, m, acc[k] += row_mask(*row_vector(h, j) - minus, m, 0));
    return row_total(acc);
}

/* In place of a piece of x that of y. */
static void normalize(const l1_norm *a, float *h, int64_t at, int count, float mean, float rmad) {
    row_piece factor;
    ROW_EACH(count, j, k, m, *row_vector(h, j) = (*row_vector(h, j) - mean) * rmad);
    if (a->weight) {
        row_load(factor, a->weight->data, at, count, a->weight->dtype);
        ROW_EACH(count, j, k, m, *row_vector(h, j) *= *row_vector(factor, j));
    }
    if (a->bias) {
        row_load(factor, a->bias->data, at, count, a->bias->dtype);
        ROW_EACH(count, j, k, m, *row_vector(h, j) += *row_vector(factor, j));
    }
}

static void tell(const l1_norm *a, int64_t i, float mean, float rmad) {
    if (a->mean) ((float *)a->mean->data)[i * a->mean->stride[0]] = mean;
    if (a->rmad) ((float *)a->rmad->data)[i * a->rmad->stride[0]] = rmad;
}

static void put_y(const l1_norm *a, float *h, int64_t i, int64_t at, int count, float mean, float rmad) {
    normalize(a, h, at, count, mean, rmad);
    row_store(h, row_sink_of(a->y, i, at, a->stream), count, a->y->dtype);
}

/* Rows of one piece. */
static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const l1_norm *a = context;
    const int n = (int)a->n;
    const float count = (float)n;
    row_piece h;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        row_load(h, row_at(a->x, i), 0, n, a->x->dtype);
        const float near = sum_of(h, n, 0, false) / count, mean = near + sum_of(h, n, near, false) / count,
                    rmad = 1 / (sum_of(h, n, mean, true) / count + a->eps);
        tell(a, i, mean, rmad);
        put_y(a, h, i, 0, n, mean, rmad);
    }
    if (a->stream) stream_fence();
}

/* ---------------------------------------------------------------------------------------------- rows of several pieces
 */

enum { FIND_MEAN, FIND_SIZES, WRITE };         /* passes */
enum { NUMBER_SUM, NUMBER_MEAN, NUMBER_RMAD }; /* of a row; of a piece its part of the pass's sum */

static void piece(const void *op, const parts_row *row, int64_t at, int count, float *h, double *result) {
    const l1_norm *a = op;
    const float mean = (float)row->number[NUMBER_MEAN];
    row_load(h, row_at(a->x, row->i), at, count, a->x->dtype);
    if (row->pass == FIND_MEAN) {
        const float near = sum_of(h, count, 0, false) / (float)count;
        result[NUMBER_SUM] = (double)near * count + sum_of(h, count, near, false);
    } else if (row->pass == FIND_SIZES) {
        result[NUMBER_SUM] = sum_of(h, count, mean, true);
    } else {
        put_y(a, h, row->i, at, count, mean, (float)row->number[NUMBER_RMAD]);
    }
}
static void add(const void *op, parts_row *row, const double *result) {
    (void)op;
    row->number[NUMBER_SUM] += result[NUMBER_SUM];
}
static bool end(const void *op, parts_row *row) {
    const l1_norm *a = op;
    const double average = row->number[NUMBER_SUM] / (double)a->n;
    if (row->pass == WRITE) return false;
    if (row->pass == FIND_MEAN) {
        row->number[NUMBER_MEAN] = (float)average;
    } else {
        row->number[NUMBER_RMAD] = 1 / ((float)average + a->eps);
        tell(a, row->i, (float)row->number[NUMBER_MEAN], (float)row->number[NUMBER_RMAD]);
    }
    row->number[NUMBER_SUM] = 0;
    row->last = ++row->pass == WRITE;
    return true;
}

static parts parts_of(const trine_call *call, const l1_norm *a) {
    return (parts){ .op = a,
                    .rows = call->dim[L1_NORM_DIM_R],
                    .n = call->dim[L1_NORM_DIM_N],
                    .bytes = row_bytes(call),
                    .stream = a && a->stream,
                    .piece = piece,
                    .add = add,
                    .end = end };
}

static size_t workspace(const trine_call *call) {
    const parts job = parts_of(call, NULL);
    return job.n > ROW_PIECE ? parts_workspace(call, &job) : 0;
}

static trine_status launch(const trine_call *call) {
    const l1_norm a = { .x = row_tensor(call, L1_NORM_X),
                        .weight = row_tensor(call, L1_NORM_WEIGHT),
                        .bias = row_tensor(call, L1_NORM_BIAS),
                        .y = row_tensor(call, L1_NORM_Y),
                        .mean = row_tensor(call, L1_NORM_MEAN),
                        .rmad = row_tensor(call, L1_NORM_RMAD),
                        .r = call->dim[L1_NORM_DIM_R],
                        .n = call->dim[L1_NORM_DIM_N],
                        .eps = ((const trine_l1_norm_args *)call->args)->eps + 0.0f,
                        .stream = row_streams(call) };
    const parts job = parts_of(call, &a);
    if (a.n > ROW_PIECE)
        parts_run(call, &job, call->workspace);
    else
        cpu_shares(call, cpu_team(call, a.r, row_bytes(call)), a.r, rows, &a);
    return TRINE_OK;
}

CPU_KERNELS(l1_norm) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = parts_row_edges },
                         { 0 } };
