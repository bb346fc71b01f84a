/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the programs that field.h compares. */
#include "field_program.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What fields have, and functions of which nothing is known: equal programs stay so whatever these are. */
static const struct {
    const char *name;
    int arguments;
    field_op op;
} primitives[] = {
    { "add", 2, FIELD_ADD },       { "sub", 2, FIELD_SUB },
    { "mul", 2, FIELD_MUL },       { "div", 2, FIELD_DIV },
    { "matmul", 2, FIELD_MATMUL }, { "transpose", 1, FIELD_TRANSPOSE },
    { "sum", 1, FIELD_SUM },       { "column_sum", 1, FIELD_COLUMN_SUM },
    { "exp", 1, FIELD_EXP },       { "sqrt", 1, FIELD_SQRT },
    { "relu", 1, FIELD_FUNCTION }, { "gelu", 1, FIELD_FUNCTION },
    { "tanh", 1, FIELD_FUNCTION }, { "log", 1, FIELD_FUNCTION },
    { "act", 1, FIELD_FUNCTION },
};

/* What is made of these. The ops among them have the formulas of their headers; their arguments are tensors in the
 * header's order, and then parameters. */
static const struct {
    const char *name;
    int arguments;
    const char *body;
} made[] = {
    { "neg", 1, "sub(0, a)" },
    { "scale", 2, "mul(a, b)" },
    { "mean", 1, "div(sum(a), columns(a))" },
    { "rsqrt", 1, "div(1, sqrt(a))" },
    { "sigmoid", 1, "div(1, add(1, exp(neg(a))))" },
    { "silu", 1, "div(a, add(1, exp(neg(a))))" },
    { "swiglu", 2, "mul(silu(a), b)" },
    { "softmax", 1, "div(exp(a), sum(exp(a)))" },
    { "attention", 4, "matmul(softmax(mul(d, matmul(a, transpose(b)))), c)" },
    { "rms_norm", 3, "mul(mul(a, rsqrt(add(mean(mul(a, a)), c))), b)" },
    { "rms_norm_matmul", 4, "matmul(mul(mul(a, b), rsqrt(add(mean(mul(a, a)), d))), c)" },
    { "layer_norm", 4, "e = sub(a, mean(a)); add(mul(mul(e, rsqrt(add(mean(mul(e, e)), d))), b), c)" },
    { "matmul_symmetric", 1, "matmul(a, transpose(a))" },
};

enum { PRIMITIVES = sizeof primitives / sizeof primitives[0], MADE = sizeof made / sizeof made[0], ARGUMENTS = 4 };

typedef struct reader {
    field_graph *g;
    const char *side, *text, *at;
    field_name name[FIELD_NAMES];
    int names, depth;
    char *message; /* empty while all is well */
    size_t size;
} reader;

static int expression(reader *r);

static int mistake(reader *r, const char *what, const char *name) {
    if (!r->message[0])
        snprintf(r->message, r->size, "%s, at character %d: %s%s", r->side, (int)(r->at - r->text) + 1, what, name);
    return -1;
}

