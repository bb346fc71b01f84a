/* SPDX-License-Identifier: Apache-2.0 */
/* trine spec --json: all that a generator of bindings needs, described in trine-spec(1). */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "docs.h"
#include "spec_json.h"

/* A parameter's kind, and the member of the arguments that holds it. */
static const struct {
    const char *name, *c_type;
    size_t size;
} kinds[] = {
    [BOOL] = { "BOOL", "int32_t", sizeof(int32_t) },
    [ENUM] = { "ENUM", "int32_t", sizeof(int32_t) },
    [I32] = { "I32", "int32_t", sizeof(int32_t) },
    [I64] = { "I64", "int64_t", sizeof(int64_t) },
    [U64] = { "U64", "uint64_t", sizeof(uint64_t) },
    [F32] = { "F32", "float", sizeof(float) },
    [TEXT] = { "TEXT", "const char *", sizeof(const char *) },
    [COMM] = { "COMM", "trine_comm *", sizeof(trine_comm *) },
};

static const char *upper(const char *text, char *out, size_t size) {
    size_t i = 0;
    for (; text[i] && i + 1 < size; i++) out[i] = (char)toupper((unsigned char)text[i]);
    out[i] = 0;
    return out;
}

static void member(const char *before, const char *name, const char *text) {
    bench_json_member(stdout, before, name, text);
}

/* ------------------------------------------------------------------------------------------------------------ lists */

static void begin_list(const char *before, const char *name) { printf("%s\"%s\": [", before, name); }

/* The words of a text as a list of strings. */
static void words(const char *before, const char *name, const char *text) {
    begin_list(before, name);
    for (const char *at = text; at && *at;) {
        const int length = (int)strcspn(at, " ");
        printf("%s\"%.*s\"", at == text ? "" : ", ", length, at);
        at += length;
        at += strspn(at, " ");
    }
    putchar(']');
}

static void strings(const char *name, const char *const *text, int most) {
    begin_list(",\n    ", name);
    for (int i = 0; i < most && text[i]; i++) {
        printf(i ? ", " : "");
        bench_json_text(stdout, text[i]);
    }
    putchar(']');
}

static void number(const char *name, double value) {
    if (isfinite(value))
        printf(", \"%s\": %.17g", name, value);
    else
        printf(", \"%s\": null", name);
}

/* ------------------------------------------------------------------------------------------------------------ an op */

/* What the header says of a member; NULL if nothing. */
static const char *comment_of(const trine_plan *plan, const char *name) {
    const trine_tool_doc *doc = &trine_tool_docs[plan->op];
    for (size_t i = 0; i < sizeof doc->member / sizeof doc->member[0] && doc->member[i].name; i++)
        if (strcmp(doc->member[i].name, name) == 0) return doc->member[i].text;
    return NULL;
}

static void flags(uint32_t set) {
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = { { IN, "in" },
                  { OUT, "out" },
                  { OPTIONAL, "optional" },
                  { TRANSPOSABLE, "transposable" },
                  { BROADCAST, "broadcast" },
                  { EXACT, "exact" },
                  { ANY_STRIDE, "any_stride" } };
    const char *gap = "";
    begin_list(", ", "flags");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!(set & names[i].flag)) continue;
        printf("%s\"%s\"", gap, names[i].name);
        gap = ", ";
    }
    putchar(']');
}

/* The dimensions of a shape: each the text between its brackets, and the symbol and what is added to it where it is so
 * simple. */
static void dims(const trine_plan *plan, const trine_plan_tensor *tensor) {
    const char *at = tensor->spec->shape;
    printf(", \"rank\": %d", tensor->rank);
    begin_list(", ", "dims");
    for (int i = 0; i < tensor->rank; i++) {
        const trine_dim *dim = &tensor->dim[i];
        const size_t length = strcspn(at, " ");
        printf("%s{ \"text\": \"%.*s\", \"optional\": %s", i ? ", " : "", (int)length - 2 * dim->optional,
               at + dim->optional, dim->optional ? "true" : "false");
        member(", ", "symbol", dim->symbol >= 0 ? plan->symbol_name[dim->symbol] : NULL);
        printf(", \"add\": %" PRId64 " }", dim->symbol >= 0 ? dim->add : 0);
        at += length;
        at += strspn(at, " ");
    }
    putchar(']');
}

