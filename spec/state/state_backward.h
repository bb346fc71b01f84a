/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of gradients of recurrences of matrices share: the states of a head at all its steps, and the
 * steps from the last to the first. */
#ifndef TRINE_SPEC_STATE_BACKWARD_H
#define TRINE_SPEC_STATE_BACKWARD_H

#include "state.h"

/* A sum as it grows: its value, the errors of its terms, and the size of all that rounds. */
typedef struct state_sum {
    double x, error, size;
    bool uncertain;
} state_sum;

static inline void state_add(state_sum *sum, state_number a, state_number b, bool uncertain) {
    const double x = trine_finite_abs(a.x), y = trine_finite_abs(b.x);
    sum->x += a.x * b.x;
    sum->error += x * b.error + y * a.error + a.error * b.error + FLUSH;
    sum->size += (x + a.error) * (y + b.error);
    sum->uncertain |= uncertain || isinf(a.x) || isinf(b.x);
}

/* The sum after `roundings` of each term. */
static inline state_number state_total(const state_sum *sum, double roundings) {
    return (state_number){ sum->x, sum->error + roundings * (1 + 8 * U) * U * sum->size };
}
static inline void state_put_sum(trine_ref *ref, const char *name, int64_t at, const state_sum *sum, double roundings) {
    state_put(ref, name, at, state_total(sum, roundings), sum->uncertain || !(sum->size < LARGEST));
}

/* Additions that a term of a sum over all steps passes through at most: up to 256 in a row, and then as many as there
 * are such rows. */
static inline double state_depth(double all) { return fmin(all, 256) + all / 256 + 16; }

/* What a step gives to gradients, besides those of the state: of v (or of the factor times x), of the rate, of the
 * logarithm of the gate. */
typedef struct state_gradients {
    state_number *value; /* e of them */
    bool *uncertain;     /* of each */
    state_sum beta, gate;
} state_gradients;

/* All states of a head: after step k - 1 at k, and what it was on its way. */
typedef struct state_history {
    state_column *after; /* (steps + 1) x e */
    state_trace *trace;  /* steps x e */
    double *memory;
} state_history;

static inline state_history state_history_of(const state_problem *s, int64_t i, int64_t head) {
    const int64_t steps = state_steps(s, i), each = s->d * s->e;
    state_history past = { .after = malloc(sizeof(state_column) * (size_t)((steps + 1) * s->e + 1)),
                           .trace = malloc(sizeof(state_trace) * (size_t)(steps * s->e + 1)),
                           .memory = malloc(sizeof(double) * (size_t)((steps + 1) * each + 1)) };
    state_begin(s, i, head, past.after, past.memory);
    for (int64_t k = 0; k < steps; k++) {
        const state_step x = state_step_of(s, state_first(s, i) + k, head);
        for (int64_t j = 0; j < s->e; j++) {
            const state_column *before = &past.after[k * s->e + j];
            state_column *c = &past.after[(k + 1) * s->e + j];
            *c = *before;
            c->s = past.memory + (k + 1) * each + j * s->d;
            for (int64_t r = 0; r < s->d; r++) c->s[r] = before->s[r];
            state_advance(&x, s->d, x.v[j], c, &past.trace[k * s->e + j]);
        }
    }
    return past;
}
static inline void state_history_free(state_history *past) {
    free(past->after);
    free(past->trace);
    free(past->memory);
}

/* A step's column: of G, the gradient of the state after the step, makes that of the state before it, and adds to the
 * sums over columns. Bound: what G is off by passes through 1 - beta k k^T as the state's error does (state.h); dq and
 * dk are sums over the columns, of a state's element and a number; the gate's gradient is one over rows and columns, in
 * that order, of products of two states, each off by a vector of a known length.
 *
 * Kernels that take steps in chunks are held to the same, as state.h has it of states. In a chunk, with E the gradient
 * that comes from behind it, G is L(last, t) E and the sum of L(s, t) times what each step s >= t adds: every rounding
 * is met by the gates between, as in the recurrence, and the system that dv solves is that of u, transposed. Products
 * of two steps' rows, of dout and u and of dv and u, are sums of e products in f32, as those over columns are here. The
 * gate's gradient is the sum of all terms of H by all of P: L(s, t) L(t, r) = L(s, r), so that each term has the gates
 * that it went past. Where the terms of both cancel, their products round more often than the lengths' product has it,
 * and so it is with the delta rule, where each step takes back some of those before: only states with as many rows as a
 * chunk has steps are taken so, whose sums of n products have as many roundings. A difference of sums over steps, of q
 * dq and v dv, would not do: it rounds as they do, however little a gate has left of what it is to give. */
