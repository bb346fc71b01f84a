/* SPDX-License-Identifier: Apache-2.0 */
/* Runs two programs over the fields of p and of q, p = 2 q + 1: what is in an exp modulo q, all else modulo p.
 * docs/proof.md has the reasons, and what the probability below counts. */
#include "field.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field_program.h"
#include "random.h"

/* Both are primes, and 3 modulo 4: of x and -x one has a root, and of the two roots one has a root itself. */
#define Q UINT64_C(2305843009213688159)
#define P UINT64_C(4611686018427376319)
enum {
    GENERATOR = 4, /* of the squares modulo P, of which there are Q */
    TRIALS = 3,
    TRIES = 1 << 14, /* for a point at which what is divided by is not 0 and all roots exist */
    EXPONENTS = 256  /* elements of arguments of exp */
};

__extension__ typedef unsigned __int128 wide;

static uint64_t add(uint64_t a, uint64_t b, uint64_t m) { return a + b < m ? a + b : a + b - m; }
static uint64_t sub(uint64_t a, uint64_t b, uint64_t m) { return a >= b ? a - b : a + m - b; }
static uint64_t mul(uint64_t a, uint64_t b, uint64_t m) { return (uint64_t)((wide)a * b % m); }

static uint64_t power(uint64_t a, uint64_t n, uint64_t m) {
    uint64_t y = 1;
    for (; n > 0; n >>= 1, a = mul(a, a, m))
        if (n & 1) y = mul(y, a, m);
    return y;
}

static uint64_t inverse(uint64_t a, uint64_t m) { return power(a, m - 2, m); }

typedef struct point {
    const field_graph *g;
    const bool *needed;        /* nodes */
    uint64_t modulus, key;     /* key: of the functions of which nothing is known */
    const uint64_t *exponents; /* of the elements of all exps, in their order; NULL modulo Q */
    uint64_t *value;           /* of all elements */
    random_state *random;
} point;

static uint64_t any(const point *at, int function, uint64_t x) {
    random_state r = { at->key + (uint64_t)function };
    r.state = random_next(&r) ^ x;
    r.state = random_next(&r) ^ x;
    return random_next(&r) % at->modulus;
}

/* Element i, j of an argument, which may be broadcast. */
static uint64_t element(const point *at, int node, int64_t i, int64_t j) {
    const field_node *n = &at->g->node[node];
    return at->value[n->at + (n->rows > 1 ? i : 0) * n->columns + (n->columns > 1 ? j : 0)];
}

static uint64_t sum_of(const point *at, const field_node *n, int64_t i, int64_t j) {
    const field_node *a = &at->g->node[n->a];
    const int64_t terms = n->op == FIELD_COLUMN_SUM ? a->rows : a->columns;
    uint64_t sum = 0;
    for (int64_t k = 0; k < terms; k++) {
        uint64_t term = n->op == FIELD_COLUMN_SUM ? element(at, n->a, k, j) : element(at, n->a, i, k);
        if (n->op == FIELD_MATMUL) term = mul(term, element(at, n->b, k, j), at->modulus);
        sum = add(sum, term, at->modulus);
    }
    return sum;
}

/* False where there is none. */
static bool compute(const point *at, const field_node *n, int64_t i, int64_t j, uint64_t *y) {
    const uint64_t m = at->modulus;
    uint64_t a = 0, b = 0;
    if (field_by_element(n->op)) a = element(at, n->a, i, j), b = n->b < 0 ? 0 : element(at, n->b, i, j);
    switch (n->op) {
    case FIELD_INPUT: *y = random_next(at->random) % m; break;
    case FIELD_NUMBER: *y = mul((uint64_t)n->number % m, inverse((uint64_t)n->parts, m), m); break;
    case FIELD_ADD: *y = add(a, b, m); break;
    case FIELD_SUB: *y = sub(a, b, m); break;
    case FIELD_MUL: *y = mul(a, b, m); break;
    case FIELD_DIV: *y = mul(a, inverse(b, m), m); return b != 0;
    case FIELD_TRANSPOSE: *y = element(at, n->a, j, i); break;
    case FIELD_SQRT: *y = power(a, (m + 1) / 4, m); return mul(*y, *y, m) == a;
    case FIELD_FUNCTION: *y = any(at, n->function, a); break;
    case FIELD_MATMUL:
    case FIELD_SUM:
    case FIELD_COLUMN_SUM: *y = sum_of(at, n, i, j); break;
    case FIELD_EXP: break;
    }
    return true;
}

