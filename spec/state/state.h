/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of recurrences of matrices share: their steps, and a column of a state with the error that
 * kernels may make in it. gated_delta's names stand for ssd's too: q for c, k for b, v for steps times x, and a state's
 * columns for its rows. */
#ifndef TRINE_SPEC_STATE_H
#define TRINE_SPEC_STATE_H

#include <stdlib.h>

#include "spec/spec.h"

#define U 0x1p-24      /* unit roundoff of f32 */
#define FLUSH 0x1p-126 /* what is lost at most when a subnormal f32 is taken for zero */
#define LARGEST 0x1.fffffep127
#define STATE_MOST 256 /* rows of a state */

typedef struct state_problem {
    int64_t t, h, groups, d, e, count; /* count: of sequences */
    int64_t row, column;               /* strides of a state's elements in memory */
    const double *cu;                  /* NULL: the members of the batch */
    const double *q, *k, *v, *g, *beta, *s0;
    const double *dt, *a, *dt_bias; /* in place of g: NULL if absent */
    bool softplus;
    double scale;
} state_problem;

static inline int64_t state_first(const state_problem *s, int64_t i) { return s->cu ? (int64_t)s->cu[i] : i * s->t; }
static inline int64_t state_steps(const state_problem *s, int64_t i) {
    return s->cu ? (int64_t)(s->cu[i + 1] - s->cu[i]) : s->t;
}
/* The first step, of all, that is none of a sequence's. */
static inline int64_t state_end(const state_problem *s) { return s->cu ? (int64_t)s->cu[s->count] : s->count * s->t; }
/* The place of element (r, c) of the state of head `head` of sequence i. */
static inline int64_t state_place(const state_problem *s, int64_t i, int64_t head, int64_t r, int64_t c) {
    return (i * s->h + head) * s->d * s->e + r * s->row + c * s->column;
}

/* A number and what it may be off by. */
typedef struct state_number {
    double x, error;
} state_number;

static inline state_number state_product(state_number a, state_number b) {
    const double x = trine_finite_abs(a.x), y = trine_finite_abs(b.x);
    return (state_number){ a.x * b.x,
                           x * b.error + y * a.error + a.error * b.error + U * (x + a.error) * (y + b.error) + FLUSH };
}

/* A step of a head: the gate, the factor of v, the rate. `vague`: an Inf, or a gate that f32 does not hold. */
typedef struct state_step {
    const double *q, *k, *v, *beta; /* beta NULL: no delta rule */
    state_number decay, factor;
    bool gated, scaled, vague;
    double rate, length_q, length_k; /* rate: beta, or 0 */
} state_step;

static inline double state_length(const double *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double size = trine_finite_abs(x[i]);
        sum += size * size;
    }
    return sqrt(sum);
}
static inline bool state_infinite(const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (isinf(x[i])) return true;
    return false;
}

/* The length of a step of ssd: its sum with the bias is rounded, which softplus takes with its slope; softplus itself
 * is max(x, 0) + log1p(e^-|x|), within 24u of its value. */
static inline state_number state_dt(const state_problem *s, int64_t row, int64_t head) {
    state_number dt = { s->dt[row], 0 };
    if (s->dt_bias) {
        dt.x += s->dt_bias[head];
        dt.error = U * trine_finite_abs(dt.x);
    }
    if (!s->softplus) return dt;
    const double x = dt.x, power = exp(-fabs(x)), slope = exp(fmin(x + dt.error, 0));
    dt.x = isnan(x) ? x : fmax(x, 0) + log1p(power);
    dt.error = slope * dt.error + 24 * U * trine_finite_abs(dt.x) + FLUSH;
    return dt;
}

/* e^g within 8u, and what g is off by. */
static inline state_number state_gate(state_number g) {
    const double x = exp(g.x), size = trine_finite_abs(x);
    return (state_number){ x, size * (expm1(g.error) + 8 * U * exp(g.error)) + FLUSH };
}

