/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time program: prints trine-ops(7) from the tables, in scdoc's format. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/plan.h"
#include "tools/docs.h"

/* Text with scdoc's special characters escaped. */
static void put_char(char c) {
    if (strchr("\\*_[]|`~<>#.+-", c)) putchar('\\');
    putchar(c);
}
static void put(const char *text) {
    for (; text && *text; text++) put_char(*text);
}

/* The header's words: formulas as they stand, all else in paragraphs. */
static void put_words(const char *text) {
    bool formula = false;
    for (const char *line = text, *end; line != NULL; line = *end ? end + 1 : NULL) {
        end = line + strcspn(line, "\n");
        const int length = (int)(end - line);
        if ((*line == ' ') != formula) puts("```");
        formula = *line == ' ';
        if (formula) {
            printf("%.*s\n", length, line);
            continue;
        }
        for (int i = 0; i < length; i++) put_char(line[i]);
        puts(length > 0 ? "\n" : "");
    }
    puts(formula ? "```\n" : "");
}

static void put_list(const char *title, const char *const *strings, int most) {
    if (strings[0] == NULL) return;
    printf("%s\n", title);
    for (int i = 0; i < most && strings[i]; i++) {
        fputs(i ? "; " : "\t", stdout);
        put(strings[i]);
    }
    fputs("\n\n", stdout);
}

static void put_tensor(const trine_spec_tensor *t) {
    const bool in = t->flags & IN, out = t->flags & OUT;
    printf("*");
    put(t->name);
    printf("*\n\t%s%s, type ", t->flags & OPTIONAL ? "optional " : "",
           in && out ? "updated in place"
           : in      ? "input"
                     : "output");
    put(t->type);
    printf(", shape \"");
    put(t->shape);
    printf("\"%s%s%s%s", t->flags & TRANSPOSABLE ? ", transposable" : "", t->flags & BROADCAST ? ", broadcast" : "",
           t->flags & ANY_STRIDE ? ", any strides" : "", t->flags & EXACT ? ", exact" : "");
    if (out && t->terms && !(t->flags & EXACT)) {
        printf("; error bound: (");
        put(t->terms);
        printf(") u(%s)", t->accumulate ? t->accumulate : "accumulator");
        if (t->rounds) {
            printf(" \\+ (");
            put(t->rounds);
            printf(") u(T)");
        }
    }
    fputs("\n\n", stdout);
}

static void put_param(const trine_spec_param *p) {
    printf("*");
    put(p->name);
    printf("*\n\t");
    put(p->doc ? p->doc : "parameter");
    if (p->kind == ENUM) {
        fputs("; one of ", stdout);
        put(p->values);
    }
    char text[64];
    if (p->fallback != 0) {
        snprintf(text, sizeof text, "; left zero: %.9g", p->fallback);
        put(text);
    }
    if (p->unset) {
        put("; left zero: ");
        put(p->unset);
    }
    fputs("\n\n", stdout);
}

static void put_op(const trine_plan *plan) {
    const trine_spec *spec = plan->spec;
    printf("## ");
    put(spec->name);
    fputs("\n\n", stdout);
    put_words(trine_tool_docs[plan->op].text);
    for (int i = 0; i < plan->tensors; i++) put_tensor(plan->tensor[i].spec);
    for (int i = 0; i < plan->params; i++) put_param(&spec->params[i]);
    put_list("Types", spec->types, TRINE_MAX_TYPES);
    put_list("Requires", spec->require, TRINE_MAX_STRINGS);
    put_list("In place", spec->alias, TRINE_MAX_STRINGS);
}

int main(void) {
    if (trine_plan_error() != NULL) {
        fprintf(stderr, "spec: %s\n", trine_plan_error());
        return 1;
    }
    puts("trine-ops(7)\n\n# NAME\n\ntrine-ops - the ops of trine, as their specification has them\n\n# DESCRIPTION\n\n"
         "Each op is a function *trine\\_OP*(queue, args) whose arguments structure has the members below. A shape is "
         "a list of symbols; a symbol has one "
         "value in "
         "all tensors of a call; a dimension in brackets may be missing in front. u(T) is the unit roundoff of a type, "
         "2^-24 for f32 and 2^-8 for bf16; every "
         "element y "
         "of an output satisfies |y \\- y64| <= u(type of y) |y64| \\+ bound x magnitude, where y64 and the magnitude "
         "are those of the float64 reference.\n\n# "
         "OPS\n");
    for (int op = 1; op < TRINE_OP_COUNT; op++) put_op(trine_plan_get((trine_op)op));
    puts("# SEE ALSO\n\n*trine*(7), *trine-spec*(1)");
    return 0;
}
