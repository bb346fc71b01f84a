/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of a chain's text, by recursive descent. */
#ifndef TRINE_SPEC_CHAIN_PARSER_H
#define TRINE_SPEC_CHAIN_PARSER_H

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "parse.h"
#include "spec/number.h"

enum { CHAIN_NAMES = 64, CHAIN_DEPTH = 64 };

typedef struct chain_name {
    const char *text;
    size_t length;
    int node;
} chain_name;

typedef struct chain_parser {
    const char *begin, *at;
    chain_graph *graph;
    chain_name name[CHAIN_NAMES];
    int names, depth;
    char *error;
    size_t size;
} chain_parser;

/* The first error is told: that it is -1 ends everything. */
__attribute__((format(printf, 3, 4))) static int chain_wrong(chain_parser *p, const char *at, const char *format, ...) {
    if (p->size == 0) return -1;
    const int used = snprintf(p->error, p->size, "at character %d: ", (int)(at - p->begin) + 1);
    va_list list;
    va_start(list, format);
    if (used > 0 && (size_t)used < p->size) trine_vsnprintf(p->error + used, p->size - (size_t)used, format, list);
    va_end(list);
    return -1;
}

static void chain_space(chain_parser *p) {
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
}

/* Takes a punctuation if it is next. */
static bool chain_takes(chain_parser *p, const char *word) {
    chain_space(p);
    const size_t length = strlen(word);
    if (strncmp(p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

/* What stands here, for messages. */
static int chain_expected(chain_parser *p, const char *what) {
    chain_space(p);
    if (*p->at == 0) return chain_wrong(p, p->at, "%s is expected, but the program ends", what);
    return chain_wrong(p, p->at, "%s is expected, but found \"%.1s\"", what, p->at);
}

/* ----------------------------------------------------------------------------------------------------------- values */

/* A value, the same one if there is such a one already. */
static int chain_value(chain_parser *p, chain_node n) {
    chain_graph *g = p->graph;
    const int operand[3] = { n.a, n.b, n.c };
    n.row = n.op != CHAIN_LOAD;
    for (int i = 0; i < chain_operands(n.op); i++) {
        const chain_node *from = &g->node[operand[i]];
        n.row &= from->row;
        if (from->phase > n.phase) n.phase = from->phase;
    }
    if (chain_reduces(n.op)) {
        n.row = true;
        n.phase++;
    }
    for (int i = 0; i < g->count; i++) {
        const chain_node *m = &g->node[i];
        if (m->op == n.op && m->a == n.a && m->b == n.b && m->c == n.c &&
            memcmp(&m->number, &n.number, sizeof n.number) == 0)
            return i;
    }
    if (n.phase >= CHAIN_PHASES)
        return chain_wrong(p, p->at, "more than %d reductions of one another", CHAIN_PHASES - 1);
    if (g->count == CHAIN_NODES) return chain_wrong(p, p->at, "more than %d values", CHAIN_NODES);
    g->node[g->count] = n;
    return g->count++;
}

static int chain_make(chain_parser *p, chain_op op, int a, int b, int c) {
    if (a < 0 || b < 0 || c < 0) return -1;
    return chain_value(p, (chain_node){ .op = (uint8_t)op, .a = (uint8_t)a, .b = (uint8_t)b, .c = (uint8_t)c });
}

static int chain_number(chain_parser *p, double x) {
    return chain_value(p, (chain_node){ .op = CHAIN_NUMBER, .number = x });
}

/* ------------------------------------------------------------------------------------------------------------ names */

typedef struct chain_function {
    const char *name;
    uint8_t op, arguments;
} chain_function;

enum { CHAIN_MEAN_ROW = CHAIN_OPS + 1 };

static const chain_function chain_functions[] = {
    { "abs", CHAIN_ABS, 1 },
    { "sqrt", CHAIN_SQRT, 1 },
    { "rsqrt", CHAIN_RSQRT, 1 },
    { "exp", CHAIN_EXP, 1 },
    { "log", CHAIN_LOG, 1 },
    { "tanh", CHAIN_TANH, 1 },
    { "erf", CHAIN_ERF, 1 },
    { "sigmoid", CHAIN_SIGMOID, 1 },
    { "silu", CHAIN_SILU, 1 },
    { "gelu", CHAIN_GELU, 1 },
    { "gelu_tanh", CHAIN_GELU_TANH, 1 },
    { "relu", CHAIN_RELU, 1 },
    { "floor", CHAIN_FLOOR, 1 },
    { "f32", CHAIN_TO_F32, 1 },
    { "bf16", CHAIN_TO_BF16, 1 },
    { "f16", CHAIN_TO_F16, 1 },
    { "min", CHAIN_MIN, 2 },
    { "max", CHAIN_MAX, 2 },
    { "fma", CHAIN_FMA, 3 },
    { "select", CHAIN_SELECT, 3 },
    { "sum_row", CHAIN_SUM_ROW, 1 },
    { "mean_row", CHAIN_MEAN_ROW, 1 },
    { "max_row", CHAIN_MAX_ROW, 1 },
    { "min_row", CHAIN_MIN_ROW, 1 },
};

static const chain_function *chain_function_of(const char *text, size_t length) {
    for (size_t i = 0; i < sizeof chain_functions / sizeof chain_functions[0]; i++)
        if (strlen(chain_functions[i].name) == length && memcmp(chain_functions[i].name, text, length) == 0)
            return &chain_functions[i];
    return NULL;
}

/* The number of x0 .. or y0 ..; -1: it is none of them. */
static int chain_place(const char *text, size_t length, char letter, int count) {
    return length == 2 && text[0] == letter && text[1] >= '0' && text[1] < '0' + count ? text[1] - '0' : -1;
}

static chain_name *chain_find(chain_parser *p, const char *text, size_t length) {
    for (int i = 0; i < p->names; i++)
        if (p->name[i].length == length && memcmp(p->name[i].text, text, length) == 0) return &p->name[i];
    return NULL;
}

static size_t chain_word(const char *text) {
    size_t length = 0;
    if (!isalpha((unsigned char)*text) && *text != '_') return 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length;
}

/* ------------------------------------------------------------------------------------------------------ expressions */

static int chain_expression(chain_parser *p);

static int chain_call(chain_parser *p, const chain_function *f) {
    int operand[3] = { 0, 0, 0 };
    for (int i = 0; i < f->arguments; i++) {
        if (!chain_takes(p, i == 0 ? "(" : ",")) return chain_expected(p, i == 0 ? "\"(\"" : "\",\"");
        operand[i] = chain_expression(p);
        if (operand[i] < 0) return -1;
    }
    if (!chain_takes(p, ")")) return chain_expected(p, "\")\"");
    if (f->op == CHAIN_TO_F32 && !p->graph->wide) return operand[0];
    if (f->op == CHAIN_MEAN_ROW)
        return chain_make(p, CHAIN_OVER_N, chain_make(p, CHAIN_SUM_ROW, operand[0], 0, 0), 0, 0);
    return chain_make(p, (chain_op)f->op, operand[0], operand[1], operand[2]);
}

static int chain_named(chain_parser *p) {
    const char *word = p->at;
    const size_t length = chain_word(word);
    p->at += length;
    const int input = chain_place(word, length, 'x', CHAIN_INPUTS);
    if (input >= 0) return chain_make(p, CHAIN_LOAD, input, 0, 0);
    const chain_function *f = chain_function_of(word, length);
    if (f != NULL) return chain_call(p, f);
    const chain_name *name = chain_find(p, word, length);
    if (name != NULL) return name->node;
    chain_space(p);
    if (*p->at == '(') return chain_wrong(p, word, "there is no function \"%.*s\"", (int)length, word);
    return chain_wrong(p, word, "\"%.*s\" is not set before", (int)length, word);
}

static int chain_literal(chain_parser *p) {
    char *end;
    const char *from = p->at;
    /* Not "0x1": a number ends where its digits do. */
    const bool decimal = from[0] != '0' || (from[1] != 'x' && from[1] != 'X');
    const double x = !decimal         ? (double)NAN
                     : p->graph->wide ? trine_strtod(from, &end)
                                      : (double)trine_strtof(from, &end);
    if (!isfinite(x)) return chain_wrong(p, from, "not a finite decimal number");
    p->at = end;
    return chain_number(p, x);
}

static int chain_primary(chain_parser *p) {
    chain_space(p);
    if (chain_takes(p, "(")) {
        const int inner = chain_expression(p);
        if (inner < 0) return -1;
        return chain_takes(p, ")") ? inner : chain_expected(p, "\")\"");
    }
    if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1]))) return chain_literal(p);
    if (chain_word(p->at) > 0) return chain_named(p);
    return chain_expected(p, "a value");
}

