/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on the CPU. A row that fits a piece is read once; a longer one twice, first for its maximum and sum by online statistics. */
#include "row.h"

/* exp(scale x - max(scale x)) is taken as 2^(spread (f x - max(f x))): the difference before the product loses nothing to cancellation. f
 * is the sign of scale, spread |scale| log2(e); for a scale of 0 they are 0 and 1. */
typedef struct softmax {
    const trine_tensor *x, *y;
    int64_t s, n;
    float f, spread;
    bool causal, stream;
} softmax;

/* 2^t for t <= 0, NaN for NaN. Below 2^-126 it is 0, which spec/softmax.c allows for; the error is below 4u. The polynomial is a minimax
 * fit on [-1/2, 1/2] whose coefficients were rounded one by one, the rest fitted again each time; its own error is 1.6u. */
INLINE vf softmax_exp2(vf t) {
    const vf magic = vset(0x1.8p23f); /* adding it rounds to an integer, which is then in the low bits */
    const vf shifted = t + magic;
    const vf r = t - (shifted - magic);
    vf p = vset(1.3269406e-3f);
    p = vfma(p, r, vset(9.67129413e-3f));
    p = vfma(p, r, vset(5.55071123e-2f));
    p = vfma(p, r, vset(2.40222469e-1f));
    p = vfma(p, r, vset(6.93147004e-1f));
    p = vfma(p, r, vset(1));
    const vf power = (vf)(((vu)shifted << 23) + 0x3f800000u);
    return (vf)(~(t < vset(-126)) & (vi)(p * power));
}

/* h = f x; the largest, NaN left aside: they show in the sum. */
INLINE void softmax_read_as(float *max, float *h, const void *x, int64_t at, int count, float f, trine_dtype T) {
    vf acc[ROW_ACC];
    for (int k = 0; k < ROW_ACC; k++) acc[k] = vset(-INFINITY);
    ROW_EACH(count, j, k, m, {
        const vf v = row_mask(row_get(x, T, at + j, m) * f, m, -INFINITY);
        *row_vector(h, j) = v;
        acc[k] = vmax(v, acc[k]);
    });
    for (int k = 1; k < ROW_ACC; k++) acc[0] = vmax(acc[k], acc[0]);
    *max = vhmax(acc[0]);
}

/* What is subtracted for the maximum: of nothing but -Inf it must not be taken itself, lest exponentials be NaN that are 0 once a larger
 * element comes. If none comes the sum is 0, and y = 0/0. */
INLINE float softmax_origin(float max) { return max == -INFINITY ? 0 : max; }

/* h = 2^(spread (h - origin)), while the next row is fetched; the sum. */
static inline float softmax_exp(float *h, int count, float origin, float spread, const void *next, trine_dtype T) {
    vf acc[ROW_ACC] = { 0 };
    ROW_EACH(count, j, k, m, {
        row_prefetch(next, T, j, k);
        const vf e = softmax_exp2((*row_vector(h, j) - origin) * spread);
        *row_vector(h, j) = e;
        acc[k] += e;
    });
    return row_total(acc);
}

INLINE void softmax_write_as(float *h, float inverse, row_sink y, int count, trine_dtype T) {
    ROW_EACH(count, j, k, m, row_put(y, T, j, m, *row_vector(h, j) * inverse));
}

/* What is read after this piece of row x: its next piece, or the next row. */
INLINE const void *softmax_next(const softmax *a, const void *x, int64_t at, int64_t visible) {
    return (const char *)x + (visible > ROW_PIECE ? at + ROW_PIECE : a->x->stride[1]) * (int64_t)vsize(a->x->dtype);
}

/* Row i of matrix g, of which the first `visible` elements are. */
static inline void softmax_row(const softmax *a, float *h, int64_t g, int64_t i, int64_t visible) {
    const void *x = row_at3(a->x, g, i);
    const trine_dtype T = a->x->dtype;
    float max = -INFINITY, sum = 0, here;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        const float old = max;
        FOR_TYPE(T, softmax_read_as, &here, h, x, at, count, a->f);
        if (here > max) max = here;
        if (at > 0 && max > old) sum *= softmax_exp2(vset((old - max) * a->spread))[0];
        sum += softmax_exp(h, count, softmax_origin(max), a->spread, softmax_next(a, x, at, visible), T);
    }
    const float inverse = 1 / sum;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        if (visible > ROW_PIECE) {
            FOR_TYPE(T, softmax_read_as, &here, h, x, at, count, a->f);
            softmax_exp(h, count, softmax_origin(max), a->spread, softmax_next(a, x, at, visible), T);
        }
        FOR_TYPE(T, softmax_write_as, h, inverse, row_sink_at(row_at3(a->y, g, i), T, at, a->stream), count);
    }
    const int64_t size = (int64_t)vsize(T);
    memset((char *)row_at3(a->y, g, i) + visible * size, 0, (size_t)((a->n - visible) * size));
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    const softmax a = {
        .x = row_tensor(call, 0),
        .y = row_tensor(call, 1),
        .s = call->dim[1],
        .n = call->dim[2],
        .f = args->scale > 0   ? 1
             : args->scale < 0 ? -1
                               : 0,
        .spread = args->scale == 0 ? 1 : (float)(fabs(args->scale) * 0x1.71547652b82fep0),
        .causal = args->causal,
        .stream = !args->causal && row_streams(call), /* a line stored in part past the caches costs more than it saves */
    };
    const int64_t rows = call->dim[0] * a.s;
    const int team = cpu_team(call, rows, row_bytes(call));
#pragma omp parallel num_threads(team) if (team > 1)
    {
        row_piece h;
#pragma omp for schedule(static, 16) /* causal rows grow */
        for (int64_t i = 0; i < rows; i++) {
            const int64_t visible = a.causal ? row_visible(i % a.s, a.s, a.n) : a.n;
            softmax_row(&a, h, i / a.s, i % a.s, visible);
        }
        if (a.stream) stream_fence();
    }
    return TRINE_OK;
}

CPU_KERNELS(softmax) = { { .name = CPU_NAME, .launch = launch }, { 0 } };