static void skip(reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(reader *r, char c) {
    skip(r);
    if (*r->at != c) return false;
    r->at++;
    return true;
}

static bool word(reader *r, char name[FIELD_NAME]) {
    size_t length = 0;
    skip(r);
    if (!isalpha((unsigned char)*r->at) && *r->at != '_') return false;
    while (isalnum((unsigned char)*r->at) || *r->at == '_') {
        if (length + 1 == FIELD_NAME) return mistake(r, "a name is too long", "") >= 0;
        name[length++] = *r->at++;
    }
    name[length] = 0;
    return true;
}

static int64_t positive(reader *r, int64_t most) {
    int64_t value = 0;
    skip(r);
    if (!isdigit((unsigned char)*r->at)) return mistake(r, "a number belongs here", "");
    while (isdigit((unsigned char)*r->at) && value <= most) value = 10 * value + (*r->at++ - '0');
    return value > most ? mistake(r, "the number is too large", "") : value;
}

/* ----------------------------------------------------------------------------------------------------------- nodes */

/* The degrees of a sum of so many terms, all of whose denominators may differ. */
static void add_up(field_node *n, double terms, double numerator, double denominator) {
    n->numerator = terms > 0 ? numerator + (terms - 1) * denominator : 0;
    n->denominator = terms * denominator;
}

static void degrees(const field_graph *g, field_node *n) {
    /* An argument of exp has coordinates, in a basis of all of them, that add up to no more. */
    enum { POWERS = 1024 };
    const field_node none = { .rows = 0 }, *a = n->a < 0 ? &none : &g->node[n->a],
                     *b = n->b < 0 ? &none : &g->node[n->b];
    const double na = a->numerator, da = a->denominator, nb = b->numerator, db = b->denominator;
    switch (n->op) {
    case FIELD_INPUT:
    case FIELD_FUNCTION: n->numerator = 1; break;
    case FIELD_ADD:
    case FIELD_SUB:
        n->numerator = na + db > nb + da ? na + db : nb + da;
        n->denominator = da + db;
        break;
    case FIELD_MUL: n->numerator = na + nb, n->denominator = da + db; break;
    case FIELD_DIV: n->numerator = na + db, n->denominator = da + nb; break;
    case FIELD_MATMUL: add_up(n, (double)a->columns, na + nb, da + db); break;
    case FIELD_SUM: add_up(n, (double)a->columns, na, da); break;
    case FIELD_COLUMN_SUM: add_up(n, (double)a->rows, na, da); break;
    case FIELD_EXP: n->numerator = n->denominator = POWERS; break;
    case FIELD_SQRT: n->numerator = (na + da) / 2, n->denominator = da; break;
    case FIELD_TRANSPOSE: n->numerator = na, n->denominator = da; break;
    case FIELD_NUMBER: break;
    }
}

static bool same(const field_node *x, const field_node *y) {
    return x->op == y->op && x->op != FIELD_INPUT && x->a == y->a && x->b == y->b && x->number == y->number &&
           x->parts == y->parts && x->function == y->function;
}

/* The node of an expression, which may be there. */
static int node(reader *r, field_node n) {
    field_graph *g = r->g;
    for (int i = 0; i < g->nodes; i++)
        if (same(&g->node[i], &n)) return i;
    if (g->nodes == FIELD_NODES) return mistake(r, "the programs are too long", "");
    if (n.rows * n.columns > FIELD_ELEMENTS) return mistake(r, "more than 4096 elements", "");
    n.at = g->elements;
    n.exponential =
        n.op == FIELD_EXP || (n.a >= 0 && g->node[n.a].exponential) || (n.b >= 0 && g->node[n.b].exponential);
    degrees(g, &n);
    g->elements += n.rows * n.columns;
    g->node[g->nodes] = n;
    return g->nodes++;
}

static int number(reader *r, int64_t value, int64_t parts) {
    return node(
        r,
        (field_node){ .op = FIELD_NUMBER, .a = -1, .b = -1, .number = value, .parts = parts, .rows = 1, .columns = 1 });
}

static int primitive(reader *r, int which, const int *argument) {
    const int a = argument[0], b = primitives[which].arguments > 1 ? argument[1] : -1;
    const field_node *x = &r->g->node[a], *y = b < 0 ? x : &r->g->node[b];
    field_node n = { .op = primitives[which].op, .a = a, .b = b, .rows = x->rows, .columns = x->columns };
    switch (n.op) {
    case FIELD_MATMUL:
        if (x->columns != y->rows)
            return mistake(r, "matmul of what has not as many columns as the other has rows", "");
        n.columns = y->columns;
        break;
    case FIELD_TRANSPOSE: n.rows = x->columns, n.columns = x->rows; break;
    case FIELD_SUM: n.columns = 1; break;
    case FIELD_COLUMN_SUM: n.rows = 1; break;
    case FIELD_EXP:
        if (x->exponential) return mistake(r, "exp of what has an exp in it, which the test does not cover", "");
        break;
    case FIELD_FUNCTION: n.function = which; break;
    default:
        if (b < 0) break;
        if ((x->rows != y->rows && x->rows > 1 && y->rows > 1) ||
            (x->columns != y->columns && x->columns > 1 && y->columns > 1))
            return mistake(r, "shapes that do not fit, in ", primitives[which].name);
        if (x->rows == 1) n.rows = y->rows;
        if (x->columns == 1) n.columns = y->columns;
    }
    return node(r, n);
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static int program(reader *r);

/* A program whose names a, b, ... are the arguments. */
static int expand(reader *r, int which, const int *argument) {
    reader inner = { .g = r->g,
                     .side = made[which].name,
                     .text = made[which].body,
                     .at = made[which].body,
                     .depth = r->depth,
                     .message = r->message,
                     .size = r->size };
    for (; inner.names < made[which].arguments; inner.names++)
        inner.name[inner.names] = (field_name){ { (char)('a' + inner.names) }, argument[inner.names] };
    return program(&inner);
}

static bool arguments(reader *r, const char *name, int count, int *argument) {
    for (int i = 0; i < count; i++) {
        if (i > 0 && !take(r, ',')) return mistake(r, "too few arguments of ", name) >= 0;
        if ((argument[i] = expression(r)) < 0) return false;
    }
    return take(r, ')') || mistake(r, "no \")\" ends the arguments of ", name) >= 0;
}

static int call(reader *r, const char *name) {
    int argument[ARGUMENTS];
    for (int i = 0; i < PRIMITIVES; i++)
        if (strcmp(primitives[i].name, name) == 0)
            return arguments(r, name, primitives[i].arguments, argument) ? primitive(r, i, argument) : -1;
    for (int i = 0; i < MADE; i++)
        if (strcmp(made[i].name, name) == 0)
            return arguments(r, name, made[i].arguments, argument) ? expand(r, i, argument) : -1;
    const bool rows = strcmp(name, "rows") == 0;
    if (!rows && strcmp(name, "columns") != 0) return mistake(r, "there is no function ", name);
    if (!arguments(r, name, 1, argument)) return -1;
    return number(r, rows ? r->g->node[argument[0]].rows : r->g->node[argument[0]].columns, 1);
}

static int decimal(reader *r) {
    enum { MOST = 1000000000 };
    int64_t parts = 1, value = positive(r, MOST);
    if (value < 0 || *r->at != '.') return value < 0 ? -1 : number(r, value, 1);
    for (r->at++; isdigit((unsigned char)*r->at); r->at++) {
        if (parts == MOST) return mistake(r, "the number has more than 9 decimals", "");
        parts *= 10, value = 10 * value + (*r->at - '0');
    }
    return number(r, value, parts);
}

static int named(const reader *r, const char *name) {
    for (int i = r->names - 1; i >= 0; i--)
        if (strcmp(r->name[i].name, name) == 0) return r->name[i].node;
    return -1;
}

static int expression(reader *r) {
    char name[FIELD_NAME];
    int found;
    if (r->depth == FIELD_DEPTH) return mistake(r, "expressions are nested too deep", "");
    skip(r);
    if (isdigit((unsigned char)*r->at)) return decimal(r);
    if (!word(r, name)) return mistake(r, "a name, a number or a function belongs here", "");
    r->depth++;
    if (take(r, '('))
        found = call(r, name);
    else if ((found = named(r, name)) < 0)
        mistake(r, "nothing is called ", name);
    r->depth--;
    return found;
}

static bool define(reader *r, const char *name, int to) {
    if (r->names == FIELD_NAMES) return mistake(r, "too many names", "") >= 0;
    if (named(r, name) >= 0) return mistake(r, "this name is given twice: ", name) >= 0;
    snprintf(r->name[r->names].name, FIELD_NAME, "%s", name);
    r->name[r->names++].node = to;
    return true;
}

/* "name = expression; ...; expression". */
static int program(reader *r) {
    int last = -1;
    do {
        char name[FIELD_NAME] = "";
        const char *start;
        skip(r);
        if (last >= 0 && !*r->at) break;
        start = r->at;
        if (!word(r, name) || !take(r, '=')) r->at = start, name[0] = 0;
        if ((last = expression(r)) < 0) return -1;
        if (name[0] && !define(r, name, last)) return -1;
    } while (take(r, ';'));
    skip(r);
    return *r->at ? mistake(r, "\";\" or the end belongs here", "") : last;
}

static reader reader_of(field_graph *g, const char *text, const char *side, char *message, size_t size) {
    message[0] = 0;
    return (reader){ .g = g, .side = side, .text = text, .at = text, .message = message, .size = size };
}

bool field_read_program(field_graph *g, const char *text, const char *side, int *node_out, char *message, size_t size) {
    reader r = reader_of(g, text, side, message, size);
    memcpy(r.name, g->input, sizeof r.name);
    r.names = g->inputs;
    *node_out = program(&r);
    return *node_out >= 0;
}

/* ----------------------------------------------------------------------------------------------------------- inputs */

enum { LARGEST = 64 };

/* Symbols and their sizes, which `asked` gives some of. */
typedef struct sizes {
    field_name of[FIELD_NAMES]; /* node: the size */
    int count, asked;
    bool used[FIELD_NAMES];
} sizes;

static bool read_sizes(sizes *s, field_graph *g, const char *dims, char *message, size_t size) {
    reader r = reader_of(g, dims, "--dims", message, size);
    for (skip(&r); *r.at; skip(&r), take(&r, ',')) {
        char name[FIELD_NAME];
        if (s->count == FIELD_NAMES) return mistake(&r, "too many names", "") >= 0;
        if (!word(&r, name) || !take(&r, '=')) return mistake(&r, "NAME=SIZE belongs here", "") >= 0;
        const int64_t value = positive(&r, LARGEST);
        if (value < 1) return mistake(&r, "a size is 1 to 64: ", name) >= 0;
        snprintf(s->of[s->count].name, FIELD_NAME, "%s", name);
        s->of[s->count++].node = (int)value;
    }
    s->asked = s->count;
    return true;
}

/* A symbol's size: what was asked for, or 2, 3, 4 and so on. */
static int64_t size_of(reader *r, sizes *s, const char *name) {
    int i = 0;
    while (i < s->count && strcmp(s->of[i].name, name) != 0) i++;
    if (i == FIELD_NAMES) return mistake(r, "too many names", "");
    if (i == s->count) {
        snprintf(s->of[i].name, FIELD_NAME, "%s", name);
        s->of[i].node = 2 + (i - s->asked) % 6;
        s->count++;
    }
    s->used[i] = true;
    return s->of[i].node;
}

/* "x: r n". */
static bool read_input(reader *r, sizes *s) {
    char name[FIELD_NAME], symbol[FIELD_NAME];
    int64_t dim[2] = { 1, 1 };
    int rank = 0;
    if (!word(r, name)) return mistake(r, "the name of an input belongs here", "") >= 0;
    for (bool more = take(r, ':'); more && *r->at && *r->at != ';'; skip(r)) {
        if (rank == 2) return mistake(r, "more than two dimensions of ", name) >= 0;
        skip(r);
        const int64_t size = isdigit((unsigned char)*r->at) ? positive(r, LARGEST)
                             : word(r, symbol)              ? size_of(r, s, symbol)
                                                            : mistake(r, "a symbol or a size belongs here", "");
        if (size < 1) return mistake(r, "a size is 1 to 64: ", name) >= 0;
        dim[rank++] = size;
        skip(r);
    }
    const field_node input = {
        .op = FIELD_INPUT, .a = -1, .b = -1, .rows = rank == 2 ? dim[0] : 1, .columns = rank == 2 ? dim[1] : dim[0]
    };
    const int to = node(r, input);
    return to >= 0 && define(r, name, to);
}

bool field_read_inputs(field_graph *g, const char *inputs, const char *dims, char *message, size_t size) {
    sizes s = { .count = 0 };
    if (dims && !read_sizes(&s, g, dims, message, size)) return false;
    reader r = reader_of(g, inputs, "--inputs", message, size);
    do {
        skip(&r);
        if (!*r.at) break;
        if (!read_input(&r, &s)) return false;
    } while (take(&r, ';'));
    if (*r.at) return mistake(&r, "\";\" or the end belongs here", "") >= 0;
    for (int i = 0; i < s.asked; i++)
        if (!s.used[i]) return mistake(&r, "no input has the dimension ", s.of[i].name) >= 0;
    memcpy(g->input, r.name, sizeof g->input);
    g->inputs = r.names;
    return true;
}
