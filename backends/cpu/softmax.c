/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on the CPU. A row that fits a piece is read once; a longer one twice, first for its maximum and sum by online statistics. */
#include "row.h"
#include "vec_math.h"

/* exp(scale x - max(scale x)) is taken as exp(spread (f x - max(f x))): the difference before the product loses nothing to cancellation. f is the sign of
 * scale; for a scale of 0 it is 0, and spread is 1. */
typedef struct softmax {
    const trine_tensor *x, *y;
    int64_t s, n;
    float f, spread;
    bool causal, stream;
} softmax;

/* f x from element `at` on, padded with what has exponential 0; their maximum, NaN left aside: they show in the sum. */
static inline float softmax_gather(const softmax *a, float *h, const void *x, int64_t at, int count) {
    row_load(h, x, at, count, a->x->dtype);
    if (a->f != 1)
        for (int j = 0; j < count; j += VL) *row_vector(h, j) *= a->f;
    row_pad(h, count, -INFINITY);
    vf acc[ROW_ACC];
    for (int k = 0; k < ROW_ACC; k++) acc[k] = vset(-INFINITY);
    ROW_SUM(count, j, k, acc, acc[k] = vmax(*row_vector(h, j), acc[k]));
    for (int k = 1; k < ROW_ACC; k++) acc[0] = vmax(acc[k], acc[0]);
    return vhmax(acc[0]);
}

/* What is subtracted for the maximum: of nothing but -Inf it must not be taken itself, lest exponentials be NaN that are 0 once a larger element comes. If
 * none comes the sum is 0, and y = 0/0. */
INLINE float softmax_origin(float max) { return max == -INFINITY ? 0 : max; }

/* h = exp(spread (h - origin)), and its sum. */
static inline float softmax_exp(float *h, int count, float origin, float spread) {
    vf acc[ROW_ACC] = {0};
    ROW_SUM(count, j, k, acc, acc[k] += *row_vector(h, j) = vexp((*row_vector(h, j) - origin) * spread));
    return row_total(acc);
}

static inline void softmax_row(const softmax *a, float *h, const void *x, void *y, int64_t visible) {
    float max = -INFINITY, sum = 0;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        const float here = softmax_gather(a, h, x, at, count), old = max;
        if (here > max) max = here;
        if (at > 0 && max > old) sum *= vexp(vset((old - max) * a->spread))[0];
        sum += softmax_exp(h, count, softmax_origin(max), a->spread);
    }
    const float inverse = 1 / sum;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        if (visible > ROW_PIECE) {
            softmax_gather(a, h, x, at, count);
            softmax_exp(h, count, softmax_origin(max), a->spread);
        }
        for (int j = 0; j < count; j += VL) *row_vector(h, j) *= inverse;
        row_store(h, y, at, count, a->y->dtype, a->stream);
    }
    const int64_t size = (int64_t)vsize(a->y->dtype);
    memset((char *)y + visible * size, 0, (size_t)((a->n - visible) * size));
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    const softmax a = {
        .x = row_tensor(call, 0),
        .y = row_tensor(call, 1),
        .s = call->dim[1],
        .n = call->dim[2],
        .f = args->scale > 0 ? 1 : args->scale < 0 ? -1 : 0,
        .spread = args->scale == 0 ? 1 : fabsf(args->scale),
        .causal = args->causal,
        .stream = row_streams(call),
    };
    const int64_t rows = call->dim[0] * a.s;
    const int team = cpu_team(call, rows, row_bytes(call));
#pragma omp parallel num_threads(team) if (team > 1)
    {
        row_piece h;
#pragma omp for schedule(static, 16) /* causal rows grow */
        for (int64_t i = 0; i < rows; i++) {
            const int64_t visible = a.causal ? row_visible(i % a.s, a.s, a.n) : a.n;
            softmax_row(&a, h, row_at3(a.x, i / a.s, i % a.s), row_at3(a.y, i / a.s, i % a.s), visible);
        }
        if (a.stream) stream_fence();
    }
    return TRINE_OK;
}

CPU_KERNELS(softmax) = { { .name = CPU_NAME, .launch = launch }, { 0 } };