/* All needed nodes at a random point; false where one of them has no value. */
static bool run(const point *at) {
    int64_t exps = 0;
    for (int k = 0; k < at->g->nodes; k++) {
        const field_node *n = &at->g->node[k];
        uint64_t *y = at->value + n->at;
        for (int64_t e = 0; at->needed[k] && e < n->rows * n->columns; e++) {
            if (n->op == FIELD_EXP)
                y[e] = power(GENERATOR, at->exponents[exps++], P);
            else if (!compute(at, n, e / n->columns, e % n->columns, &y[e]))
                return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- a trial */

typedef struct comparison {
    field_graph g;
    int side[2];
    bool outside[FIELD_NODES], inside[FIELD_NODES]; /* what is needed modulo P, and modulo Q */
    int64_t exps;                                   /* elements of all */
    uint64_t *value;
    random_state random;
    field_result *result;
} comparison;

static bool undecided(comparison *c, const char *why) {
    c->result->verdict = FIELD_UNDECIDED;
    snprintf(c->result->message, sizeof c->result->message, "%s", why);
    return false;
}

static const char *const no_point = "no inputs were found at which all roots exist";

/* The arguments of all exps at a point. */
static bool arguments_at(comparison *c, uint64_t *row) {
    for (int tries = 0; tries < TRIES; tries++) {
        const point at = { &c->g, c->inside, Q, random_next(&c->random), NULL, c->value, &c->random };
        int64_t e = 0;
        if (!run(&at)) continue;
        for (int k = 0; k < c->g.nodes; k++) {
            const field_node *n = &c->g.node[k];
            if (n->op != FIELD_EXP || !c->outside[k]) continue;
            memcpy(row + e, c->value + c->g.node[n->a].at, (size_t)(n->rows * n->columns) * sizeof *row);
            e += n->rows * n->columns;
        }
        return true;
    }
    return undecided(c, no_point);
}

/* Both sides at one point modulo P, the arguments of exps taken to exponents by random numbers. */
static bool meet(comparison *c, const uint64_t *table) {
    uint64_t exponents[EXPONENTS];
    for (int tries = 0; tries < TRIES; tries++) {
        memset(exponents, 0, sizeof exponents);
        for (int64_t t = 0; t < c->exps; t++) {
            const uint64_t by = random_next(&c->random) % Q;
            for (int64_t e = 0; e < c->exps; e++)
                exponents[e] = add(exponents[e], mul(by, table[t * c->exps + e], Q), Q);
        }
        const point at = { &c->g, c->outside, P, random_next(&c->random), exponents, c->value, &c->random };
        if (run(&at)) return true;
    }
    return undecided(c, no_point);
}

static bool trial(comparison *c) {
    uint64_t *table = calloc((size_t)(c->exps * c->exps + 1), sizeof *table);
    if (table == NULL) return undecided(c, "out of memory");
    bool met = true;
    for (int64_t t = 0; met && t < c->exps; t++) met = arguments_at(c, table + t * c->exps);
    met = met && meet(c, table);
    free(table);
    if (!met) return false;
    const field_node *x = &c->g.node[c->side[0]], *y = &c->g.node[c->side[1]];
    for (int64_t e = 0; e < x->rows * x->columns; e++) {
        const uint64_t left = c->value[x->at + e], right = c->value[y->at + e];
        if (left == right) continue;
        c->result->verdict = FIELD_DIFFERENT;
        snprintf(c->result->message, sizeof c->result->message,
                 "element [%" PRId64 ",%" PRId64 "] is %" PRIu64 " on the left and %" PRIu64
                 " on the right, modulo %" PRIu64,
                 e / x->columns, e % x->columns, left, right, P);
        return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------ probability */

/* What is needed for the two sides, and what of it is in an exp. */
static void mark(comparison *c) {
    c->outside[c->side[0]] = c->outside[c->side[1]] = true;
    for (int k = c->g.nodes - 1; k >= 0; k--) {
        const field_node *n = &c->g.node[k];
        if (c->outside[k] && n->op == FIELD_EXP) c->inside[n->a] = true, c->exps += n->rows * n->columns;
        for (int i = 0; i < 2; i++) {
            const int argument = i == 0 ? n->a : n->b;
            if (argument < 0) continue;
            if (c->outside[k] && n->op != FIELD_EXP) c->outside[argument] = true;
            if (c->inside[k]) c->inside[argument] = true;
        }
    }
}

/* log2 of the probability that a trial of programs that differ finds them equal. */
static double log2_error(const comparison *c) {
    const field_node *x = &c->g.node[c->side[0]], *y = &c->g.node[c->side[1]];
    double roots = 0, functions = 0, widest = 0, argument = 0;
    const double exps = (double)c->exps;
    for (int k = 0; k < c->g.nodes; k++) {
        const field_node *n = &c->g.node[k];
        if (!c->outside[k] && !c->inside[k]) continue;
        const double elements = (double)(n->rows * n->columns), sides = c->outside[k] && c->inside[k] ? 2 : 1;
        if (n->op == FIELD_SQRT) roots += elements * sides;
        if (n->op == FIELD_FUNCTION) {
            const field_node *a = &c->g.node[n->a];
            functions += elements;
            widest = fmax(widest, a->numerator + a->denominator);
        }
        if (n->op == FIELD_EXP) {
            const field_node *a = &c->g.node[n->a];
            argument = fmax(argument, a->numerator + exps * a->denominator);
        }
    }
    const double result = fmax(x->numerator + y->denominator, y->numerator + x->denominator),
                 degree = result + exps * argument + functions * functions * (exps + 1) * 2 * widest;
    return log2(fmax(degree, 1)) + roots + log2(TRIES) - log2((double)Q);
}

static bool prepare(comparison *c, const char *inputs, const char *dims, const char *left, const char *right) {
    field_result *result = c->result;
    char *message = result->message;
    const size_t size = sizeof result->message;
    if (!field_read_inputs(&c->g, inputs, dims, message, size)) return false;
    if (!field_read_program(&c->g, left, "left", &c->side[0], message, size)) return false;
    if (!field_read_program(&c->g, right, "right", &c->side[1], message, size)) return false;
    const field_node *x = &c->g.node[c->side[0]], *y = &c->g.node[c->side[1]];
    if (x->rows != y->rows || x->columns != y->columns) {
        snprintf(message, size,
                 "the left is of %" PRId64 " by %" PRId64 " elements, the right of %" PRId64 " by %" PRId64, x->rows,
                 x->columns, y->rows, y->columns);
        return false;
    }
    mark(c);
    if (c->exps <= EXPONENTS) return true;
    snprintf(message, size, "more than %d arguments of exp: smaller sizes are enough", EXPONENTS);
    return false;
}

void field_compare(const char *inputs, const char *dims, const char *left, const char *right, uint64_t seed,
                   field_result *result_out) {
    *result_out = (field_result){ .verdict = FIELD_MISTAKEN };
    comparison *c = calloc(1, sizeof *c);
    if (c == NULL) {
        snprintf(result_out->message, sizeof result_out->message, "out of memory");
        return;
    }
    c->result = result_out;
    c->random = random_of(seed, left, 0);
    if (prepare(c, inputs, dims, left, right)) {
        const field_node *x = &c->g.node[c->side[0]];
        const double error = fmin(log2_error(c), 0);
        bool equal = true;
        result_out->elements = x->rows * x->columns;
        result_out->log2_error = TRIALS * error;
        c->value = calloc((size_t)c->g.elements + 1, sizeof *c->value);
        if (c->value == NULL) equal = undecided(c, "out of memory");
        for (int i = 0; equal && i < TRIALS; i++) equal = trial(c);
        if (equal && error > -10)
            equal =
                undecided(c, "equal where it was tried, but that means nothing with so many roots: smaller sizes do");
        if (equal) result_out->verdict = FIELD_EQUAL;
        free(c->value);
    }
    free(c);
}
