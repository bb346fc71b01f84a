/* SPDX-License-Identifier: Apache-2.0 */
/* The forward of recurrences of matrices on the CPU: a task is a block of columns of a head of a sequence, all of whose
 * steps it takes. */
#ifndef TRINE_CPU_STATE_FORWARD_H
#define TRINE_CPU_STATE_FORWARD_H

#include "state.h"

/* A task's columns and the operands of one of its steps. */
typedef struct state_operands {
    int64_t head, group, column, columns;
    float q[STATE_MOST], k[STATE_MOST], x[STATE_WIDTH], v[STATE_WIDTH], o[STATE_WIDTH];
    state_step at;
} state_operands;

static inline void state_fetch(const state_job *s, const state_span *span, int64_t step, state_operands *a) {
    a->at = state_step_of(s, span, step, a->head);
    state_load(a->q, s->q, state_at(s->q, span, step, a->group), s->d);
    state_load(a->k, s->k, state_at(s->k, span, step, a->group), s->d);
    state_load(a->x, s->v, state_at(s->v, span, step, a->head) + a->column, a->columns);
    for (int i = 0; i < STATE_WIDTH; i++) a->v[i] = s->dt ? a->at.factor * a->x[i] : a->x[i];
}

static inline void state_finish(const state_job *s, const state_span *span, int64_t step, state_operands *a) {
    const float past = s->past ? ((const float *)s->past->data)[a->head] : 0;
    for (int i = 0; i < STATE_WIDTH; i++) a->o[i] = s->past ? a->o[i] + past * a->x[i] : s->scale * a->o[i];
    state_store(a->o, s->y, state_at(s->y, span, step, a->head) + a->column, a->columns);
}

/* All steps of states whose rows are rows of memory too. Where the block is whole, the first step reads s0 and the last
 * one writes `last`, and nothing is copied: a single step is all that there is to decoding. */
static inline void state_run_rows(const state_job *s, const state_span *span, state_operands *a) {
    float state[STATE_MOST * STATE_WIDTH] __attribute__((aligned(64)));
    const bool whole = a->columns == STATE_WIDTH && span->steps > 0, reads = whole && s->s0, writes = whole && s->last;
    const float *from = state;
    int64_t step_from = STATE_WIDTH;
    if (reads) {
        from = (const float *)s->s0->data + state_place(s, s->s0, span->sequence, a->head, a->column);
        step_from = s->s0->stride[2];
    } else {
        state_read(s, state, STATE_WIDTH, s->s0, span->sequence, a->head, a->column, a->columns, STATE_WIDTH);
    }
    for (int64_t step = 0; step < span->steps; step++) {
        state_fetch(s, span, step, a);
        if (step == span->steps - 1 && writes)
            state_advance(from, step_from,
                          (float *)s->last->data + state_place(s, s->last, span->sequence, a->head, a->column),
                          s->last->stride[2], s->d, &a->at, a->k, a->q, a->v, NULL, NULL, a->o);
        else if (step == 0)
            state_advance(from, step_from, state, STATE_WIDTH, s->d, &a->at, a->k, a->q, a->v, NULL, NULL, a->o);
        else
            state_advance(state, STATE_WIDTH, state, STATE_WIDTH, s->d, &a->at, a->k, a->q, a->v, NULL, NULL, a->o);
        state_finish(s, span, step, a);
        from = state, step_from = STATE_WIDTH;
    }
    if (!writes) state_write(s, state, STATE_WIDTH, s->last, span->sequence, a->head, a->column, a->columns);
}

/* The same of states whose columns are rows of memory, turned on the way. */
static inline void state_run_columns(const state_job *s, const state_span *span, state_operands *a) {
    float state[STATE_MOST * STATE_WIDTH] __attribute__((aligned(64)));
    state_read(s, state, STATE_WIDTH, s->s0, span->sequence, a->head, a->column, a->columns, STATE_WIDTH);
    for (int64_t step = 0; step < span->steps; step++) {
        state_fetch(s, span, step, a);
        state_advance(state, STATE_WIDTH, state, STATE_WIDTH, s->d, &a->at, a->k, a->q, a->v, NULL, NULL, a->o);
        state_finish(s, span, step, a);
    }
    state_write(s, state, STATE_WIDTH, s->last, span->sequence, a->head, a->column, a->columns);
}

/* One step of such states, column by column as they lie. */
static inline void state_run_one(const state_job *s, const state_span *span, state_operands *a) {
    for (int64_t r = s->d; r < cpu_round_up(s->d, VL); r++) a->q[r] = a->k[r] = 0;
    state_fetch(s, span, 0, a);
    const vf decay = vset(a->at.decay);
    for (int64_t j = 0; j < a->columns; j++) {
        const int64_t column = a->column + j;
        const float *from =
            s->s0 ? (const float *)s->s0->data + state_place(s, s->s0, span->sequence, a->head, column) : NULL;
        float *to = s->last ? (float *)s->last->data + state_place(s, s->last, span->sequence, a->head, column) : NULL;
        vf sum = vzero();
        for (int64_t r = 0; r < s->d; r += VL) {
            const int n = s->d - r < VL ? (int)(s->d - r) : VL;
            const vf old = from == NULL ? vzero()
                           : n == VL    ? vload(from, TRINE_F32, r)
                                        : vloadn(from, TRINE_F32, r, n, 0),
                     state = vfma(decay, old, vset(a->v[j]) * *(const vf_any *)(a->k + r));
            sum = vfma(*(const vf_any *)(a->q + r), state, sum);
            if (to && n == VL) vstore(to, TRINE_F32, r, state);
            if (to && n < VL) vstoren(to, TRINE_F32, r, n, state);
        }
        a->o[j] = vhsum(sum);
    }
    state_finish(s, span, 0, a);
}

static inline void state_task(const state_job *s, const state_span *span, int64_t head, int64_t column) {
    state_operands a = { .head = head, .group = head / (s->h / s->groups), .column = column };
    a.columns = s->e - column < STATE_WIDTH ? s->e - column : STATE_WIDTH;
    if (s->dt == NULL)
        state_run_rows(s, span, &a);
    else if (span->steps == 1)
        state_run_one(s, span, &a);
    else
        state_run_columns(s, span, &a);
}

static inline void state_tasks(const void *context, int64_t first, int64_t last, int thread) {
    const state_job *s = context;
    const int64_t blocks = state_blocks(s);
    (void)thread;
    for (int64_t i = first; i < last; i++) {
        const int64_t head = i / blocks % s->h;
        const state_span span = state_span_of(s, i / blocks / s->h);
        if (span.sequence < s->count)
            state_task(s, &span, head, i % blocks * STATE_WIDTH);
        else if (i % (blocks * s->h) == 0)
            state_clear(&span, s->y, s->h, s->e);
    }
}

static inline trine_status state_run(const state_job *s) {
    const int64_t tasks = (s->count + (s->cu != NULL)) * s->h * state_blocks(s);
    const trine_status status = state_check(s);
    if (status == TRINE_OK) cpu_tasks(s->call, cpu_team(s->call, tasks, state_bytes(s->call)), tasks, state_tasks, s);
    return status;
}

#endif
