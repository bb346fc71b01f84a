/* SPDX-License-Identifier: Apache-2.0 */
/* What recurrences of matrices share on the CPU: a state's columns do not meet in the forward, which takes them in
 * blocks that stay in the first-level cache. gated_delta's names stand for ssd's too (spec/state/state.h). */
#ifndef TRINE_CPU_STATE_H
#define TRINE_CPU_STATE_H

#include <inttypes.h>

#include "backends/cpu/core/cpu.h"
#include "backends/cpu/core/vec_math.h"

enum {
    STATE_MOST = 256,            /* rows of a state */
    STATE_WIDTH = 32,            /* columns of a block */
    STATE_NV = STATE_WIDTH / VL, /* vectors of a row of a block */
    /* of sums of a vector, that additions do not wait for each other */
    STATE_CHAINS = VL >= 16  ? 4
                   : VL == 8 ? 2
                             : 1
};

typedef struct state_job {
    const trine_call *call;
    const int32_t *cu;                 /* NULL: the members of the batch are the sequences */
    int64_t t, h, groups, d, e, count; /* count: of sequences */
    const trine_tensor *q, *k, *v, *y, *s0, *last;
    const trine_tensor *g, *beta;                /* of gated_delta; NULL if absent */
    const trine_tensor *dt, *a, *dt_bias, *past; /* of ssd, past being its d; dt NULL: gated_delta */
    bool softplus;
    float scale;
} state_job;

static inline int64_t state_blocks(const state_job *s) { return (s->e + STATE_WIDTH - 1) / STATE_WIDTH; }

/* Offsets that are none are told of before anything is written. */
static inline trine_status state_check(const state_job *s) {
    const char *op = s->call->plan->spec->name;
    if (s->cu == NULL) return TRINE_OK;
    if (s->cu[0] != 0)
        return s->call->host->error(TRINE_ERR_ARGUMENT, "%s: cu_seqlens[0] is %d, but must be 0", op, (int)s->cu[0]);
    for (int64_t i = 0; i < s->count; i++)
        if (s->cu[i + 1] < s->cu[i])
            return s->call->host->error(TRINE_ERR_ARGUMENT,
                                        "%s: cu_seqlens[%" PRId64 "] is %d, below cu_seqlens[%" PRId64 "] = %d", op,
                                        i + 1, (int)s->cu[i + 1], i, (int)s->cu[i]);
    if (s->cu[s->count] <= s->t) return TRINE_OK;
    return s->call->host->error(TRINE_ERR_ARGUMENT,
                                "%s: cu_seqlens[%" PRId64 "] is %d, but there are %" PRId64 " steps", op, s->count,
                                (int)s->cu[s->count], s->t);
}

/* The steps of a sequence; of the room behind the last one if `sequence` is their count. */
typedef struct state_span {
    int64_t sequence, batch, first, steps;
} state_span;
static inline state_span state_span_of(const state_job *s, int64_t sequence) {
    if (s->cu == NULL) return (state_span){ sequence, sequence, 0, s->t };
    const int64_t end = sequence < s->count ? s->cu[sequence + 1] : s->t;
    return (state_span){ sequence, 0, s->cu[sequence], end - s->cu[sequence] };
}

/* Where what a step has of a head, or of a group, begins. */
static inline int64_t state_at(const trine_tensor *t, const state_span *span, int64_t step, int64_t head) {
    return span->batch * t->stride[0] + (span->first + step) * t->stride[1] + head * t->stride[2];
}
static inline float state_scalar(const trine_tensor *t, const state_span *span, int64_t step, int64_t head) {
    return ((const float *)t->data)[state_at(t, span, step, head)];
}

/* n elements from place `at` on, as floats, and back. */
INLINE void state_load_as(float *to, const trine_tensor *t, int64_t at, int64_t n, trine_dtype T) {
    int64_t j = 0;
    for (; j + VL <= n; j += VL) *(vf_any *)(to + j) = vload(t->data, T, at + j);
    for (; j < n; j++) to[j] = sload(t->data, T, at + j);
}
static inline void state_load(float *to, const trine_tensor *t, int64_t at, int64_t n) {
    FOR_TYPE(t->dtype, state_load_as, to, t, at, n);
}
INLINE void state_store_as(const float *from, const trine_tensor *t, int64_t at, int64_t n, trine_dtype T) {
    int64_t j = 0;
    for (; j + VL <= n; j += VL) vstore(t->data, T, at + j, *(const vf_any *)(from + j));
    for (; j < n; j++) sstore(t->data, T, at + j, from[j]);
}
static inline void state_store(const float *from, const trine_tensor *t, int64_t at, int64_t n) {
    FOR_TYPE(t->dtype, state_store_as, from, t, at, n);
}

/* What the steps of a head have: the factor of v, the gate and the rate. */
typedef struct state_step {
    float factor, decay, rate;
    bool delta;
} state_step;

static inline float state_exp(float x) { return vexp(vset(x))[0]; }

/* log(1 + e^x): of 1 + e^-|x| the logarithm, for what the sum has lost. */
static inline float state_softplus(float x) {
    const float power = state_exp(-fabsf(x)), sum = 1 + power, lost = sum - 1;
    const float log1p = lost == 0 ? power : vlog(vset(sum))[0] * (power / lost);
    return x != x ? x : (x > 0 ? x : 0) + log1p;
}
static inline float state_raw_dt(const state_job *s, const state_span *span, int64_t step, int64_t head) {
    const float *bias = s->dt_bias ? s->dt_bias->data : NULL;
    return state_scalar(s->dt, span, step, head) + (bias ? bias[head] : 0);
}
static inline state_step state_step_of(const state_job *s, const state_span *span, int64_t step, int64_t head) {
    state_step x = { .factor = 1, .decay = 1, .rate = 1, .delta = s->beta != NULL };
    if (s->g) x.decay = state_exp(state_scalar(s->g, span, step, head));
    if (s->beta) x.rate = state_scalar(s->beta, span, step, head);
    if (s->dt) {
        const float raw = state_raw_dt(s, span, step, head);
        x.factor = s->softplus ? state_softplus(raw) : raw;
        x.decay = state_exp(x.factor * ((const float *)s->a->data)[head]);
    }
    return x;
}

