/* SPDX-License-Identifier: Apache-2.0 */
/* Cases by the options of the subcommands: one for what takes one call, a selection for what takes many. */
#include <string.h>
#include <sys/stat.h>

#include "bench/bench.h"
#include "tool.h"

trine_op find_op(const char *command, const char *name) {
    const char *names[TRINE_OP_COUNT];
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        names[op - 1] = trine_specs[op]->name;
        if (strcmp(names[op - 1], name) == 0) return (trine_op)op;
    }
    names[TRINE_OP_COUNT - 1] = NULL;
    const char *near = nearest_name(name, names);
    if (near)
        usage_error(command, "no op \"%s\"; did you mean \"%s\"?", name, near);
    else
        usage_error(command, "no op \"%s\"; trine spec lists them", name);
    return TRINE_OP_NONE;
}

bool find_ops(const char *command, const char *list) {
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (find_op(command, name) == TRINE_OP_NONE) return false;
    }
    return true;
}

bool listed(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0) return true;
    return list == NULL;
}

/* The case `text`, NULL for none, with other types and dimensions. */
static bool complete_case(trine_case *c, trine_op op, const char *text, const char *dims, const char *types,
                          char *error, size_t size) {
    trine_case_init(c, op);
    if (text && !trine_case_parse(c, text, error, size)) return false;
    if (text && types) memset(c->type, 0, sizeof c->type);
    return (types == NULL || trine_case_parse(c, types, error, size)) &&
           (dims == NULL || trine_case_parse(c, dims, error, size)) && trine_case_finish(c, error, size);
}

static bool begins(const char *text, const char *name) {
    return name == NULL || strncmp(text, name, strlen(name)) == 0;
}

int make_case(const char *command, trine_case *c, trine_op op, const char *named, const char *dims, const char *types) {
    char error[320];
    const trine_spec *spec = trine_specs[op];
    const char *text = NULL;
    for (int i = 0; named && text == NULL && i < TRINE_MAX_STRINGS && spec->cases[i]; i++)
        if (begins(spec->cases[i], named)) text = spec->cases[i];
    if (named && text == NULL)
        return usage_error(command, "%s has no case \"%s\"; trine spec %s lists them", spec->name, named, spec->name);
    return complete_case(c, op, text, dims, types, error, sizeof error) ? 0 : usage_error(command, "%s", error);
}

static void pass_over(void *context, trine_op op, const char *text) { (void)context, (void)op, (void)text; }

int selection_check(const char *command, const selection *s) {
    char error[640];
    struct stat status;
    if (s->dims && s->op == NULL) return usage_error(command, "--dims needs --op");
    if (!find_ops(command, s->op)) return 2;
    /* What is wrong with a file is said before the roofs are measured; a pipe can be read only once. */
    if (s->cases == NULL || stat(s->cases, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
    return bench_read_cases(s->cases, pass_over, NULL, error, sizeof error) ? 0 : failure("%s", error);
}

bool selection_make(const selection *s, trine_case *c, trine_op op, const char *text, char *error, size_t size) {
    return complete_case(c, op, text, s->dims, s->types, error, size);
}

/* What is handed on of a file. */
typedef struct visitor {
    const char *op;
    case_visit *visit;
    void *context;
} visitor;

static void visit_listed(void *context, trine_op op, const char *text) {
    const visitor *v = context;
    if (listed(v->op, trine_op_name(op))) v->visit(v->context, op, text);
}

bool selection_each(const selection *s, case_visit *visit, void *context, char *error, size_t size) {
    if (s->cases != NULL)
        return bench_read_cases(s->cases, visit_listed, &(visitor){ s->op, visit, context }, error, size);
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        const trine_spec *spec = trine_specs[op];
        const bool own = s->dims && s->named == NULL;
        if (!listed(s->op, spec->name)) continue;
        if (own) visit(context, (trine_op)op, NULL);
        for (int i = 0; !own && i < TRINE_MAX_STRINGS && spec->cases[i]; i++)
            if (begins(spec->cases[i], s->named)) visit(context, (trine_op)op, spec->cases[i]);
    }
    return true;
}