/* Step `row`, of all, of a head. */
static inline state_step state_step_of(const state_problem *s, int64_t row, int64_t head) {
    const int64_t group = head / (s->h / s->groups), at = row * s->h + head;
    const double *beta = s->beta ? s->beta + at : NULL;
    state_step x = { .q = s->q + (row * s->groups + group) * s->d,
                     .k = s->k + (row * s->groups + group) * s->d,
                     .v = s->v + at * s->e,
                     .beta = beta,
                     .decay = { 1, 0 },
                     .factor = { 1, 0 },
                     .gated = s->g || s->dt,
                     .scaled = s->dt != NULL,
                     .rate = beta ? trine_finite_abs(*beta) : 0 };
    if (s->g) x.decay = state_gate((state_number){ s->g[at], 0 });
    if (s->dt) {
        x.factor = state_dt(s, at, head);
        x.decay = state_gate(state_product(x.factor, (state_number){ s->a[head], 0 }));
        x.vague = isinf(x.factor.x) || isinf(s->a[head]);
    }
    x.length_q = state_length(x.q, s->d), x.length_k = state_length(x.k, s->d);
    x.vague |= trine_finite_abs(x.decay.x) + x.decay.error >= LARGEST || isinf(x.decay.x) || (beta && isinf(*beta)) ||
               state_infinite(x.k, s->d);
    return x;
}

/* A column of a state. `error`: the length, in the Euclidean norm, of what it is off by at most. `uncertain`: it may be
 * any number. */
typedef struct state_column {
    double *s; /* d elements */
    double error;
    bool uncertain;
} state_column;

/* What a step makes of a column on its way: u = beta w, w = v - p, and what it is off by when it is decayed. */
typedef struct state_trace {
    state_number u, w;
    double decayed;
} state_trace;

/* Bound, u = 2^-24. A column s becomes P = a s, which rounds a, known to `decay.error`, and the product; then p = P.k,
 * of d products and sums in any order and one with the gate, if that is taken out; w = v - p and beta w are rounded
 * once each; and P + k (beta w) twice. What s was off by before, and the error of P, pass through 1 - beta k k^T, whose
 * norm is max(1, |1 - beta |k|^2|): nothing grows where beta is in [0, 1] and |k| is 1. The errors of w and u go along
 * k. All are added up as lengths of vectors. (1 + 8u) has what is of second order in several roundings of one
 * number.
 *
 * Kernels that take steps in chunks are held to the same. In a chunk, with L(t, s) = a(s+1) .. a(t), the state is L(t,
 * -1) S and the sum of L(t, s) k(s) u(s)^T. Where L(t, s) is found from t down, as L(t, s+1) a(s+1), each rounding
 * meets all that came before its step, decayed: the state, as above. A difference of sums of g would not do, whose
 * rounding is of the size of the sums. What q and k of two steps multiply to is a sum of d products in f32, as p and y
 * are, and the system that u solves has such sums; what is rounded to less than f32 is a sum of as many parts as make
 * it f32. No more is allowed where a chunk's terms cancel. */
static inline void state_advance(const state_step *x, int64_t d, double value, state_column *c, state_trace *to) {
    const double root = sqrt((double)d), n = (double)d, decay = trine_finite_abs(x->decay.x);
    const double length = state_length(c->s, d) + c->error;
    c->uncertain |= x->vague || isinf(value);
    double ungated = x->beta ? x->length_k * c->error : 0;
    for (int64_t i = 0; i < d && x->beta; i++) ungated += trine_finite_abs(x->k[i] * c->s[i]);
    c->uncertain |= !(ungated < LARGEST);
    for (int64_t i = 0; i < d && x->gated; i++) c->s[i] *= x->decay.x;
    if (x->gated) c->error = decay * c->error + (x->decay.error + U * decay) * length + root * FLUSH;
    to->decayed = c->error;
    double p = 0, size = x->length_k * c->error;
    for (int64_t i = 0; i < d; i++) {
        p += x->k[i] * c->s[i];
        size += trine_finite_abs(x->k[i] * c->s[i]);
    }
    const state_number v =
        x->scaled ? state_product(x->factor, (state_number){ value, 0 }) : (state_number){ value, 0 };
    double own = v.error, growth = 1, pass = x->length_k * v.error;
    to->w = to->u = v;
    if (x->beta) {
        const double all = size + trine_finite_abs(v.x);
        own = (n + 3) * U * size + U * all + (n + 2) * FLUSH;
        to->w = (state_number){ v.x - p, own + x->length_k * c->error };
        to->u = state_product((state_number){ *x->beta, 0 }, to->w);
        growth = fmax(1, fabs(1 - *x->beta * x->length_k * x->length_k));
        pass = x->length_k * (x->rate * own + U * x->rate * (trine_finite_abs(to->w.x) + to->w.error) + FLUSH);
        c->uncertain |= !(all < LARGEST) || !(trine_finite_abs(to->u.x) + to->u.error < LARGEST);
    }
    for (int64_t i = 0; i < d; i++) c->s[i] += x->k[i] * to->u.x;
    const double added = x->length_k * (trine_finite_abs(to->u.x) + to->u.error), sum = state_length(c->s, d);
    c->error = growth * c->error + pass + U * (added + sum) + 2 * root * FLUSH;
    c->error *= 1 + 8 * U;
    c->uncertain |= !(sum + added + c->error + v.error < LARGEST) || !(trine_finite_abs(v.x) + v.error < LARGEST);
}