static void tensor(const trine_plan *plan, int index) {
    const trine_plan_tensor *t = &plan->tensor[index];
    const trine_spec_tensor *spec = t->spec;
    const char *gap = "";
    printf("%s\n      { \"name\": \"%s\"", index ? "," : "", spec->name);
    member(", ", "c_type", "const trine_tensor *");
    printf(", \"offset\": %" PRIu32 ", \"size\": %zu", spec->offset, sizeof(const trine_tensor *));
    flags(spec->flags);
    member(", ", "type", spec->type);
    printf(", \"type_is_variable\": %s", t->type >= 0 ? "true" : "false");
    member(", ", "shape", spec->shape);
    dims(plan, t);
    begin_list(", ", "may_be");
    for (int i = 0; i < plan->tensors; i++) {
        if (!(plan->alias[index] >> i & 1)) continue;
        printf("%s\"%s\"", gap, plan->tensor[i].spec->name);
        gap = ", ";
    }
    putchar(']');
    member(", ", "fill", spec->fill);
    member(", ", "terms", spec->terms);
    member(", ", "rounds", spec->rounds);
    member(", ", "accumulate", spec->accumulate);
    member(", ", "comment", comment_of(plan, spec->name));
    printf(" }");
}

/* How a zero that is meant is passed: NULL where it is refused, as it is in an integer that has a fallback. */
static const char *zero_of(const trine_spec_param *p) {
    if (p->fallback == 0 && p->unset == NULL) return "0";
    return p->kind == F32 && p->unset == NULL ? "-0.0" : NULL;
}

static void param(const trine_plan *plan, int index) {
    const trine_spec_param *p = &plan->spec->params[index];
    printf("%s\n      { \"name\": \"%s\", \"kind\": \"%s\"", index ? "," : "", p->name, kinds[p->kind].name);
    member(", ", "c_type", kinds[p->kind].c_type);
    printf(", \"offset\": %" PRIu32 ", \"size\": %zu", p->offset, kinds[p->kind].size);
    member(", ", "doc", p->doc);
    words(", ", "names", p->kind == ENUM ? p->values : NULL);
    member(", ", "values", p->values);
    printf(", \"fallback\": %.17g", p->fallback);
    member(", ", "unset", p->unset);
    member(", ", "zero", zero_of(p));
    printf(", \"zero_is_fallback\": %s", p->fallback != 0 || p->unset ? "true" : "false");
    const bool range = plan->max[index] >= plan->min[index];
    number("min", range ? plan->min[index] : -INFINITY);
    number("max", range ? plan->max[index] : INFINITY);
    member(", ", "below", p->below);
    member(", ", "comment", comment_of(plan, p->name));
    printf(" }");
}

static void types(const trine_plan *plan) {
    strings("types", plan->spec->types, TRINE_MAX_TYPES);
    begin_list(",\n    ", "type_variables");
    for (int i = 0; i < plan->types; i++) printf("%s\"%s\"", i ? ", " : "", plan->type_name[i]);
    putchar(']');
    begin_list(",\n    ", "type_combinations");
    for (int i = 0; i < plan->combos; i++) {
        printf(i ? ", [" : "[");
        for (int k = 0; k < plan->types; k++) printf("%s\"%s\"", k ? ", " : "", trine_dtype_name(plan->combo[i][k]));
        putchar(']');
    }
    putchar(']');
}

static void names_of(const trine_plan *plan) {
    const trine_tool_doc *doc = &trine_tool_docs[plan->op];
    char name[64];
    printf("  {\n    \"number\": %d", (int)plan->op);
    printf(",\n    \"constant\": \"TRINE_OP_%s\"", upper(plan->spec->name, name, sizeof name));
    member(",\n    ", "family", doc->family);
    printf(",\n    \"header\": \"trine/%s.h\"", doc->family);
    member(",\n    ", "name", plan->spec->name);
    printf(",\n    \"function\": \"trine_%s\"", plan->spec->name);
    printf(",\n    \"args_type\": \"trine_%s_args\", \"args_size\": %zu", plan->spec->name, plan->spec->args_size);
    printf(",\n    \"hash\": \"%016" PRIx64 "\"", trine_op_hash(plan->op));
    member(",\n    ", "summary", plan->spec->summary);
    member(",\n    ", "formula", plan->spec->formula);
    member(",\n    ", "source", plan->spec->source);
    member(",\n    ", "doc", doc->text);
}

