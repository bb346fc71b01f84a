/* SPDX-License-Identifier: Apache-2.0 */
/* Cases at the sizes at which kernels go another way, which chance seldom draws: those that a loop has room for, or
 * that a block takes, and one less and one more. And at those at which sums of integers may leave their type. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static int by_place(const void *a, const void *b) {
    const edge *x = a, *y = b;
    if (x->symbol != y->symbol) return x->symbol - y->symbol;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->row - y->row;
}

static bool same_place(const edge *x, const edge *y) { return x->symbol == y->symbol && x->size == y->size; }

static void add(edge_list *list, edge e) {
    edge *grown = realloc(list->edge, (size_t)(list->count + 1) * sizeof *grown);
    if (grown == NULL) return;
    list->edge = grown;
    list->edge[list->count++] = e;
}

/* Of one kernel. What it says of itself must be sound. */
static void ask_kernel(runner *r, const context *c, const problem *p, int row, const char *kernel) {
    trine_edge edges[TRINE_MAX_EDGES];
    int32_t count = 0;
    if (trine_explain_edges(c->queue, p->plan->op, p->call.args, kernel, edges, &count) != TRINE_OK)
        runner_fail(r, c, kernel, p, trine_error_message());
    for (int32_t i = 0; i < count; i++) {
        const int symbol = trine_plan_find_symbol(p->plan, edges[i].symbol);
        if (r->asked.dim[symbol] < 0) add(&r->edges, (edge){ symbol, edges[i].size, row });
    }
}

static bool is_integer(trine_dtype dtype) { return trine_unit_roundoff(dtype) == 0; }

/* Has a tensor this symbol? */
static bool has_symbol(const problem *p, int tensor, int symbol) {
    for (int d = 0; d < p->plan->tensor[tensor].rank; d++)
        if (p->plan->tensor[tensor].dim[d].symbol == symbol) return true;
    return false;
}

/* The terms after which a sum over the symbol may have left an integer type, if each is a product of all integers that
 * have the symbol. */
static int64_t terms_held(const problem *p, int symbol, trine_dtype sum) {
    double most = 1;
    for (int i = 0; i < p->plan->tensors; i++) {
        const trine_dtype dtype = p->operand[i].full.dtype;
        if (problem_input(p, i) && has_symbol(p, i, symbol) && is_integer(dtype)) most *= trine_largest(dtype) + 1;
    }
    return most > 1 ? (int64_t)(trine_largest(sum) / most) : 0;
}

static void ask_sums(runner *r, const problem *p, int row) {
    for (int i = 0; i < p->plan->tensors; i++) {
        const trine_expr *terms = &p->plan->tensor[i].terms;
        for (int k = 0; problem_output(p, i) && is_integer(p->operand[i].full.dtype) && k < terms->length; k++) {
            const int symbol = terms->step[k].symbol;
            const int64_t held = terms->step[k].op == '$' ? terms_held(p, symbol, p->operand[i].full.dtype) : 0;
            if (held > 0 && r->asked.dim[symbol] < 0) add(&r->edges, (edge){ symbol, held, row });
        }
    }
}

static void ask_row(runner *r, const trine_plan *plan, int row) {
    problem p;
    if (!problem_outline(&p, plan, &r->asked, row)) return;
    ask_sums(r, &p, row);
    for (int i = 0; i < r->contexts; i++) {
        const context *c = &r->context[i];
        trine_explanation why;
        if (trine_explain(c->queue, plan->op, p.call.args, &why) != TRINE_OK) continue;
        for (int k = 0; k < why.count; k++)
            if (r->options->kernel == NULL || strcmp(r->options->kernel, why.candidate[k].kernel) == 0)
                ask_kernel(r, c, &p, row, why.candidate[k].kernel);
    }
    problem_free(&p);
}

void edges_find(runner *r, const trine_plan *plan) {
    edge_list *list = &r->edges;
    int kept = 0;
    list->count = list->places = 0;
    for (int row = 0; r->possible && row < plan->combos; row++) ask_row(r, plan, row);
    if (list->count > 0) qsort(list->edge, (size_t)list->count, sizeof *list->edge, by_place);
    for (int i = 0; i < list->count; i++) {
        if (kept > 0 && by_place(&list->edge[kept - 1], &list->edge[i]) == 0) continue;
        list->places += kept == 0 || !same_place(&list->edge[kept - 1], &list->edge[i]);
        list->edge[kept++] = list->edge[i];
    }
    list->count = kept;
}

/* The rows of place `place`: the first of them, and how many. */
static const edge *rows_of(const edge_list *list, int place, int *rows_out) {
    const edge *first = list->edge, *const end = list->edge + list->count;
    for (; place > 0; place--)
        for (const edge *before = first; first < end && same_place(before, first);) first++;
    *rows_out = 0;
    while (first + *rows_out < end && same_place(first, first + *rows_out)) ++*rows_out;
    return first;
}

/* Another seed begins at another edge, and with other types. */
bool edges_run(runner *r, const trine_plan *plan, int64_t turn) {
    enum { SIDES = 3 };
    static const int sides[SIDES] = { 1, 0, -1 };
    const edge_list *list = &r->edges;
    shared *s = r->shared;
    int rows;
    if (list->places == 0) return false;
    random_state random = random_of(r->options->seed, plan->spec->name, -1);
    const int64_t start = random_below(&random, list->places), round = turn / (SIDES * list->places);
    const int place = (int)((start + turn / SIDES) % list->places);
    const edge *first = rows_of(list, place, &rows), *e = &first[(start + place + turn % SIDES + round) % rows];
    trine_case asked = r->asked;
    asked.dim[e->symbol] = e->size + sides[turn % SIDES];
    s->number = turn * plan->combos + e->row;
    snprintf(s->dims, sizeof s->dims, "%s=%" PRId64, plan->symbol_name[e->symbol], asked.dim[e->symbol]);
    return run_edge(r, plan, s->number, &asked);
}
