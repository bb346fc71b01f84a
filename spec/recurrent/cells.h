/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of recurrent cells share: sequences, products with a head's matrices, and the sums of gradients.
 * Each op's file has its cell as functions of one element. */
#ifndef TRINE_SPEC_RECURRENT_CELLS_H
#define TRINE_SPEC_RECURRENT_CELLS_H

#include <stdio.h>
#include <stdlib.h>

#include "spec/near.h"

enum { CELL_GATES = 4, CELL_STATES = 4 /* h among them, the first */ };

/* A cell: how many gates wx has, how many matrices r, how many rows `gates` and bias, and its states. */
typedef struct cell {
    int inputs, products, saved, states;
    const char *state[CELL_STATES]; /* "h", "c" */
    /* gates of an element, from those of wx, the products and the biases */
    void (*gates)(const near *wx, const near *product, const near *bias, near *g);
    /* states after a step, from gates and the states before it */
    void (*step)(const near *g, const near *before, near *after);
    /* from the gradients of the states, which become those of the states before, but for what products give: those of
     * the gates, of saved rows in the order of the biases */
    void (*back)(const near *g, const near *before, const near *after, near *dstate, near *dg);
    /* the row of dg that product q has */
    int product_row[CELL_GATES];
} cell;

/* Sequences of a batch, or packed ones. */
typedef struct cell_rows {
    const trine_ref *ref;
    const cell *of;
    int64_t t, h, d, count;
    const double *cu;
} cell_rows;

static inline cell_rows cell_rows_of(const trine_ref *ref, const cell *of) {
    cell_rows c = { .ref = ref,
                    .of = of,
                    .t = trine_ref_dim(ref, "t"),
                    .h = trine_ref_dim(ref, "h"),
                    .d = trine_ref_dim(ref, "d"),
                    .cu = trine_ref_value(ref, "cu_seqlens") };
    c.count = c.cu ? trine_ref_dim(ref, "nseq") : trine_ref_dim(ref, "b");
    return c;
}

static inline int64_t cell_first(const cell_rows *c, int64_t i) { return c->cu ? (int64_t)c->cu[i] : i * c->t; }
static inline int64_t cell_steps(const cell_rows *c, int64_t i) {
    return c->cu ? (int64_t)(c->cu[i + 1] - c->cu[i]) : c->t;
}
/* Element j of gate q of `gates` in a step of all, of a head; of one gate, of a tensor without gates. */
static inline int64_t cell_place(const cell_rows *c, int64_t step, int gates, int q, int64_t head, int64_t j) {
    return ((step * gates + q) * c->h + head) * c->d + j;
}
static inline int64_t cell_state_place(const cell_rows *c, int64_t i, int64_t head, int64_t j) {
    return (i * c->h + head) * c->d + j;
}

static inline const char *cell_name(char out[16], const char *before, const char *state, const char *after) {
    snprintf(out, 16, "%s%s%s", before, state, after);
    return out;
}

static inline void cell_put(const cell_rows *c, const char *name, int64_t at, near x) {
    if (trine_ref_value(c->ref, name)) near_put((trine_ref *)c->ref, name, at, x.of, x.off / U, 0);
}

/* The start state number s; 0 without. */
static inline near cell_start(const cell_rows *c, int s, int64_t i, int64_t head, int64_t j) {
    char name[16];
    const double *x = trine_ref_value(c->ref, cell_name(name, "", c->of->state[s], "0"));
    return near_of(x ? x[cell_state_place(c, i, head, j)] : 0);
}

/* sum_k r[head,q,j,k] h[k], with d + 4 roundings besides those of its terms; each h is `states` apart. */
static inline near cell_product(const cell_rows *c, int64_t head, int q, int64_t j, const near *h, int states) {
    const double *r = trine_ref_value(c->ref, "r") + ((head * c->of->products + q) * c->d + j) * c->d;
    near_sum sum = { 0 };
    for (int64_t k = 0; k < c->d; k++) near_add(&sum, near_times(near_of(r[k]), h[k * states]));
    return near_total(&sum, c->d + 4);
}