static inline void state_retreat(const state_problem *s, const state_step *x, const state_column *before,
                                 const state_column *after, const state_trace *trace, double dout, state_column *g,
                                 state_sum *dq, state_sum *dk, state_gradients *to, int64_t j) {
    const int64_t d = s->d;
    const double n = (double)d, root = sqrt(n), scale = fabs(s->scale), size = trine_finite_abs(dout);
    const bool vague = before->uncertain || after->uncertain || x->vague;
    g->uncertain |= vague || isinf(dout) || state_infinite(x->q, d) || !(size * scale < LARGEST);
    for (int64_t r = 0; r < d; r++) g->s[r] += s->scale * dout * x->q[r];
    g->error += 3 * U * scale * size * x->length_q + FLUSH * (2 * root + x->length_q);
    g->error += U * (state_length(g->s, d) + g->error);
    g->uncertain |= !(state_length(g->s, d) + g->error < LARGEST);
    double du = 0, sum = x->length_k * g->error;
    for (int64_t r = 0; r < d; r++) {
        du += x->k[r] * g->s[r];
        sum += trine_finite_abs(x->k[r] * g->s[r]);
        state_add(&dq[r], (state_number){ after->s[r], after->error },
                  (state_number){ s->scale * dout, U * scale * size + FLUSH }, g->uncertain);
        state_add(&dk[r], (state_number){ g->s[r], g->error }, trace->u, g->uncertain);
    }
    const double own = (n + 3) * U * sum + (n + 2) * FLUSH;
    const state_number of_u = { du, own + x->length_k * g->error };
    state_number of_w = of_u;
    g->uncertain |= !(sum * (1 + x->rate) < LARGEST);
    if (x->beta) {
        state_add(&to->beta, of_u, trace->w, g->uncertain);
        of_w = state_product((state_number){ *x->beta, 0 }, of_u);
        const double growth = fmax(1, fabs(1 - *x->beta * x->length_k * x->length_k)),
                     along = trine_finite_abs(of_w.x) + of_w.error;
        for (int64_t r = 0; r < d; r++) {
            const double decayed = x->decay.x * before->s[r];
            state_add(&dk[r], (state_number){ decayed, trace->decayed }, (state_number){ -of_w.x, of_w.error },
                      g->uncertain);
            g->s[r] -= x->k[r] * of_w.x;
        }
        g->error = growth * g->error + x->length_k * (x->rate * own + 2 * U * along + FLUSH) +
                   U * state_length(g->s, d) + 2 * root * FLUSH;
    }
    to->value[j] = of_w;
    const double decay = trine_finite_abs(x->decay.x), length = state_length(g->s, d) + g->error,
                 past = decay * state_length(before->s, d) + trace->decayed;
    for (int64_t r = 0; r < d; r++) to->gate.x += g->s[r] * (x->decay.x * before->s[r]);
    to->gate.error += length * trace->decayed + past * g->error + n * FLUSH;
    to->gate.size += length * past;
    for (int64_t r = 0; r < d && x->gated; r++) g->s[r] *= x->decay.x;
    if (x->gated) g->error = decay * g->error + (x->decay.error + U * decay) * length + root * FLUSH;
    g->error *= 1 + 8 * U;
    g->uncertain |= !(length * (1 + decay) < LARGEST) || !(g->error < LARGEST);
    to->gate.uncertain |= g->uncertain;
    to->uncertain[j] = g->uncertain;
}

/* What an op makes of a step's gradients, `row` being the step of all. */
typedef void state_finish(trine_ref *ref, const state_problem *s, const state_step *x, int64_t row, int64_t head,
                          state_gradients *of, void *context);

/* All heads of a sequence; dq and dk have sums for each step of all, group and row. */
static inline void state_backward(trine_ref *ref, const state_problem *s, int64_t i, const double *dout, state_sum *dq,
                                  state_sum *dk, state_finish *finish, void *context) {
    const double *dlast = trine_ref_value(ref, "dlast");
    double *memory = malloc(sizeof(double) * (size_t)(s->d * s->e + 1));
    state_column *g = malloc(sizeof *g * (size_t)(s->e + 1));
    state_gradients of = { .value = malloc(sizeof(state_number) * (size_t)(s->e + 1)),
                           .uncertain = malloc((size_t)(s->e + 1)) };
    for (int64_t head = 0; head < s->h; head++) {
        state_history past = state_history_of(s, i, head);
        state_problem end = *s;
        end.s0 = dlast;
        state_begin(&end, i, head, g, memory);
        for (int64_t k = state_steps(s, i) - 1; k >= 0; k--) {
            const int64_t row = state_first(s, i) + k, at = (row * s->groups + head / (s->h / s->groups)) * s->d;
            const state_step x = state_step_of(s, row, head);
            of.beta = of.gate = (state_sum){ 0 };
            for (int64_t j = 0; j < s->e; j++)
                state_retreat(s, &x, &past.after[k * s->e + j], &past.after[(k + 1) * s->e + j],
                              &past.trace[k * s->e + j], dout[(row * s->h + head) * s->e + j], &g[j], dq + at, dk + at,
                              &of, j);
            finish(ref, s, &x, row, head, &of, context);
        }
        state_put_all(ref, "ds0", s, i, head, g);
        state_history_free(&past);
    }
    free(memory);
    free(g);
    free(of.value);
    free(of.uncertain);
}

/* All sequences, and then the gradients of q and k, sums over columns and heads of a group, by these names. */
static inline void state_backward_all(trine_ref *ref, const state_problem *s, const char *dout, const char *dq_name,
                                      const char *dk_name, state_finish *finish, void *context) {
    const int64_t rows = s->cu ? s->t : s->count * s->t, all = rows * s->groups * s->d;
    state_sum *dq = calloc((size_t)all + 1, sizeof *dq), *dk = calloc((size_t)all + 1, sizeof *dk);
    const double terms = (double)(s->e * s->h / s->groups);
    for (int64_t i = 0; i < s->count; i++)
        state_backward(ref, s, i, trine_ref_value(ref, dout), dq, dk, finish, context);
    for (int64_t at = 0; at < all; at++) {
        state_put_sum(ref, dq_name, at, &dq[at], terms + 4);
        state_put_sum(ref, dk_name, at, &dk[at], 2 * terms + 4);
    }
    free(dq);
    free(dk);
}

#endif
