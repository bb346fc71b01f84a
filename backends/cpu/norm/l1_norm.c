/* SPDX-License-Identifier: Apache-2.0 */
/* l1_norm on the CPU: a row is held as floats, or if it is long read again for each of its four passes. */
#include "backends/cpu/core/row.h"
#include "spec/places/l1_norm.h"

typedef struct l1_norm {
    const trine_tensor *x, *weight, *bias, *y, *mean, *rmad;
    int64_t r, n;
    float eps;
    bool stream;
} l1_norm;

/* The sum of a row's elements less `minus`, or of their sizes. */
static float row_sum(const l1_norm *a, float *h, int64_t i, float minus, bool sizes) {
    float sum = 0;
    for (int64_t at = 0; at < a->n; at += ROW_PIECE) {
        const int count = row_count(a->n, at);
        vf acc[ROW_ACC] = { { 0 } };
        if (a->n > ROW_PIECE) row_load(h, row_at(a->x, i), at, count, a->x->dtype);
        if (sizes)
            ROW_EACH(count, j, k, m, acc[k] += row_mask(vabs(*row_vector(h, j) - minus), m, 0));
        else
            ROW_EACH(count, j, k, m, acc[k] += row_mask(*row_vector(h, j) - minus, m, 0));
        sum += row_total(acc);
    }
    return sum;
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

static void rows(const void *context, int64_t first, int64_t last, int thread) {
    const l1_norm *a = context;
    const float count = (float)a->n;
    row_piece h;
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        if (a->n <= ROW_PIECE) row_load(h, row_at(a->x, i), 0, (int)a->n, a->x->dtype);
        const float near = row_sum(a, h, i, 0, false) / count, mean = near + row_sum(a, h, i, near, false) / count,
                    rmad = 1 / (row_sum(a, h, i, mean, true) / count + a->eps);
        if (a->mean) ((float *)a->mean->data)[i * a->mean->stride[0]] = mean;
        if (a->rmad) ((float *)a->rmad->data)[i * a->rmad->stride[0]] = rmad;
        for (int64_t at = 0; at < a->n; at += ROW_PIECE) {
            const int piece = row_count(a->n, at);
            if (a->n > ROW_PIECE) row_load(h, row_at(a->x, i), at, piece, a->x->dtype);
            normalize(a, h, at, piece, mean, rmad);
            row_store(h, row_sink_of(a->y, i, at, a->stream), piece, a->y->dtype);
        }
    }
    if (a->stream) stream_fence();
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
    cpu_shares(call, cpu_team(call, a.r, row_bytes(call)), a.r, rows, &a);
    return TRINE_OK;
}

CPU_KERNELS(l1_norm) = { { .name = CPU_NAME, .launch = launch, .edges = row_edges }, { 0 } };
