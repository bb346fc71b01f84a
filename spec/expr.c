/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions over an op's symbols: read by precedence into postfix form, evaluated on a stack. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "plan.h"

typedef struct parser {
    const trine_plan *plan;
    const char *at;
    trine_expr *expr;
    bool ok;
} parser;

static void skip_space(parser *p) {
    while (*p->at == ' ') p->at++;
}

static void emit(parser *p, char op, short symbol, double constant) {
    if (p->expr->length == (int)(sizeof p->expr->step / sizeof p->expr->step[0])) {
        p->ok = false;
        return;
    }
    p->expr->step[p->expr->length].op = op;
    p->expr->step[p->expr->length].symbol = symbol;
    p->expr->step[p->expr->length++].constant = constant;
}

static void parse_level(parser *p, int level);

static void expect(parser *p, char c) {
    skip_space(p);
    if (*p->at == c)
        p->at++;
    else
        p->ok = false;
}

static void parse_name(parser *p) {
    static const struct {
        const char *name;
        char op;
        int arguments;
    } functions[] = { { "min", 'm', 2 }, { "max", 'M', 2 }, { "log2", 'L', 1 } };
    char name[32];
    size_t length = 0;
    while ((isalnum((unsigned char)*p->at) || *p->at == '_') && length < sizeof name - 1) name[length++] = *p->at++;
    name[length] = 0;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strcmp(functions[i].name, name) != 0) continue;
        expect(p, '(');
        parse_level(p, 0);
        if (functions[i].arguments == 2) {
            expect(p, ',');
            parse_level(p, 0);
        }
        expect(p, ')');
        emit(p, functions[i].op, 0, 0);
        return;
    }
    const int symbol = trine_plan_find_symbol(p->plan, name);
    if (symbol < 0) p->ok = false;
    emit(p, '$', (short)symbol, 0);
}

static void parse_primary(parser *p) {
    skip_space(p);
    if (*p->at == '(') {
        p->at++;
        parse_level(p, 0);
        expect(p, ')');
    } else if (isdigit((unsigned char)*p->at)) {
        char *end;
        const double value = trine_strtod(p->at, &end);
        p->at = end;
        emit(p, '#', 0, value);
    } else if (isalpha((unsigned char)*p->at)) {
        parse_name(p);
    } else {
        p->ok = false;
    }
}

/* Binary operators by rising precedence: 0 comparisons, 1 sums, 2 products. */
static char operator_at(parser *p, int level) {
    skip_space(p);
    const char a = p->at[0], b = a ? p->at[1] : 0;
    switch (level) {
    case 0:
        if ((a == '=' || a == '!' || a == '<' || a == '>') && b == '=') {
            p->at += 2;
            return a == '<' ? 'l' : a == '>' ? 'g' : a;
        }
        return a == '<' || a == '>' ? (p->at++, a) : 0;
    case 1: return a == '+' || a == '-' ? (p->at++, a) : 0;
    default: return a == '*' || a == '/' || a == '%' ? (p->at++, a) : 0;
    }
}

static void parse_level(parser *p, int level) {
    if (level == 3) {
        parse_primary(p);
        return;
    }
    parse_level(p, level + 1);
    for (char op; p->ok && (op = operator_at(p, level)) != 0;) {
        parse_level(p, level + 1);
        emit(p, op, 0, 0);
    }
}

bool trine_expr_parse(const trine_plan *plan, const char *text, trine_expr *expr_out) {
    *expr_out = (trine_expr){ 0 };
    parser p = { plan, text, expr_out, true };
    parse_level(&p, 0);
    skip_space(&p);
    return p.ok && *p.at == 0;
}

static double apply(char op, double a, double b) {
    switch (op) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    case '%': return b == 0 ? NAN : fmod(a, b);
    case '=': return a == b;
    case '!': return a != b;
    case '<': return a < b;
    case '>': return a > b;
    case 'l': return a <= b;
    case 'g': return a >= b;
    case 'm': return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

double trine_expr_eval(const trine_expr *expr, const int64_t *dim) {
    double stack[sizeof expr->step / sizeof expr->step[0] + 1];
    int top = 0;
    for (int i = 0; i < expr->length; i++) {
        switch (expr->step[i].op) {
        case '#': stack[top++] = expr->step[i].constant; break;
        case '$': stack[top++] = (double)dim[expr->step[i].symbol]; break;
        case 'L': stack[top - 1] = stack[top - 1] > 1 ? ceil(log2(stack[top - 1])) : 0; break;
        default: top--; stack[top - 1] = apply(expr->step[i].op, stack[top - 1], stack[top]);
        }
    }
    return expr->length ? stack[0] : 0;
}

int64_t trine_plan_fill_size(const trine_plan *plan, const char *fill, const int64_t *dim) {
    char text[64] = "";
    trine_expr expr;
    return sscanf(fill, "%*63s %63s", text) == 1 && trine_expr_parse(plan, text, &expr)
               ? (int64_t)trine_expr_eval(&expr, dim)
               : 0;
}