/* A value and its error to element `at` of an output, which may be absent. */
static inline void state_put(trine_ref *ref, const char *name, int64_t at, state_number y, bool uncertain) {
    if (trine_ref_value(ref, name) == NULL) return;
    const bool vague = uncertain || !(trine_finite_abs(y.x) + y.error < LARGEST);
    trine_ref_value(ref, name)[at] = vague ? 0 : y.x;
    trine_ref_magnitude(ref, name)[at] = vague ? INFINITY : y.error / U;
}

/* scale S^T q of a column: d products and sums, and what the column is off by along q. */
static inline state_number state_read(const state_problem *s, const state_step *x, const state_column *c,
                                      bool *uncertain) {
    const double scale = fabs(s->scale), n = (double)s->d;
    double y = 0, size = x->length_q * c->error;
    for (int64_t i = 0; i < s->d; i++) {
        y += x->q[i] * c->s[i];
        size += trine_finite_abs(x->q[i] * c->s[i]);
    }
    *uncertain = c->uncertain || state_infinite(x->q, s->d) || !(size * (1 + scale) < LARGEST);
    return (state_number){ s->scale * y,
                           scale * (x->length_q * c->error + (n + 3) * U * size) + (n + 2) * (1 + scale) * FLUSH };
}

/* The states before the first step, column by column. */
static inline void state_begin(const state_problem *s, int64_t i, int64_t head, state_column *c, double *memory) {
    for (int64_t j = 0; j < s->e; j++) {
        c[j] = (state_column){ .s = memory + j * s->d };
        for (int64_t r = 0; r < s->d; r++) {
            c[j].s[r] = s->s0 ? s->s0[state_place(s, i, head, r, j)] : 0;
            c[j].uncertain |= isinf(c[j].s[r]);
        }
    }
}

/* A state to an output of states. */
static inline void state_put_all(trine_ref *ref, const char *name, const state_problem *s, int64_t i, int64_t head,
                                 const state_column *c) {
    for (int64_t j = 0; j < s->e; j++)
        for (int64_t r = 0; r < s->d; r++)
            state_put(ref, name, state_place(s, i, head, r, j), (state_number){ c[j].s[r], c[j].error },
                      c[j].uncertain);
}

/* Rows that are no sequence's, of `width` elements each, are 0. */
static inline void state_clear(trine_ref *ref, const char *name, const state_problem *s, int64_t width) {
    for (int64_t at = state_end(s) * width; s->cu && at < s->t * width; at++)
        state_put(ref, name, at, (state_number){ 0 }, false);
}

/* All steps of all heads; of each column and step what comes out, which `finish` may add to. */
static inline void state_forward(trine_ref *ref, const state_problem *s, const char *name,
                                 void (*finish)(const trine_ref *ref, int64_t head, double value, state_number *y)) {
    double *memory = malloc(sizeof(double) * (size_t)(s->d * s->e + 1));
    state_column *c = malloc(sizeof *c * (size_t)(s->e + 1));
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t head = 0; head < s->h; head++) {
            state_begin(s, i, head, c, memory);
            for (int64_t k = 0; k < state_steps(s, i); k++) {
                const int64_t row = state_first(s, i) + k;
                const state_step x = state_step_of(s, row, head);
                for (int64_t j = 0; j < s->e; j++) {
                    state_trace trace;
                    bool uncertain;
                    state_advance(&x, s->d, x.v[j], &c[j], &trace);
                    state_number y = state_read(s, &x, &c[j], &uncertain);
                    if (finish) finish(ref, head, x.v[j], &y);
                    state_put(ref, name, (row * s->h + head) * s->e + j, y, uncertain);
                }
            }
            state_put_all(ref, "last", s, i, head, c);
        }
    state_clear(ref, name, s, s->h * s->e);
    free(memory);
    free(c);
}

/* What tests make of inputs to have a stable recurrence: keys of length 1, gates and rates in [0, 1]. */
static inline void state_make_unit(double *x, int64_t rows, int64_t d) {
    for (int64_t r = 0; r < rows; r++) {
        const double length = state_length(x + r * d, d);
        for (int64_t i = 0; i < d && length > 0; i++) x[r * d + i] /= length;
    }
}
static inline void state_make_sign(double *x, int64_t count, double sign) {
    for (int64_t i = 0; x && i < count; i++) x[i] = sign * fabs(x[i]);
}

#endif
