/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of recurrences of matrices on the CPU: a task is a group of heads, which share q and k, of a sequence.
 * States are computed twice: a first time all of them, of which those before each `chunk` steps are kept; then, from
 * the last chunk to the first, those of its steps. */
#ifndef TRINE_CPU_STATE_BACKWARD_H
#define TRINE_CPU_STATE_BACKWARD_H

#include "state.h"

enum { STATE_LEAST_CHUNK = 16, STATE_ROW = 256 /* steps that are added up in a row */ };

typedef struct state_gradient {
    state_job job;
    const trine_tensor *dout, *dlast;
    const trine_tensor *dq, *dk, *dv, *ds0; /* ds0: NULL if absent, as dg, dbeta */
    const trine_tensor *dg, *dbeta, *ddt;   /* of gated_delta; of ssd */
    float *of_a, *of_past, *of_dt;          /* of ssd, in the workspace: terms of sums, h x b t */
    int64_t rows;                           /* b t */
    int64_t width, chunk, chunks;           /* width: of a state's rows, whole blocks of columns */
    int64_t tasks;
    int team;
} state_gradient;

/* A thread's memory: of the group's heads the states before chunks and the gradients; of a chunk a head's states, and
 * what is added up; of a chunk's steps w, u; of a step others of that width. */
typedef struct state_buffers {
    float *kept, *gradient, *states, *dq, *dk, *w, *u, *v, *dout, *dv;
} state_buffers;

static inline int64_t state_size(const state_gradient *a) { return a->job.d * a->width; }
static inline int64_t state_buffer_floats(const state_gradient *a) {
    const int64_t heads = a->job.h / a->job.groups;
    return (heads * (a->chunks + 1) + a->chunk + 1) * state_size(a) + 2 * a->chunk * cpu_round_up(a->job.d, 16) +
           (2 * a->chunk + 3) * a->width;
}
static inline state_buffers state_buffers_of(const state_gradient *a, int thread) {
    const int64_t heads = a->job.h / a->job.groups, size = state_size(a),
                  vector = a->chunk * cpu_round_up(a->job.d, 16);
    float *const at = (float *)a->job.call->workspace + thread * state_buffer_floats(a);
    state_buffers b = { .kept = at };
    b.gradient = b.kept + heads * a->chunks * size;
    b.states = b.gradient + heads * size;
    b.dq = b.states + (a->chunk + 1) * size;
    b.dk = b.dq + vector;
    b.w = b.dk + vector;
    b.u = b.w + a->chunk * a->width;
    b.v = b.u + a->chunk * a->width;
    b.dout = b.v + a->width;
    b.dv = b.dout + a->width;
    return b;
}

/* What follows from the sizes and from whether sequences are packed. */
static inline void state_gradient_plan(state_gradient *a, int64_t b, bool packed) {
    const state_job *s = &a->job;
    a->rows = b * s->t;
    a->width = cpu_round_up(s->e, STATE_WIDTH);
    for (a->chunk = STATE_LEAST_CHUNK; a->chunk * a->chunk < s->t;) a->chunk *= 2;
    a->chunks = (s->t + a->chunk - 1) / a->chunk;
    a->tasks = (s->count + packed) * s->groups;
    a->team = cpu_team(s->call, a->tasks, state_bytes(s->call));
}
static inline size_t state_gradient_bytes(const state_gradient *a) {
    const int64_t sums = a->job.dt ? 3 * a->job.h * a->rows : 0;
    return (size_t)(a->team * state_buffer_floats(a) + sums) * sizeof(float);
}

/* v of a step, times its factor, with zeros behind it. */
static inline void state_values(const state_job *s, const state_span *span, int64_t step, int64_t head,
                                const state_step *x, float *v, int64_t width) {
    state_load(v, s->v, state_at(s->v, span, step, head), s->e);
    for (int64_t j = s->e; j < width; j++) v[j] = 0;
    for (int64_t j = 0; j < s->e && s->dt; j++) v[j] *= x->factor;
}

/* One step of all columns; w and u may be NULL. */
static inline void state_step_on(const state_gradient *a, const state_span *span, int64_t step, int64_t head,
                                 const float *from, float *to, float *v, float *w, float *u) {
    const state_job *s = &a->job;
    float k[STATE_MOST];
    const state_step x = state_step_of(s, span, step, head);
    state_load(k, s->k, state_at(s->k, span, step, head / (s->h / s->groups)), s->d);
    state_values(s, span, step, head, &x, v, a->width);
    for (int64_t c = 0; c < a->width; c += STATE_WIDTH)
        state_advance(from + c, a->width, to + c, a->width, s->d, &x, k, NULL, v + c, w ? w + c : NULL,
                      u ? u + c : NULL, NULL);
}

/* What columns add up to, a vector each: the gradients of the rate and of the gate. */
typedef struct state_sums {
    vf rate, gate;
} state_sums;

