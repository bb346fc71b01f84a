/* SPDX-License-Identifier: Apache-2.0 */
/* Build-time program: prints the places that an op's table gives its tensors, symbols and type variables, as a header
 * for kernels, which brings the public header of the op's family along. Usage: spec-places OP FAMILY. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <trine/ops.h>

#include "plan.h"

static void print_upper(const char *text) {
    for (; *text; text++) putchar(toupper((unsigned char)*text));
}

/* One enumerator: OP_<kind><name>. */
static void print_place(const trine_plan *plan, const char *kind, const char *name) {
    printf("    ");
    print_upper(plan->spec->name);
    printf("_%s", kind);
    print_upper(name);
    printf(",\n");
}

static void print_guard(const char *directive, const trine_plan *plan) {
    printf("%s TRINE_PLACES_", directive);
    print_upper(plan->spec->name);
    printf("_H\n");
}

static void print_names(const trine_plan *plan, const char *kind, int count, const char *const *name) {
    if (count == 0) return;
    printf("enum {\n");
    for (int i = 0; i < count; i++) print_place(plan, kind, name[i]);
    printf("};\n");
}

static const trine_plan *find(const char *name) {
    for (trine_op op = 1; op < TRINE_OP_COUNT; op++)
        if (strcmp(trine_plan_get(op)->spec->name, name) == 0) return trine_plan_get(op);
    return NULL;
}

int main(int argc, char **argv) {
    const char *tensor[TRINE_MAX_TENSORS];
    if (trine_plan_error() != NULL) {
        fprintf(stderr, "spec: %s\n", trine_plan_error());
        return 1;
    }
    const trine_plan *plan = argc == 3 ? find(argv[1]) : NULL;
    if (plan == NULL) {
        fprintf(stderr, "usage: spec-places OP FAMILY\n");
        return 1;
    }
    for (int t = 0; t < plan->tensors; t++) tensor[t] = plan->tensor[t].spec->name;
    printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
           "/* Made from the table of %s: the places of its tensors, symbols and type variables. */\n",
           plan->spec->name);
    print_guard("#ifndef", plan);
    print_guard("#define", plan);
    printf("#include <trine/%s.h>\n", argv[2]);
    print_names(plan, "", plan->tensors, tensor);
    print_names(plan, "DIM_", plan->symbols, plan->symbol_name);
    print_names(plan, "TYPE_", plan->types, plan->type_name);
    printf("#endif\n");
    return 0;
}