static int chain_factor(chain_parser *p) {
    if (++p->depth > CHAIN_DEPTH) return chain_wrong(p, p->at, "more than %d levels deep", CHAIN_DEPTH);
    int value;
    if (chain_takes(p, "-")) {
        value = chain_factor(p);
        if (value >= 0)
            value = p->graph->node[value].op == CHAIN_NUMBER ? chain_number(p, -p->graph->node[value].number)
                                                             : chain_make(p, CHAIN_NEG, value, 0, 0);
    } else {
        value = chain_primary(p);
    }
    p->depth--;
    return value;
}

static int chain_product(chain_parser *p) {
    int value = chain_factor(p);
    while (value >= 0) {
        if (chain_takes(p, "*"))
            value = chain_make(p, CHAIN_MUL, value, chain_factor(p), 0);
        else if (chain_takes(p, "/"))
            value = chain_make(p, CHAIN_DIV, value, chain_factor(p), 0);
        else
            break;
    }
    return value;
}

static int chain_sum(chain_parser *p) {
    int value = chain_product(p);
    while (value >= 0) {
        if (chain_takes(p, "+"))
            value = chain_make(p, CHAIN_ADD, value, chain_product(p), 0);
        else if (chain_takes(p, "-"))
            value = chain_make(p, CHAIN_SUB, value, chain_product(p), 0);
        else
            break;
    }
    return value;
}

