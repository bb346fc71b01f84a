/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of chains, over errors.h. Who includes this also says WIDE: are chains in f64? */
#ifndef TRINE_SPEC_CHAIN_REFERENCE_H
#define TRINE_SPEC_CHAIN_REFERENCE_H

#include <trine/chain.h>

#include "errors.h"
#include "spec/plan.h"

/* That of chains in f64. */
void trine_chain_wide_reference(trine_ref *ref);

/* The tensors' places: x0 and on, y0 and on behind them, then r0 and on. */
#define CHAIN_INPUT(i) (i)
#define CHAIN_OUTPUT(i) (CHAIN_INPUTS + (i))

/* What the reference walks over: a row, phase by phase, as the program's steps do, but by the graph. */
typedef struct walk {
    const trine_ref *ref;
    const chain_graph *graph;
    REAL n;
    chain_real value[CHAIN_NODES]; /* those of the row stay from phase to phase */
} walk;

/* Inputs are read exactly, but of i32 what f32 does not have. */
static chain_real input_at(const walk *w, int input, int64_t element) {
    const double x = w->ref->value[CHAIN_INPUT(input)][element];
    const bool rounds = !WIDE && trine_plan_dtype(w->ref->plan, CHAIN_INPUT(input), w->ref->type) == TRINE_I32;
    return (chain_real){ x, rounds && fabs(x) > 0x1p24 ? ROUNDOFF * fabs(x) : 0 };
}

static void evaluate(walk *w, int i, int64_t element) {
    const chain_node *n = &w->graph->node[i];
    const chain_real a = w->value[n->a], b = w->value[n->b], c = w->value[n->c];
    chain_real *y = &w->value[i];
    switch (n->op) {
    case CHAIN_NUMBER: *y = (chain_real){ n->number, 0 }; break;
    case CHAIN_LOAD: *y = input_at(w, n->a, element); break;
    case CHAIN_ADD:
    case CHAIN_SUB:
    case CHAIN_MUL:
    case CHAIN_DIV:
    case CHAIN_MIN:
    case CHAIN_MAX: *y = real_arithmetic(n->op, a, b); break;
    case CHAIN_LT:
    case CHAIN_LE:
    case CHAIN_EQ:
    case CHAIN_NE: *y = real_compare(n->op, a, b); break;
    case CHAIN_FMA: *y = real_fused(a, b, c); break;
    case CHAIN_SELECT: *y = real_select(a, b, c); break;
    /* the length rounded, and a division */
    case CHAIN_OVER_N: *y = real_rounded(real_arithmetic(CHAIN_DIV, a, (chain_real){ w->n, 0 }), 1, 0); break;
    default: *y = real_function(n->op, a);
    }
}

/* What it is off by is the magnitude, in roundoffs of f32, with a coefficient of 1: infinite where nothing is known, as
 * is one beyond the largest of f32, of what is off by 2^104 or more. In f64 it is slack: outputs may be narrower than
 * what is computed in. */
static void put_value(const trine_ref *ref, int output, int64_t element, chain_real y) {
    ref->value[output][element] = (double)y.v;
    if (!real_known(y))
        ref->magnitude[output][element] = INFINITY;
    else if (WIDE)
        ref->slack[output][element] = (double)y.off + (y.off > 0 ? 0x1p-1074 : 0);
    else
        ref->magnitude[output][element] = (double)(y.off / ROUNDOFF);
}

/* Outputs first .. end-1, which have the element. */
static void store(const walk *w, int first, int end, int64_t element) {
    for (int i = first; i < end; i++)
        if (w->graph->output[i] >= 0 && w->ref->value[CHAIN_OUTPUT(i)] != NULL)
            put_value(w->ref, CHAIN_OUTPUT(i), element, w->value[w->graph->output[i]]);
}

/* A phase over the row that begins at `first`: values of the row before it, then those of each element that can be had,
 * then what they reduce to. */
static void phase_of(walk *w, int phase, bool last, int64_t first, int64_t n) {
    const chain_graph *g = w->graph;
    chain_reduction reduction[CHAIN_NODES];
    for (int i = 0; i < g->count; i++) {
        if (g->node[i].row && !chain_reduces(g->node[i].op) && g->node[i].phase == phase) evaluate(w, i, 0);
        reduction[i] = chain_nothing;
    }
    for (int64_t j = first; j < first + n; j++) {
        for (int i = 0; i < g->count; i++) {
            const chain_node *node = &g->node[i];
            if (!node->row && node->phase <= phase) evaluate(w, i, j);
            if (chain_reduces(node->op) && node->phase == phase + 1)
                real_reduce(&reduction[i], w->value[node->a], node->op == CHAIN_MIN_ROW);
        }
        if (last) store(w, 0, CHAIN_OUTPUTS, j);
    }
    for (int i = 0; i < g->count; i++) {
        const chain_node *node = &g->node[i];
        if (!chain_reduces(node->op) || node->phase != phase + 1) continue;
        w->value[i] = node->op == CHAIN_SUM_ROW ? real_sum_of(&reduction[i], w->n)
                                                : real_most_of(&reduction[i], node->op == CHAIN_MIN_ROW);
    }
}

/* Bound: errors.h, step by step. */
static void chain_reference(trine_ref *ref) {
    const trine_chain_args *args = ref->args;
    const int64_t rows = ref->dim[0] * ref->dim[1] * ref->dim[2], n = ref->dim[3];
    chain_graph graph;
    int phases = 1;
    if (!trine_chain_parse(args->program, WIDE, &graph, NULL, 0)) return;
    for (int i = 0; i < graph.count; i++)
        if (graph.node[i].phase >= phases) phases = graph.node[i].phase + 1;
    walk w = { .ref = ref, .graph = &graph, .n = (REAL)n };
    for (int64_t row = 0; row < rows; row++) {
        for (int k = 0; k < phases; k++) phase_of(&w, k, k == phases - 1, row * n, n);
        store(&w, CHAIN_OUTPUTS, CHAIN_OUTPUTS + CHAIN_ROW_OUTPUTS, row);
    }
}

#endif