/* Bounds, u = 2^-24. 1/(1 + e^-x) to 11u of itself and tanh x to 8u, with what follows 12u: and as far as x may be off,
 * since neither derivative grows by more than e^off, or its square, within that. */
static inline near cell_sigmoid(near x) {
    if (isinf(x.off)) return near_any();
    const double s = 1 / (1 + exp(-x.of)), slope = x.off < 1 ? fmin(0.25, s * (1 - s) * exp(x.off)) : 0.25;
    return (near){ s, isfinite(s) ? x.off * slope + 12 * U * s + FLUSH : 0 };
}
static inline near cell_tanh(near x) {
    if (isinf(x.off)) return near_any();
    const double y = tanh(x.of), slope = x.off < 1 ? fmin(1, (1 - y * y) * exp(2 * x.off)) : 1;
    return (near){ y, isfinite(y) ? x.off * slope + 12 * U * fabs(y) + FLUSH : 0 };
}
/* 1 - x and its product with x, of a sigmoid; 1 - x^2, of a tanh. */
static inline near cell_rest(near x) { return near_minus(near_of(1), x); }
static inline near cell_sigmoid_slope(near s) { return near_times(s, cell_rest(s)); }
static inline near cell_tanh_slope(near y) { return near_minus(near_of(1), near_times(y, y)); }

/* The gates of a step for all elements, and then their states. */
static inline void cell_forward_step(const cell_rows *c, int64_t i, int64_t head, int64_t k, near *state, near *next) {
    const cell *of = c->of;
    const double *wx = trine_ref_value(c->ref, "wx"), *bias = trine_ref_value(c->ref, "bias");
    const int64_t step = cell_first(c, i) + k;
    const bool product = k > 0 || trine_ref_value(c->ref, "h0") != NULL;
    for (int64_t j = 0; j < c->d; j++) {
        near x[CELL_GATES], p[CELL_GATES], b[CELL_GATES], g[CELL_GATES], *after = next + j * of->states;
        for (int q = 0; q < of->inputs; q++) x[q] = near_of(wx[cell_place(c, step, of->inputs, q, head, j)]);
        for (int q = 0; q < of->products; q++)
            p[q] = product ? cell_product(c, head, q, j, state, of->states) : near_of(0);
        for (int q = 0; q < of->saved; q++) b[q] = near_of(bias ? bias[(q * c->h + head) * c->d + j] : 0);
        of->gates(x, p, b, g);
        of->step(g, state + j * of->states, after);
        for (int q = 0; q < of->saved; q++) cell_put(c, "gates", cell_place(c, step, of->saved, q, head, j), g[q]);
        cell_put(c, "y", cell_place(c, step, 1, 0, head, j), after[0]);
        for (int s = 1; s < of->states; s++) cell_put(c, of->state[s], cell_place(c, step, 1, 0, head, j), after[s]);
    }
}

static inline void cell_clear(const cell_rows *c, const char *name, int gates) {
    if (!c->cu || !trine_ref_value(c->ref, name)) return;
    const int64_t width = gates * c->h * c->d;
    for (int64_t at = (int64_t)c->cu[c->count] * width; at < c->t * width; at++) cell_put(c, name, at, near_of(0));
}

static inline void cell_forward(trine_ref *ref, const cell *of) {
    const cell_rows c = cell_rows_of(ref, of);
    near *state = calloc((size_t)(c.d * of->states) + 1, sizeof *state),
         *next = calloc((size_t)(c.d * of->states) + 1, sizeof *next);
    char name[16];
    for (int64_t i = 0; i < c.count; i++)
        for (int64_t head = 0; head < c.h; head++) {
            for (int64_t at = 0; at < c.d * of->states; at++)
                state[at] = cell_start(&c, (int)(at % of->states), i, head, at / of->states);
            for (int64_t k = 0; k < cell_steps(&c, i); k++) {
                cell_forward_step(&c, i, head, k, state, next);
                near *const swap = state;
                state = next, next = swap;
            }
            for (int64_t at = 0; at < c.d * of->states; at++)
                cell_put(&c, cell_name(name, "last_", of->state[at % of->states], ""),
                         cell_state_place(&c, i, head, at / of->states), state[at]);
        }
    free(state), free(next);
    cell_clear(&c, "y", 1), cell_clear(&c, "gates", of->saved);
    for (int s = 1; s < of->states; s++) cell_clear(&c, of->state[s], 1);
}