void spec_json_op(const trine_plan *plan) {
    const trine_spec *spec = plan->spec;
    names_of(plan);
    begin_list(",\n    ", "symbols");
    for (int i = 0; i < plan->symbols; i++) printf("%s\"%s\"", i ? ", " : "", plan->symbol_name[i]);
    printf("]");
    begin_list(",\n    ", "tensors");
    for (int i = 0; i < plan->tensors; i++) tensor(plan, i);
    printf("\n    ]");
    begin_list(",\n    ", "params");
    for (int i = 0; i < plan->params; i++) param(plan, i);
    printf("\n    ]");
    types(plan);
    strings("require", spec->require, TRINE_MAX_STRINGS);
    strings("alias", spec->alias, TRINE_MAX_STRINGS);
    strings("gradient", spec->gradient, (int)(sizeof spec->gradient / sizeof spec->gradient[0]));
    strings("sizes", spec->sizes, TRINE_MAX_STRINGS);
    strings("cases", spec->cases, TRINE_MAX_STRINGS);
    member(",\n    ", "flops", spec->flops);
    member(",\n    ", "masked", spec->masked);
    member(",\n    ", "independent", spec->independent);
    printf(",\n    \"integers_exact\": %s\n  }", spec->integers_exact ? "true" : "false");
}

/* ------------------------------------------------------------------------------------------------------ all of them */

static void statuses(void) {
    const char *const none = trine_status_name((trine_status)-1);
    begin_list(",\n  ", "statuses");
    for (int i = 0; strcmp(trine_status_name((trine_status)i), none) != 0; i++)
        printf("%s\n    { \"name\": \"%s\", \"value\": %d }", i ? "," : "", trine_status_name((trine_status)i), i);
    printf("\n  ]");
}

static void dtypes(void) {
    const char *gap = "";
    char name[32];
    begin_list(",\n  ", "dtypes");
    for (unsigned code = 1; code < 1u << 16; code++) {
        const trine_dtype type = (trine_dtype)code;
        if (trine_dtype_name(type) == NULL) continue;
        printf("%s\n    { \"name\": \"%s\", \"constant\": \"TRINE_%s\"", gap, trine_dtype_name(type),
               upper(trine_dtype_name(type), name, sizeof name));
        printf(", \"value\": %u, \"size\": %zu }", code, trine_dtype_size(type));
        gap = ",";
    }
    printf("\n  ]");
}

static void tensor_structure(void) {
#define MEMBER(name, type) { #name, type, offsetof(trine_tensor, name), sizeof((trine_tensor *)0)->name }
    static const struct {
        const char *name, *c_type;
        size_t offset, size;
    } members[] = { MEMBER(data, "void *"), MEMBER(dtype, "trine_dtype"), MEMBER(rank, "int32_t"),
                    MEMBER(shape, "int64_t"), MEMBER(stride, "int64_t") };
#undef MEMBER
    printf(",\n  \"tensor\": { \"c_type\": \"trine_tensor\", \"size\": %zu, \"max_rank\": %d, \"members\": [",
           sizeof(trine_tensor), TRINE_MAX_RANK);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        printf("%s\n    { \"name\": \"%s\", \"c_type\": \"%s\", \"offset\": %zu, \"size\": %zu }", i ? "," : "",
               members[i].name, members[i].c_type, members[i].offset, members[i].size);
    printf("\n  ] }");
}

void spec_json_all(void) {
    printf("{\n  \"version\": \"%s\",\n  \"abi\": %d,\n  \"specification\": \"%016" PRIx64 "\"", TRINE_VERSION,
           TRINE_ABI, trine_spec_hash());
    printf(",\n  \"struct_size\": { \"name\": \"struct_size\", \"c_type\": \"size_t\", \"offset\": 0, \"size\": %zu",
           sizeof(size_t));
    member(", ", "rule",
           "The first member of all arguments. The caller sets it to the args_size that it was made for: what lies "
           "beyond is not read and counts as zero.");
    printf(" }");
    tensor_structure();
    statuses();
    dtypes();
    begin_list(",\n  ", "ops");
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        puts(op > 1 ? "," : "");
        spec_json_op(trine_plan_get((trine_op)op));
    }
    puts("\n  ]\n}");
}
