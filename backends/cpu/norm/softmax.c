/* SPDX-License-Identifier: Apache-2.0 */
/* softmax on the CPU. A row is read once from memory if L2 may hold it: for its maximum first, then for its
 * exponentials, which are kept; a longer one twice, first for its maximum and sum by online statistics. */
#include "backends/cpu/core/row.h"
#include "spec/places/softmax.h"

/* A row of up to ROW_PIECE exponentials is kept on the stack, one of up to SOFTMAX_HELD in the workspace. */
enum { SOFTMAX_HELD = 1 << 18, SOFTMAX_CHUNK = 16, PAIR = 2 * VL };

/* exp(scale x - max(scale x)) is taken as 2^(spread (f x - max(f x))): the difference before the product loses nothing
 * to cancellation. f is half the sign of scale, so that the difference does not overflow, spread 2 |scale| log2(e);
 * for a scale of 0 they are 0 and 1. */
typedef struct softmax {
    const trine_tensor *x, *y;
    int64_t s, n, rows, pitch;
    float *held; /* `pitch` floats for each thread */
    float f, spread;
    bool causal, stream;
} softmax;

/* 2^(d spread) for d <= 0, NaN for NaN. Below 2^-126 it is less or 0, which spec/norm/softmax.c allows for; the error
 * is below 4u. The polynomial is a minimax fit on [-1/2, 1/2] whose coefficients were rounded one by one, the rest
 * fitted again each time; its own error is 1.6u. */
INLINE vf softmax_exp2(vf d, float spread) {
    const vf magic = vset(0x1.8p23f); /* adding it rounds to an integer, which is then in the low bits */
    const vf shifted = vfma(d, vset(spread), magic);
    const vf r = vfma(d, vset(spread), magic - shifted);
    vf p = vset(1.3269406e-3f);
    p = vfma(p, r, vset(9.67129413e-3f));
    p = vfma(p, r, vset(5.55071123e-2f));
    p = vfma(p, r, vset(2.40222469e-1f));
    p = vfma(p, r, vset(6.93147004e-1f));
    p = vfma(p, r, vset(1));
    const vf power = (vf)(((vu)shifted << 23) + 0x3f800000u);
    return (vf)(~(shifted < magic - 126) & (vi)(p * power));
}

/* The largest f x. NaN may be left aside: they show in the sum. */
INLINE float softmax_max_as(const void *x, int64_t at, int count, float f, trine_dtype T) {
    if (T == TRINE_F32) {
        vf acc[ROW_ACC];
        for (int k = 0; k < ROW_ACC; k++) acc[k] = vset(-INFINITY);
        ROW_EACH(count, j, k, m, acc[k] = vmax(row_mask(row_get(x, T, at + j, m) * f, m, -INFINITY), acc[k]));
        for (int k = 1; k < ROW_ACC; k++) acc[0] = vmax(acc[k], acc[0]);
        return vhmax(acc[0]);
    }
    const uint16_t *bits = (const uint16_t *)x + at;
    const vu flip = (vu)viset(f < 0 ? (int)0x80008000 : 0);
    int16_t part[PAIR];
    for (int j = 0; j < PAIR; j++) part[j] = (int16_t)bits[0];
    memcpy(part, bits + count / PAIR * PAIR, (size_t)(count % PAIR) * 2);
    vu acc[2] = { vorder_i16(*(const vu_any *)part ^ flip) };
    acc[1] = acc[0];
    int j = 0;
    for (; j + 2 * PAIR <= count; j += 2 * PAIR) {
        acc[0] = vmax_i16(acc[0], vorder_i16(*(const vu_any *)(bits + j) ^ flip));
        acc[1] = vmax_i16(acc[1], vorder_i16(*(const vu_any *)(bits + j + PAIR) ^ flip));
    }
    if (j + PAIR <= count) acc[0] = vmax_i16(acc[0], vorder_i16(*(const vu_any *)(bits + j) ^ flip));
    acc[0] = vorder_i16(vmax_i16(acc[0], acc[1]));
    vf both[2];
    vload2(both, &acc[0], T, 0);
    return f == 0 ? 0 : 0.5f * vhmax(vmax(both[0], both[1]));
}