/* What a step of a gradient sees of element j: gates and states as they were saved. */
static inline void cell_saved(const cell_rows *c, int64_t i, int64_t head, int64_t k, int64_t j, near *g, near *before,
                              near *after) {
    const cell *of = c->of;
    const int64_t step = cell_first(c, i) + k, here = cell_place(c, step, 1, 0, head, j);
    for (int q = 0; q < of->saved; q++)
        g[q] = near_of(trine_ref_value(c->ref, "gates")[cell_place(c, step, of->saved, q, head, j)]);
    for (int s = 0; s < of->states; s++) {
        const double *x = trine_ref_value(c->ref, s ? of->state[s] : "y");
        after[s] = near_of(x[here]);
        before[s] = k > 0 ? near_of(x[here - c->h * c->d]) : cell_start(c, s, i, head, j);
    }
}

/* The sums of a gradient: over all steps of dg, and of dg h'. */
typedef struct cell_sums {
    near_sum *dr, *dbias;
    int64_t terms;
} cell_sums;

/* dstate of h: sum over rows of r' dg. */
static inline near cell_product_back(const cell_rows *c, int64_t head, int64_t k, const near *dg, near rest) {
    const double *r = trine_ref_value(c->ref, "r");
    near_sum sum = { 0 };
    near_add(&sum, rest);
    for (int q = 0; q < c->of->products; q++)
        for (int64_t j = 0; j < c->d; j++)
            near_add(&sum, near_times(near_of(r[((head * c->of->products + q) * c->d + j) * c->d + k]),
                                      dg[j * CELL_GATES + c->of->product_row[q]]));
    return near_total(&sum, c->of->products * c->d + 4);
}

static inline void cell_back_step(const cell_rows *c, int64_t i, int64_t head, int64_t k, near *dstate, near *dg,
                                  cell_sums *sums) {
    const cell *of = c->of;
    const int64_t step = cell_first(c, i) + k;
    const double *dy = trine_ref_value(c->ref, "dy");
    for (int64_t j = 0; j < c->d; j++) {
        near g[CELL_GATES], before[CELL_STATES], after[CELL_STATES], *ds = dstate + j * of->states;
        cell_saved(c, i, head, k, j, g, before, after);
        ds[0] = near_plus(ds[0], near_of(dy[cell_place(c, step, 1, 0, head, j)]));
        of->back(g, before, after, ds, dg + j * CELL_GATES);
        for (int q = 0; q < of->inputs; q++)
            cell_put(c, "dwx", cell_place(c, step, of->inputs, q, head, j), dg[j * CELL_GATES + q]);
        for (int q = 0; q < of->saved; q++)
            near_add(&sums->dbias[(q * c->h + head) * c->d + j], dg[j * CELL_GATES + q]);
    }
    for (int64_t m = 0; m < c->d; m++) {
        near g[CELL_GATES], before[CELL_STATES], after[CELL_STATES];
        cell_saved(c, i, head, k, m, g, before, after);
        for (int q = 0; q < of->products; q++)
            for (int64_t j = 0; j < c->d; j++)
                near_add(&sums->dr[((head * of->products + q) * c->d + j) * c->d + m],
                         near_times(dg[j * CELL_GATES + of->product_row[q]], before[0]));
    }
    for (int64_t j = 0; j < c->d && (k > 0 || trine_ref_value(c->ref, "h0")); j++)
        dstate[j * of->states] = cell_product_back(c, head, j, dg, dstate[j * of->states]);
}

