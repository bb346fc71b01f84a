/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of a chain's steps that are done at once: a sum, difference or product, and what one step makes of it that
 * alone wants it. A pair reads and writes the first-level cache once, where two steps do twice. */
#ifndef TRINE_CPU_CHAIN_PAIRS_H
#define TRINE_CPU_CHAIN_PAIRS_H

#include "steps.h"

/* What comes second, r being what the first gives. */
enum { PAIR_ADD, PAIR_SUB, PAIR_FROM /* c - r */, PAIR_MUL, PAIR_RELU, PAIR_SECONDS };
/* A pair's op is CHAIN_PAIR + PAIR_SECONDS (first - CHAIN_ADD) + second: of a and b, then of that and c. */
enum { CHAIN_PAIR = 64 };
_Static_assert((int)CHAIN_PAIR >= (int)CHAIN_OPS && CHAIN_ADD + 2 == (int)CHAIN_MUL, "sum, difference, product");

static inline bool chain_reads(const chain_step *s, int place) {
    const uint8_t from[] = { s->a, s->b, s->c };
    for (int i = 0; i < chain_operands(s->op); i++)
        if (from[i] == place) return true;
    return false;
}
static inline bool chain_writes(const chain_step *s, int place) {
    return s->op != CHAIN_STORE && !chain_reduces(s->op) && s->to == place;
}

/* Does a step from `at` on read what is in a register now? */
static bool chain_wanted(const chain_program *p, int at, int end, int place) {
    for (; at < end; at++) {
        if (chain_reads(&p->step[at], place)) return true;
        if (chain_writes(&p->step[at], place)) return false;
    }
    return false;
}

/* What `next` makes of register r, -1: it is no second of a pair. *c_out: its other operand. */
static int pair_second(const chain_step *next, int r, uint8_t *c_out) {
    *c_out = next->a == r ? next->b : next->a;
    if (next->op == CHAIN_RELU && next->a == r) {
        *c_out = next->a;
        return PAIR_RELU;
    }
    if (next->op < CHAIN_ADD || next->op > CHAIN_MUL || (next->a == r) == (next->b == r)) return -1;
    if (next->op == CHAIN_SUB) return next->a == r ? PAIR_SUB : PAIR_FROM;
    return next->op == CHAIN_ADD ? PAIR_ADD : PAIR_MUL;
}

/* The pair of the step at `at` and the next one that does not load; false: they are none. */
static bool pair_at(const chain_program *p, int at, int end, int *next_out, chain_step *pair_out) {
    const chain_step *first = &p->step[at];
    int next = at + 1, second;
    if (first->op < CHAIN_ADD || first->op > CHAIN_MUL || first->to >= CHAIN_ROW) return false;
    /* loads between the two go before both */
    for (; next < end && p->step[next].op == CHAIN_LOAD; next++)
        if (chain_reads(first, p->step[next].to)) return false;
    *pair_out = *first;
    if (next == end || (second = pair_second(&p->step[next], first->to, &pair_out->c)) < 0) return false;
    if (p->step[next].to != first->to && chain_wanted(p, next + 1, end, first->to)) return false;
    if (second == PAIR_RELU) pair_out->c = first->a;
    pair_out->op = (uint8_t)(CHAIN_PAIR + PAIR_SECONDS * (first->op - CHAIN_ADD) + second);
    pair_out->to = p->step[next].to;
    *next_out = next;
    return true;
}

/* The program with its pairs. */
static void chain_pair_up(chain_program *program) {
    const chain_program p = *program;
    int count = 0;
    for (int k = 0; k < p.phases; k++) {
        const chain_phase *from = &p.phase[k];
        chain_phase *to = &program->phase[k];
        to->row = (uint8_t)count;
        for (int i = from->row; i < from->first; i++) program->step[count++] = p.step[i];
        to->first = (uint8_t)count;
        for (int i = from->first; i < from->end; i++) {
            chain_step pair;
            int next;
            if (!pair_at(&p, i, from->end, &next, &pair)) {
                program->step[count++] = p.step[i];
                continue;
            }
            while (++i < next) program->step[count++] = p.step[i];
            program->step[count++] = pair;
        }
        to->end = (uint8_t)count;
    }
    program->steps = (uint8_t)count;
}

#endif