/* What is subtracted for the maximum: of nothing but -Inf it must not be taken itself, lest exponentials be NaN that
 * are 0 once a larger element comes. If none comes the sum is 0, and y = 0/0. */
INLINE float softmax_origin(float max) { return max == -INFINITY ? 0 : max; }

/* h = 2^(spread (f x - origin)), while the next row is fetched; the sum. */
INLINE float softmax_exp_as(float *h, const void *x, int64_t at, int count, float origin, const softmax *a,
                            const void *next, trine_dtype T) {
    const float f = a->f, spread = a->spread;
    vf acc[ROW_ACC] = { 0 };
    ROW_PAIRS(count, j, k, m, {
        vf v[2];
        row_prefetch2(next, T, j, k);
        row_get2(v, x, T, at + j, m, T);
        v[0] = softmax_exp2(vfma(v[0], vset(f), vset(-origin)), spread);
        v[1] = softmax_exp2(vfma(v[1], vset(f), vset(-origin)), spread);
        row_mask2(v, m, T);
        *row_vector(h, j) = v[0];
        *row_vector(h, j + VL) = v[1];
        acc[k] += v[0];
        acc[k + 1] += v[1];
    });
    return row_total(acc);
}

INLINE void softmax_write_to(const float *h, float inverse, row_sink y, int count, bool stream, trine_dtype T) {
    y.stream = stream; /* a constant: a branch in the loop costs more than the store */
    ROW_PAIRS(count, j, k, m, {
        const vf v[2] = { *(const vf *)(h + j) * inverse, *(const vf *)(h + j + VL) * inverse };
        row_put2(y, T, j, m, v, T);
    });
}
INLINE void softmax_write_as(const float *h, float inverse, row_sink y, int count, trine_dtype T) {
    if (y.stream)
        softmax_write_to(h, inverse, y, count, true, T);
    else
        softmax_write_to(h, inverse, y, count, false, T);
}

/* y from x, `visible` elements, with room for all of them in h. */
INLINE void softmax_row_as(const softmax *a, float *h, const void *x, void *y, int64_t visible, trine_dtype T) {
    float max = -INFINITY, sum = 0;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const float here = softmax_max_as(x, at, row_count(visible, at), a->f, T);
        max = here < max ? max : here;
    }
    const void *next = visible <= ROW_PIECE ? (const char *)x + a->x->stride[1] * (int64_t)vsize(T) : x;
    for (int64_t at = 0; at < visible; at += ROW_PIECE)
        sum += softmax_exp_as(h + at, x, at, row_count(visible, at), softmax_origin(max), a, next, T);
    const float inverse = 1 / sum;
    for (int64_t at = 0; at < visible; at += ROW_PIECE)
        softmax_write_as(h + at, inverse, row_sink_at(y, T, at, a->stream), row_count(visible, at), T);
}

/* The same with room for a piece. */
INLINE void softmax_long_row_as(const softmax *a, float *h, const void *x, void *y, int64_t visible, trine_dtype T) {
    float max = -INFINITY, sum = 0;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        const float old = max, here = softmax_max_as(x, at, count, a->f, T);
        if (here > max) max = here;
        if (at > 0 && max > old) sum *= softmax_exp2(vset(old - max), a->spread)[0];
        sum += softmax_exp_as(h, x, at, count, softmax_origin(max), a, x, T);
    }
    const float inverse = 1 / sum;
    for (int64_t at = 0; at < visible; at += ROW_PIECE) {
        const int count = row_count(visible, at);
        softmax_exp_as(h, x, at, count, softmax_origin(max), a, x, T);
        softmax_write_as(h, inverse, row_sink_at(y, T, at, a->stream), count, T);
    }
}