/* For each row r, in turn by the number n of a chain of sums. */
#define STATE_ROWS(d, r, n, ...) \
    do { \
        int64_t state_row = 0; \
        for (; state_row + STATE_CHAINS <= (d); state_row += STATE_CHAINS) \
            for (int n = 0; n < STATE_CHAINS; n++) { \
                const int64_t r = state_row + n; \
                __VA_ARGS__; \
            } \
        for (; state_row < (d); state_row++) { \
            const int64_t r = state_row; \
            const int n = 0; \
            __VA_ARGS__; \
        } \
    } while (0)

/* A block of columns after a step, from `from` to `to`, which may be the same, rows lying `step_from` and `step_to`
 * apart. w and u are what comes of v (spec/state/state.h); o, unless it is NULL, gets to^T q. */
INLINE void state_advance(const float *from, int64_t step_from, float *to, int64_t step_to, int64_t d,
                          const state_step *x, const float *k, const float *q, const float *v, float *w, float *u,
                          float *o) {
    vf of_k[STATE_NV], p[STATE_CHAINS][STATE_NV], sum[STATE_CHAINS][STATE_NV];
    for (int n = 0; n < STATE_CHAINS; n++)
        for (int i = 0; i < STATE_NV; i++) p[n][i] = sum[n][i] = vzero();
    for (int i = 0; i < STATE_NV; i++) of_k[i] = *(const vf_any *)(v + i * VL);
    const vf decay = vset(x->decay);
    if (x->delta) {
        STATE_ROWS(d, r, n, {
            for (int i = 0; i < STATE_NV; i++)
                p[n][i] = vfma(vset(k[r]), *(const vf_any *)(from + r * step_from + i * VL), p[n][i]);
        });
        for (int i = 0; i < STATE_NV; i++) {
            for (int n = 1; n < STATE_CHAINS; n++) p[0][i] += p[n][i];
            of_k[i] -= decay * p[0][i];
            if (w) *(vf_any *)(w + i * VL) = of_k[i];
            of_k[i] *= vset(x->rate);
        }
    }
    for (int i = 0; u && i < STATE_NV; i++) *(vf_any *)(u + i * VL) = of_k[i];
    STATE_ROWS(d, r, n, {
        for (int i = 0; i < STATE_NV; i++) {
            const vf old = *(const vf_any *)(from + r * step_from + i * VL),
                     state = vfma(decay, old, vset(k[r]) * of_k[i]);
            *(vf_any *)(to + r * step_to + i * VL) = state;
            if (o) sum[n][i] = vfma(vset(q[r]), state, sum[n][i]);
        }
    });
    for (int i = 0; o && i < STATE_NV; i++) {
        for (int n = 1; n < STATE_CHAINS; n++) sum[0][i] += sum[n][i];
        *(vf_any *)(o + i * VL) = sum[0][i];
    }
}

/* `columns` columns of a head's state from or to a tensor of states, in whose rows, of ssd's, a column lies; to
 * `stride` apart, with 0 for what is not there. */
static inline int64_t state_place(const state_job *s, const trine_tensor *t, int64_t sequence, int64_t head,
                                  int64_t column) {
    return sequence * t->stride[0] + head * t->stride[1] + column * (s->dt ? t->stride[2] : 1);
}
static inline void state_read(const state_job *s, float *to, int64_t stride, const trine_tensor *t, int64_t sequence,
                              int64_t head, int64_t column, int64_t columns, int64_t width) {
    for (int64_t r = 0; r < s->d; r++) memset(to + r * stride, 0, (size_t)width * sizeof *to);
    if (t == NULL) return;
    const float *from = (const float *)t->data + state_place(s, t, sequence, head, column);
    for (int64_t r = 0; r < s->d && !s->dt; r++)
        memcpy(to + r * stride, from + r * t->stride[2], (size_t)columns * sizeof *to);
    for (int64_t j = 0; j < columns && s->dt; j++)
        for (int64_t r = 0; r < s->d; r++) to[r * stride + j] = from[j * t->stride[2] + r];
}
static inline void state_write(const state_job *s, const float *from, int64_t stride, const trine_tensor *t,
                               int64_t sequence, int64_t head, int64_t column, int64_t columns) {
    if (t == NULL) return;
    float *to = (float *)t->data + state_place(s, t, sequence, head, column);
    for (int64_t r = 0; r < s->d && !s->dt; r++)
        memcpy(to + r * t->stride[2], from + r * stride, (size_t)columns * sizeof *to);
    for (int64_t j = 0; j < columns && s->dt; j++)
        for (int64_t r = 0; r < s->d; r++) to[j * t->stride[2] + r] = from[r * stride + j];
}

/* n elements of each step of a span, of each of so many heads, are 0. */
static inline void state_clear(const state_span *span, const trine_tensor *t, int64_t heads, int64_t n) {
    for (int64_t step = 0; t && step < span->steps; step++)
        for (int64_t head = 0; head < heads; head++)
            memset((char *)t->data + state_at(t, span, step, head) * (int64_t)vsize(t->dtype), 0,
                   (size_t)n * vsize(t->dtype));
}

static inline int64_t state_bytes(const trine_call *call) {
    return (int64_t)trine_plan_bytes(call->plan, call->dim, call->type, call->present);
}

#endif