/* A block of columns of a step: `g` is the gradient of the state after it, and becomes that of the state before. */
INLINE void state_retreat(const float *before, const float *after, float *g, int64_t stride, int64_t d,
                          const state_step *x, const float *k, const float *q, const float *dout, const float *w,
                          const float *u, float *dv, float *dq, float *dk, state_sums *sums) {
    vf of_o[STATE_NV], of_u[STATE_NV], of_w[STATE_NV], by[STATE_NV];
    const vf decay = vset(x->decay);
    for (int i = 0; i < STATE_NV; i++)
        of_o[i] = *(const vf_any *)(dout + i * VL), by[i] = *(const vf_any *)(u + i * VL), of_u[i] = vzero();
    for (int64_t r = 0; r < d; r++) {
        vf sum = vzero();
        for (int i = 0; i < STATE_NV; i++) {
            const vf state = vfma(vset(q[r]), of_o[i], *(const vf_any *)(g + r * stride + i * VL));
            *(vf_any *)(g + r * stride + i * VL) = state;
            of_u[i] = vfma(vset(k[r]), state, of_u[i]);
            sum = vfma(*(const vf_any *)(after + r * stride + i * VL), of_o[i], sum);
        }
        dq[r] += vhsum(sum);
    }
    for (int i = 0; i < STATE_NV; i++) {
        of_w[i] = x->delta ? of_u[i] * vset(x->rate) : vzero();
        if (x->delta) sums->rate = vfma(of_u[i], *(const vf_any *)(w + i * VL), sums->rate);
        *(vf_any *)(dv + i * VL) = x->delta ? of_w[i] : of_u[i];
    }
    for (int64_t r = 0; r < d; r++) {
        vf sum = vzero();
        for (int i = 0; i < STATE_NV; i++) {
            const vf old = decay * *(const vf_any *)(before + r * stride + i * VL),
                     state = *(const vf_any *)(g + r * stride + i * VL);
            sum = vfma(state, by[i], sum);
            vf first = state;
            if (x->delta) {
                sum = vfma(-old, of_w[i], sum);
                first = vfma(vset(-k[r]), of_w[i], state);
            }
            sums->gate = vfma(first, old, sums->gate);
            *(vf_any *)(g + r * stride + i * VL) = decay * first;
        }
        dk[r] += vhsum(sum);
    }
}

/* What a step of ssd gives beside the gradients of its state, b.dv being that of what is added to it. */
static inline void state_finish_ssd(const state_gradient *a, const state_span *span, int64_t step, int64_t head,
                                    const state_step *x, const state_buffers *b, float gate) {
    const state_job *s = &a->job;
    const float rate = ((const float *)s->a->data)[head], past = s->past ? ((const float *)s->past->data)[head] : 0;
    const int64_t at = head * a->rows + span->batch * s->t + span->first + step;
    float by_x = 0, by_dout = 0;
    vf sums[2] = { vzero(), vzero() };
    state_load(b->v, s->v, state_at(s->v, span, step, head), s->e);
    for (int64_t j = 0; j < a->width; j += VL) {
        vf *const dv = (vf *)(void *)(b->dv + j);
        const vf value = *(vf *)(void *)(b->v + j), dout = *(vf *)(void *)(b->dout + j);
        sums[0] = vfma(value, *dv, sums[0]);
        sums[1] = vfma(value, dout, sums[1]);
        *dv = *dv * vset(x->factor);
        if (s->past) *dv = vfma(vset(past), dout, *dv);
    }
    by_x = vhsum(sums[0]), by_dout = vhsum(sums[1]);
    float dt = by_x + rate * gate;
    if (s->softplus) dt *= vsigmoid(vset(state_raw_dt(s, span, step, head)))[0];
    ((float *)a->ddt->data)[state_at(a->ddt, span, step, head)] = dt;
    a->of_dt[at] = dt, a->of_a[at] = x->factor * gate, a->of_past[at] = by_dout;
}

static inline void state_back(const state_gradient *a, const state_span *span, int64_t step, int64_t head,
                              const state_buffers *b, float *g, int64_t in_chunk) {
    const state_job *s = &a->job;
    const int64_t group = head / (s->h / s->groups), size = state_size(a), lines = cpu_round_up(s->d, 16);
    const float *const before = b->states + in_chunk * size, *const after = before + size;
    float k[STATE_MOST], q[STATE_MOST];
    const state_step x = state_step_of(s, span, step, head);
    state_load(k, s->k, state_at(s->k, span, step, group), s->d);
    state_load(q, s->q, state_at(s->q, span, step, group), s->d);
    state_load(b->dout, a->dout, state_at(a->dout, span, step, head), s->e);
    for (int64_t j = 0; j < a->width; j++) b->dout[j] = j < s->e ? s->scale * b->dout[j] : 0;
    state_sums sums = { vzero(), vzero() };
    for (int64_t c = 0; c < a->width; c += STATE_WIDTH)
        state_retreat(before + c, after + c, g + c, a->width, s->d, &x, k, q, b->dout + c,
                      b->w + in_chunk * a->width + c, b->u + in_chunk * a->width + c, b->dv + c,
                      b->dq + in_chunk * lines, b->dk + in_chunk * lines, &sums);
    const float gate = vhsum(sums.gate);
    if (s->dt) state_finish_ssd(a, span, step, head, &x, b, gate);
    state_store(b->dv, a->dv, state_at(a->dv, span, step, head), s->e);
    if (a->dg) ((float *)a->dg->data)[state_at(a->dg, span, step, head)] = gate;
    if (a->dbeta) ((float *)a->dbeta->data)[state_at(a->dbeta, span, step, head)] = vhsum(sums.rate);
}

