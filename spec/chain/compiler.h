/* SPDX-License-Identifier: Apache-2.0 */
/* From the graph of a chain to its program: what each phase computes, and in which registers. */
#ifndef TRINE_SPEC_CHAIN_COMPILER_H
#define TRINE_SPEC_CHAIN_COMPILER_H

#include <string.h>

#include "parse.h"
#include "spec/number.h"

typedef struct chain_compiler {
    const chain_graph *graph;
    chain_program *program;
    bool needed[CHAIN_NODES];
    int place[CHAIN_NODES]; /* of values of the row and of numbers: where they are; of elements: in this phase */
    char *error;
    size_t size;
} chain_compiler;

__attribute__((format(printf, 2, 3))) static bool chain_beyond(chain_compiler *c, const char *format, ...) {
    if (c->size == 0) return false;
    va_list list;
    va_start(list, format);
    trine_vsnprintf(c->error, c->size, format, list);
    va_end(list);
    return false;
}

static bool chain_emit(chain_compiler *c, int op, int to, int a, int b, int d) {
    chain_program *p = c->program;
    if (p->steps == CHAIN_STEPS) return chain_beyond(c, "it takes more than %d steps", CHAIN_STEPS);
    p->step[p->steps++] = (chain_step){ (uint8_t)op, (uint8_t)to, (uint8_t)a, (uint8_t)b, (uint8_t)d };
    return true;
}

/* The step of a value, to where `to` says; its operands have their places. */
static bool chain_emit_node(chain_compiler *c, int node, int to) {
    const chain_node *n = &c->graph->node[node];
    const int count = chain_operands(n->op), from[3] = { n->a, n->b, n->c };
    int at[3] = { n->op == CHAIN_LOAD ? n->a : 0, 0, 0 };
    for (int i = 0; i < count; i++) at[i] = c->place[from[i]];
    return chain_emit(c, n->op, to, at[0], at[1], at[2]);
}

static bool chain_row_place(chain_compiler *c, int node) {
    if (c->program->row_values == CHAIN_ROW_VALUES)
        return chain_beyond(c, "it has more than %d values of a row", CHAIN_ROW_VALUES);
    c->place[node] = CHAIN_ROW + c->program->row_values++;
    return true;
}

/* What outputs are made of. */
static void chain_mark(chain_compiler *c) {
    const chain_graph *g = c->graph;
    for (int i = 0; i < CHAIN_OUTPUTS + CHAIN_ROW_OUTPUTS; i++)
        if (g->output[i] >= 0) c->needed[g->output[i]] = true;
    for (int i = g->count - 1; i >= 0; i--) {
        const chain_node *n = &g->node[i];
        const int from[3] = { n->a, n->b, n->c };
        for (int k = 0; c->needed[i] && k < chain_operands(n->op); k++) c->needed[from[k]] = true;
    }
}

static bool chain_numbers(chain_compiler *c) {
    chain_program *p = c->program;
    for (int i = 0; i < c->graph->count; i++) {
        if (!c->needed[i] || c->graph->node[i].op != CHAIN_NUMBER) continue;
        if (p->constants == CHAIN_CONSTANTS) return chain_beyond(c, "it has more than %d numbers", CHAIN_CONSTANTS);
        c->place[i] = CHAIN_CONSTANT + p->constants;
        p->constant[p->constants++] = c->graph->node[i].number;
    }
    return true;
}

/* Values of the row that this phase is the first to have, reductions aside: those were the last phase's. */
static bool chain_row_steps(chain_compiler *c, int phase) {
    for (int i = 0; i < c->graph->count; i++) {
        const chain_node *n = &c->graph->node[i];
        if (!c->needed[i] || !n->row || n->phase != phase || n->op == CHAIN_NUMBER || chain_reduces(n->op)) continue;
        if (!chain_row_place(c, i) || !chain_emit_node(c, i, c->place[i])) return false;
    }
    return true;
}

/* What is stored of the row. */
static bool chain_row_stores(chain_compiler *c) {
    for (int i = 0; i < CHAIN_ROW_OUTPUTS; i++) {
        const int value = c->graph->output[CHAIN_OUTPUTS + i];
        if (value < 0) continue;
        c->program->outputs |= (uint8_t)(1 << (CHAIN_OUTPUTS + i));
        if (!chain_emit(c, CHAIN_STORE_ROW, i, c->place[value], 0, 0)) return false;
    }
    return true;
}