static inline void cell_back_sequence(const cell_rows *c, int64_t i, int64_t head, near *dstate, near *dg,
                                      cell_sums *sums) {
    const cell *of = c->of;
    char name[16];
    for (int64_t at = 0; at < c->d * of->states; at++) {
        const char *state = of->state[at % of->states];
        const bool given = at % of->states == 0 || (of->states == 2); /* of slstm the others are constants */
        const double *x = given ? trine_ref_value(c->ref, cell_name(name, "dlast_", state, "")) : NULL;
        dstate[at] = near_of(x ? x[cell_state_place(c, i, head, at / of->states)] : 0);
    }
    for (int64_t k = cell_steps(c, i) - 1; k >= 0; k--) cell_back_step(c, i, head, k, dstate, dg, sums);
    for (int64_t at = 0; at < c->d * of->states; at++)
        if (at % of->states == 0 || of->states == 2)
            cell_put(c, cell_name(name, "d", of->state[at % of->states], "0"),
                     cell_state_place(c, i, head, at / of->states), dstate[at]);
}

static inline void cell_backward(trine_ref *ref, const cell *of) {
    const cell_rows c = cell_rows_of(ref, of);
    const int64_t width = c.h * c.d, products = of->products * width * c.d, biases = of->saved * width;
    near *dstate = calloc((size_t)(c.d * of->states) + 1, sizeof *dstate),
         *dg = calloc((size_t)(c.d * CELL_GATES) + 1, sizeof *dg);
    cell_sums sums = { calloc((size_t)products + 1, sizeof *sums.dr), calloc((size_t)biases + 1, sizeof *sums.dbias),
                       trine_ref_dim(ref, "b") * c.t };
    for (int64_t i = 0; i < c.count; i++)
        for (int64_t head = 0; head < c.h; head++) cell_back_sequence(&c, i, head, dstate, dg, &sums);
    for (int64_t at = 0; at < products; at++) cell_put(&c, "dr", at, near_total(&sums.dr[at], sums.terms + 8));
    for (int64_t at = 0; at < biases; at++) cell_put(&c, "dbias", at, near_total(&sums.dbias[at], sums.terms + 8));
    free(dstate), free(dg), free(sums.dr), free(sums.dbias);
    cell_clear(&c, "dwx", of->inputs);
}

/* The states that the gates of a gradient's inputs lead to, of which `prepare` makes what a forward saved. */
static inline void cell_prepare(trine_ref *ref, const cell *of) {
    const cell_rows c = cell_rows_of(ref, of);
    for (int64_t at = 0; at < c.count * c.h * c.d; at++) {
        const int64_t i = at / (c.h * c.d), head = at / c.d % c.h, j = at % c.d;
        near g[CELL_GATES], before[CELL_STATES], after[CELL_STATES];
        for (int s = 0; s < of->states; s++) before[s] = cell_start(&c, s, i, head, j);
        for (int64_t k = 0; k < cell_steps(&c, i); k++) {
            const int64_t step = cell_first(&c, i) + k;
            for (int q = 0; q < of->saved; q++)
                g[q] = near_of(trine_ref_value(ref, "gates")[cell_place(&c, step, of->saved, q, head, j)]);
            of->step(g, before, after);
            for (int s = 0; s < of->states; s++) {
                before[s] = near_of(after[s].of);
                trine_ref_value(ref, s ? of->state[s] : "y")[cell_place(&c, step, 1, 0, head, j)] = after[s].of;
            }
        }
    }
}

#define CELL_REQUIRE "with cu_seqlens: b == 1", "with cu_seqlens: nseq > 0", "with h0: s == max(b, nseq)"
#define CELL_TYPES { "T=f32|bf16|f16" }
#define CELL_SIZES \
    { "b: 1 0 2 3", "t: 3 0 1 2 7 20", "h: 2 1 0 3", "d: 8 1 3 16 31 64 130", "nseq: 1 2 5", "s: 1 0 2 3 5" }

#endif