/* Rows [first, last), of one matrix. */
INLINE void softmax_rows_as(const softmax *a, float *h, int64_t first, int64_t last, trine_dtype T) {
    const int64_t size = (int64_t)vsize(T), g = first / a->s, i = first % a->s;
    const char *x = row_at3(a->x, g, i);
    char *y = row_at3(a->y, g, i);
    for (int64_t k = 0; k < last - first; k++, x += a->x->stride[1] * size, y += a->y->stride[1] * size) {
        const int64_t visible = a->causal ? row_visible(i + k, a->s, a->n) : a->n;
        if (visible <= SOFTMAX_HELD)
            softmax_row_as(a, h, x, y, visible, T);
        else
            softmax_long_row_as(a, h, x, y, visible, T);
        if (visible < a->n) memset(y + visible * size, 0, (size_t)((a->n - visible) * size));
    }
}

static int64_t softmax_chunks(int64_t s) { return (s + SOFTMAX_CHUNK - 1) / SOFTMAX_CHUNK; }

static void softmax_part(const void *context, int64_t first_chunk, int64_t last_chunk, int thread) {
    const softmax *a = context;
    row_piece piece;
    float *h = a->pitch > 0 ? a->held + thread * a->pitch : piece;
    const int64_t chunks = softmax_chunks(a->s);
    for (int64_t c = first_chunk; c < last_chunk; c++) {
        const int64_t i = c % chunks * SOFTMAX_CHUNK, first = c / chunks * a->s + i;
        FOR_TYPE(a->x->dtype, softmax_rows_as, a, h, first,
                 first + (a->s - i < SOFTMAX_CHUNK ? a->s - i : SOFTMAX_CHUNK));
    }
    if (a->stream) stream_fence();
}

/* Floats of workspace for a thread. */
static int64_t softmax_pitch(const trine_call *call) {
    const int64_t n = call->dim[SOFTMAX_DIM_N];
    return n <= ROW_PIECE ? 0 : n <= SOFTMAX_HELD ? cpu_round_up(n, 64) : SOFTMAX_HELD;
}

static int64_t softmax_tasks(const trine_call *call) {
    return call->dim[SOFTMAX_DIM_G] * softmax_chunks(call->dim[SOFTMAX_DIM_S]);
}
static int softmax_team(const trine_call *call) { return cpu_team(call, softmax_tasks(call), row_bytes(call)); }
static size_t workspace(const trine_call *call) {
    return (size_t)(softmax_team(call) * softmax_pitch(call)) * sizeof(float);
}

static void edges(const trine_call *call, trine_kernel_edges *edges) {
    row_edges(call, edges);
    trine_kernel_edge(edges, SOFTMAX_DIM_N, 2 * PAIR);
    trine_kernel_edge(edges, SOFTMAX_DIM_N, SOFTMAX_HELD);
    trine_kernel_edge(edges, SOFTMAX_DIM_S, SOFTMAX_CHUNK);
}

static trine_status launch(const trine_call *call) {
    const trine_softmax_args *args = call->args;
    const softmax a = {
        .x = row_tensor(call, SOFTMAX_X),
        .y = row_tensor(call, SOFTMAX_Y),
        .s = call->dim[SOFTMAX_DIM_S],
        .n = call->dim[SOFTMAX_DIM_N],
        .rows = call->dim[SOFTMAX_DIM_G] * call->dim[SOFTMAX_DIM_S],
        .pitch = softmax_pitch(call),
        .held = call->workspace,
        .f = args->scale > 0   ? 0.5f
             : args->scale < 0 ? -0.5f
                               : 0,
        .spread = args->scale == 0 ? 1 : (float)(fabs(args->scale) * 0x1.71547652b82fep1),
        .causal = args->causal,
        /* a line stored in part past the caches costs more than it saves */
        .stream = !args->causal && row_streams(call),
    };
    if (a.causal) /* rows grow */
        cpu_tasks(call, softmax_team(call), softmax_tasks(call), softmax_part, &a);
    else
        cpu_shares(call, softmax_team(call), softmax_tasks(call), softmax_part, &a);
    return TRINE_OK;
}

CPU_KERNELS(softmax) = { { .name = CPU_NAME, .workspace = workspace, .launch = launch, .edges = edges }, { 0 } };
