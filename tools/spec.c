/* SPDX-License-Identifier: Apache-2.0 */
/* trine spec: the specification's tables as text, and the matrix of ops and backends. */
#include <math.h>
#include <string.h>

#include "docs.h"
#include "spec_json.h"
#include "tool.h"

static const char *const kinds[] = { "?", "BOOL", "ENUM", "I32", "I64", "U64", "F32", "TEXT", "COMM" };

/* "in, optional, transposable". */
static const char *flags_text(uint32_t flags, char *out, size_t size) {
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = { { IN, "in" },
                  { OUT, "out" },
                  { OPTIONAL, "optional" },
                  { TRANSPOSABLE, "transposable" },
                  { BROADCAST, "broadcast" },
                  { EXACT, "exact" },
                  { ANY_STRIDE, "any stride" } };
    size_t used = 0;
    *out = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && used < size; i++)
        if (flags & names[i].flag)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", names[i].name);
    return out;
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void print_strings(const char *title, const char *const *strings, int most) {
    if (strings[0] == NULL) return;
    printf("\n%s\n", title);
    for (int i = 0; i < most && strings[i]; i++) printf("  %s\n", strings[i]);
}

static void print_tensors(const trine_plan *plan) {
    printf("\ntensors\n");
    for (int i = 0; i < plan->tensors; i++) {
        const trine_spec_tensor *t = plan->tensor[i].spec;
        char flags[96];
        printf("  %-14s %-5s [%s]  %s", t->name, t->type, t->shape, flags_text(t->flags, flags, sizeof flags));
        if (t->fill) printf("; values: %s", t->fill);
        putchar('\n');
        if (!(t->flags & OUT) || (t->flags & EXACT)) continue;
        printf("  %-14s error <= u(%s) |y64| + ((%s) u(%s)", "", t->type, t->terms,
               t->accumulate ? t->accumulate : "accumulator");
        if (t->rounds) printf(" + (%s) u(T)", t->rounds);
        printf(") magnitude\n");
    }
}

static void print_params(const trine_plan *plan) {
    if (plan->params) printf("\nparameters\n");
    for (int i = 0; i < plan->params; i++) {
        const trine_spec_param *p = &plan->spec->params[i];
        printf("  %-14s %-5s %s", p->name, kinds[p->kind], p->doc ? p->doc : "");
        if (p->kind == ENUM) printf(" {%s}", p->values);
        if (p->fallback != 0) printf("; left zero: %.9g", p->fallback);
        if (p->unset) printf("; left zero: %s", p->unset);
        if (p->kind == TEXT)
            printf("%s", p->min > 0 ? "; required" : "");
        else if (isfinite(p->min) && isfinite(p->max) && p->max >= p->min)
            printf("; %.9g to %.9g", p->min, p->max);
        else if (isfinite(p->min) && p->max >= p->min)
            printf("; at least %.9g", p->min);
        putchar('\n');
    }
}

/* A line of text in lines of up to WIDTH columns behind two spaces; what is indented stays as it is. */
static void print_filled(const char *line, size_t length) {
    enum { WIDTH = 100 };
    printf("  ");
    for (size_t used = 2; length > 0;) {
        const char *const space = *line == ' ' ? NULL : memchr(line, ' ', length);
        const size_t word = space != NULL ? (size_t)(space - line) : length;
        const bool begins = used == 2;
        if (!begins && used + 1 + word > WIDTH) {
            printf("\n  %.*s", (int)word, line);
            used = 2 + word;
        } else {
            printf("%s%.*s", begins ? "" : " ", (int)word, line);
            used += word + !begins;
        }
        line += word, length -= word;
        if (length > 0) line++, length--;
    }
    putchar('\n');
}

/* What the public header says. */
static void print_words(const trine_tool_doc *doc) {
    printf("\nin words, from trine/%s.h\n", doc->family);
    for (const char *line = doc->text, *end; line != NULL; line = *end ? end + 1 : NULL) {
        end = line + strcspn(line, "\n");
        if (end == line)
            putchar('\n');
        else
            print_filled(line, (size_t)(end - line));
    }
}

static void print_op(const trine_plan *plan) {
    const trine_spec *spec = plan->spec;
    printf("%s: %s\n\n  %s\n", spec->name, spec->summary, spec->formula);
    if (spec->source) printf("\nsource\n  %s\n", spec->source);
    print_tensors(plan);
    print_params(plan);
    print_strings("types", spec->types, TRINE_MAX_TYPES);
    print_strings("requires", spec->require, TRINE_MAX_STRINGS);
    print_strings("in place", spec->alias, TRINE_MAX_STRINGS);
    printf("\nflops\n  %s\n", spec->flops);
    if (spec->masked)
        printf("\nmasks\n  over %s: what they hide is not computed, and not read of inputs that these dimensions end\n",
               spec->masked);
    if (spec->integers_exact)
        printf("\nsmall integers\n  sums of small integers are exact: every kernel returns the very same bits\n");
    print_strings("sizes tested", spec->sizes, TRINE_MAX_STRINGS);
    print_strings("cases", spec->cases, TRINE_MAX_STRINGS);
    print_words(&trine_tool_docs[plan->op]);
}

/* ----------------------------------------------------------------------------------------------------------- matrix */