/* Of a phase: is value i one of its reductions? */
static bool chain_ends(const chain_compiler *c, int i, int phase) {
    return c->needed[i] && chain_reduces(c->graph->node[i].op) && c->graph->node[i].phase == phase + 1;
}

/* The last value of the phase that is made of each, or of elements that are stored one behind all: 0 where the phase
 * does without it. */
static void chain_uses(const chain_compiler *c, int phase, bool last, int *use) {
    const chain_graph *g = c->graph;
    memset(use, 0, CHAIN_NODES * sizeof *use);
    for (int i = 0; last && i < CHAIN_OUTPUTS; i++)
        if (g->output[i] >= 0) use[g->output[i]] = g->count;
    for (int i = g->count - 1; i >= 0; i--) {
        const chain_node *n = &g->node[i];
        const int from[3] = { n->a, n->b, n->c };
        if (!(n->row ? chain_ends(c, i, phase) : use[i] > 0)) continue;
        for (int k = 0; k < chain_operands(n->op); k++)
            if (use[from[k]] < i) use[from[k]] = i;
    }
}

static int chain_free_register(chain_compiler *c, const int *until, int now) {
    for (int r = 0; r < CHAIN_REGISTERS; r++)
        if (until[r] <= now) {
            if (r >= c->program->registers) c->program->registers = (uint8_t)(r + 1);
            return r;
        }
    chain_beyond(c, "it needs more than %d values of an element at once", CHAIN_REGISTERS);
    return -1;
}

static bool chain_element_steps(chain_compiler *c, int phase, bool last) {
    const chain_graph *g = c->graph;
    int use[CHAIN_NODES], until[CHAIN_REGISTERS] = { 0 }, reductions = 0;
    chain_uses(c, phase, last, use);
    for (int i = 0; i < g->count; i++) {
        const chain_node *n = &g->node[i];
        if (chain_ends(c, i, phase)) {
            if (++reductions > CHAIN_REDUCTIONS)
                return chain_beyond(c, "it has more than %d reductions that go together", CHAIN_REDUCTIONS);
            if (!chain_row_place(c, i) || !chain_emit_node(c, i, c->place[i])) return false;
        } else if (!n->row && use[i] > 0) {
            const int to = chain_free_register(c, until, i);
            if (to < 0 || !chain_emit_node(c, i, to)) return false;
            c->place[i] = to;
            until[to] = use[i];
            if (n->op == CHAIN_LOAD) c->program->inputs |= (uint8_t)(1 << n->a);
        }
    }
    for (int i = 0; last && i < CHAIN_OUTPUTS; i++) {
        if (g->output[i] < 0) continue;
        c->program->outputs |= (uint8_t)(1 << i);
        if (!chain_emit(c, CHAIN_STORE, i, c->place[g->output[i]], 0, 0)) return false;
    }
    return true;
}

bool trine_chain_compile(const chain_graph *graph, chain_program *program_out, char *error, size_t size) {
    chain_compiler c = { .graph = graph, .program = program_out, .error = error, .size = size };
    memset(program_out, 0, sizeof *program_out);
    program_out->wide = graph->wide;
    chain_mark(&c);
    if (!chain_numbers(&c)) return false;
    int phases = 1;
    for (int i = 0; i < graph->count; i++)
        if (c.needed[i] && graph->node[i].phase >= phases) phases = graph->node[i].phase + 1;
    for (int k = 0; k < phases; k++) {
        chain_phase *phase = &program_out->phase[program_out->phases++];
        phase->row = program_out->steps;
        if (!chain_row_steps(&c, k) || (k == phases - 1 && !chain_row_stores(&c))) return false;
        phase->first = program_out->steps;
        if (!chain_element_steps(&c, k, k == phases - 1)) return false;
        phase->end = program_out->steps;
    }
    if (program_out->outputs == 0) return chain_beyond(&c, "it sets no output: no y0");
    return true;
}

#endif