/* A chunk of a head: its states, and its steps from the last to the first. */
static inline void state_chunk(const state_gradient *a, const state_span *span, int64_t first, int64_t steps,
                               int64_t head, const float *start, float *g, const state_buffers *b) {
    const int64_t size = state_size(a);
    memcpy(b->states, start, (size_t)size * sizeof(float));
    for (int64_t i = 0; i < steps; i++)
        state_step_on(a, span, first + i, head, b->states + i * size, b->states + (i + 1) * size, b->v,
                      b->w + i * a->width, b->u + i * a->width);
    for (int64_t i = steps - 1; i >= 0; i--) state_back(a, span, first + i, head, b, g, i);
}

static inline void state_group(const state_gradient *a, const state_span *span, int64_t group, int thread) {
    const state_job *s = &a->job;
    const state_buffers b = state_buffers_of(a, thread);
    const int64_t heads = s->h / s->groups, size = state_size(a), chunks = (span->steps + a->chunk - 1) / a->chunk,
                  lines = cpu_round_up(s->d, 16), head0 = group * heads;
    for (int64_t i = 0; i < heads; i++) {
        float *const kept = b.kept + i * a->chunks * size;
        if (chunks > 0) state_read(s, kept, a->width, s->s0, span->sequence, head0 + i, 0, s->e, a->width);
        for (int64_t step = 0; step < (chunks - 1) * a->chunk; step++)
            state_step_on(a, span, step, head0 + i, step % a->chunk ? b.states : kept + step / a->chunk * size,
                          (step + 1) % a->chunk ? b.states : kept + (step + 1) / a->chunk * size, b.v, NULL, NULL);
        state_read(s, b.gradient + i * size, a->width, a->dlast, span->sequence, head0 + i, 0, s->e, a->width);
    }
    for (int64_t c = chunks - 1; c >= 0; c--) {
        const int64_t first = c * a->chunk, steps = span->steps - first < a->chunk ? span->steps - first : a->chunk;
        memset(b.dq, 0, (size_t)(steps * lines) * sizeof(float));
        memset(b.dk, 0, (size_t)(steps * lines) * sizeof(float));
        for (int64_t i = 0; i < heads; i++)
            state_chunk(a, span, first, steps, head0 + i, b.kept + (i * a->chunks + c) * size, b.gradient + i * size,
                        &b);
        for (int64_t i = 0; i < steps; i++) {
            state_store(b.dq + i * lines, a->dq, state_at(a->dq, span, first + i, group), s->d);
            state_store(b.dk + i * lines, a->dk, state_at(a->dk, span, first + i, group), s->d);
        }
    }
    for (int64_t i = 0; i < heads; i++)
        state_write(s, b.gradient + i * size, a->width, a->ds0, span->sequence, head0 + i, 0, s->e);
}

/* What the room behind the last sequence has: no gradients. */
static inline void state_clear_room(const state_gradient *a, const state_span *span) {
    const state_job *s = &a->job;
    state_clear(span, a->dq, s->groups, s->d);
    state_clear(span, a->dk, s->groups, s->d);
    state_clear(span, a->dv, s->h, s->e);
    state_clear(span, a->dg, s->h, 1);
    state_clear(span, a->dbeta, s->h, 1);
    state_clear(span, a->ddt, s->h, 1);
    for (int64_t head = 0; head < s->h && s->dt; head++) {
        const int64_t at = head * a->rows + span->first;
        memset(a->of_a + at, 0, (size_t)span->steps * sizeof(float));
        memset(a->of_past + at, 0, (size_t)span->steps * sizeof(float));
        memset(a->of_dt + at, 0, (size_t)span->steps * sizeof(float));
    }
}

static inline void state_gradient_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const state_gradient *a = context;
    for (int64_t i = first; i < last; i++) {
        const state_span span = state_span_of(&a->job, i / a->job.groups);
        if (span.sequence < a->job.count)
            state_group(a, &span, i % a->job.groups, thread);
        else if (i % a->job.groups == 0)
            state_clear_room(a, &span);
    }
}

static inline trine_status state_gradient_run(const state_gradient *a) {
    const state_job *s = &a->job;
    const trine_status status = state_check(s);
    if (status == TRINE_OK) cpu_tasks(s->call, a->team, a->tasks, state_gradient_tasks, a);
    return status;
}

#endif