/* Whether a kernel of the queue takes the op's first case with row `combo` of its types. */
static bool supported(trine_queue *queue, const trine_plan *plan, int combo) {
    static trine_case c;
    static trine_explanation e;
    char error[256];
    trine_case_init(&c, plan->op);
    if (plan->spec->cases[0] == NULL || !trine_case_parse(&c, plan->spec->cases[0], error, sizeof error)) return false;
    memcpy(c.type, plan->combo[combo], sizeof c.type);
    return trine_case_finish(&c, error, sizeof error) && trine_explain(queue, plan->op, c.args, &e) == TRINE_OK &&
           e.chosen >= 0;
}

/* The types of the first type variable that the queue's kernels take, "f32 f16";
 * with a fraction where they take only some of its rows. */
static void print_cell(trine_queue *queue, const trine_plan *plan) {
    bool any = false;
    for (int i = 0; i < plan->combos; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen |= plan->combo[k][0] == plan->combo[i][0];
        if (seen) continue;
        int rows = 0, taken = 0;
        for (int k = i; k < plan->combos; k++) {
            if (plan->combo[k][0] != plan->combo[i][0]) continue;
            rows++;
            taken += supported(queue, plan, k);
        }
        if (taken == 0) continue;
        printf(" %s", trine_dtype_name(plan->combo[i][0]));
        if (taken < rows) printf(" (%d of %d)", taken, rows);
        any = true;
    }
    printf(any ? " |" : " - |");
}

static int print_matrix(void) {
    trine *lib;
    if (trine_open(NULL, &lib) != TRINE_OK) return failure("%s", trine_error_message());
    trine_queue *queues[8];
    int count = 0;
    char last[64] = "";
    printf("| op |");
    for (int i = 0; i < trine_device_count(lib) && count < 8; i++) {
        trine_device_info_t info;
        if (trine_device_info(lib, i, &info) != TRINE_OK) continue;
        const size_t length = strcspn(info.name, ":");
        /* one device stands for its backend */
        if (strlen(last) == length && strncmp(info.name, last, length) == 0) continue;
        if (trine_queue_open(lib, i, NULL, &queues[count]) != TRINE_OK) continue;
        snprintf(last, sizeof last, "%.*s", (int)length, info.name);
        printf(" %s |", last);
        count++;
    }
    printf("\n|---|");
    for (int i = 0; i < count; i++) printf("---|");
    putchar('\n');
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        printf("| %s |", trine_specs[op]->name);
        for (int i = 0; i < count; i++) print_cell(queues[i], trine_plan_get((trine_op)op));
        putchar('\n');
    }
    for (int i = 0; i < count; i++) trine_queue_close(queues[i]);
    trine_close(lib);
    return 0;
}

/* Of each op what the agreement suite has run, by architecture: backends/archs.def, spec/ops.def. */
static int print_archs(void) {
#define CODE(op, name, proof)
#define ARCH(name) ARCH_##name,
    enum {
#include "backends/arch_rows.h"
        ARCHS
    };
#undef ARCH
#define ARCH(name) #name,
    static const char *const archs[] = {
#include "backends/arch_rows.h"
    };
#undef ARCH
#undef CODE
#define ARCH(name)
#define CODE(op, name, proof) [TRINE_OP_##op][ARCH_##name] = proof,
    static const char *const run[TRINE_OP_COUNT][ARCHS] = {
#include "backends/arch_rows.h"
    };
#undef ARCH
#undef CODE
    printf("| op |");
    for (int i = 0; i < ARCHS; i++) printf(" %s |", archs[i]);
    printf("\n|---|");
    for (int i = 0; i < ARCHS; i++) printf("---|");
    putchar('\n');
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        printf("| %s |", trine_specs[op]->name);
        for (int i = 0; i < ARCHS; i++) printf(" %s |", run[op][i] ? run[op][i] : "-");
        putchar('\n');
    }
    return 0;
}

static void print_list(void) {
    for (int op = 1; op < TRINE_OP_COUNT; op++) printf("%-24s %s\n", trine_specs[op]->name, trine_specs[op]->summary);
}

int trine_tool_spec(int argc, char **argv) {
    const char *name = NULL;
    bool json = false, matrix = false, archs = false;
    const option_row rows[] = {
        OPTION_FLAG("json", &json, "print JSON"),
        OPTION_FLAG("matrix", &matrix, "print which backend has kernels for which op and type, as a Markdown table"),
        OPTION_FLAG("archs", &archs, "print for which architectures each op has device code, and what has proved it"),
        { 0 },
    };
    const option_set set = { "trine spec [OP] [--json] [--matrix] [--archs]",
                             "Prints the specification of an op, or the list of ops.", rows };
    const int words = options_parse(&set, argc, argv, &name, 1);
    if (words < 0) return options_status(words);
    if (matrix + archs + json + (name != NULL) > 1 && matrix + archs > 0)
        return usage_error("spec", matrix ? "--matrix stands alone" : "--archs stands alone");
    if (matrix) return print_matrix();
    if (archs) return print_archs();
    const trine_op op = name ? find_op("spec", name) : TRINE_OP_NONE;
    if (name && op == TRINE_OP_NONE) return 2;
    if (!json) {
        if (name)
            print_op(trine_plan_get(op));
        else
            print_list();
        return 0;
    }
    if (name) {
        spec_json_op(trine_plan_get(op));
        putchar('\n');
    } else {
        spec_json_all();
    }
    return 0;
}