/* One comparison at most: a < b < c would not mean what it says. */
static int chain_expression(chain_parser *p) {
    static const struct {
        const char *word;
        uint8_t op;
        bool exchanged;
    } comparison[] = { { "<=", CHAIN_LE, false }, { ">=", CHAIN_LE, true }, { "==", CHAIN_EQ, false },
                       { "!=", CHAIN_NE, false }, { "<", CHAIN_LT, false }, { ">", CHAIN_LT, true } };
    const int value = chain_sum(p);
    for (size_t i = 0; value >= 0 && i < sizeof comparison / sizeof comparison[0]; i++) {
        if (!chain_takes(p, comparison[i].word)) continue;
        const int other = chain_sum(p);
        return comparison[i].exchanged ? chain_make(p, (chain_op)comparison[i].op, other, value, 0)
                                       : chain_make(p, (chain_op)comparison[i].op, value, other, 0);
    }
    return value;
}

/* ------------------------------------------------------------------------------------------------------ the program */

static bool chain_statement(chain_parser *p) {
    chain_space(p);
    const char *word = p->at;
    const size_t length = chain_word(word);
    if (length == 0) return chain_expected(p, "a name") >= 0;
    if (chain_place(word, length, 'x', CHAIN_INPUTS) >= 0)
        return chain_wrong(p, word, "\"%.*s\" is an input", (int)length, word) >= 0;
    if (chain_function_of(word, length) != NULL)
        return chain_wrong(p, word, "\"%.*s\" is a function", (int)length, word) >= 0;
    p->at += length;
    if (!chain_takes(p, "=") || *p->at == '=') return chain_expected(p, "\"=\"") >= 0;
    const int value = chain_expression(p);
    if (value < 0) return false;
    chain_name *name = chain_find(p, word, length);
    if (name == NULL) {
        if (p->names == CHAIN_NAMES) return chain_wrong(p, word, "more than %d names", CHAIN_NAMES) >= 0;
        name = &p->name[p->names++];
        *name = (chain_name){ word, length, 0 };
    }
    name->node = value;
    const int output = chain_place(word, length, 'y', CHAIN_OUTPUTS),
              of_row = chain_place(word, length, 'r', CHAIN_ROW_OUTPUTS);
    if (of_row >= 0 && !p->graph->node[value].row)
        return chain_wrong(p, word, "\"%.*s\" is of a row, but its value is of elements", (int)length, word) >= 0;
    if (output >= 0) p->graph->output[output] = value;
    if (of_row >= 0) p->graph->output[CHAIN_OUTPUTS + of_row] = value;
    return true;
}

bool trine_chain_parse(const char *text, bool wide, chain_graph *graph_out, char *error, size_t size) {
    chain_parser p = { .begin = text, .at = text, .graph = graph_out, .error = error, .size = size };
    graph_out->count = 0;
    graph_out->wide = wide;
    for (int i = 0; i < CHAIN_OUTPUTS + CHAIN_ROW_OUTPUTS; i++) graph_out->output[i] = -1;
    if (strnlen(text, CHAIN_TEXT + 1) > CHAIN_TEXT)
        return chain_wrong(&p, text + CHAIN_TEXT, "more than %d characters", CHAIN_TEXT) >= 0;
    do {
        if (!chain_statement(&p)) return false;
        chain_space(&p);
        if (*p.at == 0) return true;
        if (!chain_takes(&p, ";")) return chain_expected(&p, "\";\" or an operator") >= 0;
        chain_space(&p);
    } while (*p.at != 0);
    return true;
}

#endif
