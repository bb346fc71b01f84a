/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the tables of the specification, once, into plans. */
#include <trine/ops.h>

#include "plan.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static trine_plan plans[TRINE_OP_COUNT];
static char plan_error[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool malformed(const trine_plan *plan, const char *what, const char *text) {
    if (plan_error[0] == 0) snprintf(plan_error, sizeof plan_error, "%s: %s: \"%s\"", plan->spec->name, what, text);
    return false;
}

static int find(const char *const *names, int count, const char *name, size_t length) {
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) return i;
    return -1;
}

/* Copies [text, text+length) to the heap; plans live as long as the process. */
static const char *keep(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (copy == NULL) return NULL;
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

/* ----------------------------------------------------------------------------------------------------------- shapes */

/* A dimension: SYMBOL, SYMBOL+NUMBER, SYMBOL-NUMBER, NUMBER or an expression without spaces of symbols bound before. */
static bool parse_dim(trine_plan *plan, const char *token, size_t length, trine_dim *dim) {
    char text[64];
    if (length >= sizeof text) return false;
    memcpy(text, token, length);
    text[length] = 0;
    if (text[0] == '[') {
        if (text[length - 1] != ']') return false;
        dim->optional = true;
        text[length - 1] = 0;
        memmove(text, text + 1, length - 1);
    }
    size_t name = 0;
    while (isalnum((unsigned char)text[name]) || text[name] == '_') name++;
    char *end = text + name;
    const bool more = (text[name] == '+' || text[name] == '-') && isdigit((unsigned char)text[name + 1]);
    const long add = more ? strtol(text + name, &end, 10) : 0;
    if (isalpha((unsigned char)text[0]) && *end == 0 && (more || text[name] == 0)) {
        int symbol = find(plan->symbol_name, plan->symbols, text, name);
        if (symbol < 0) {
            if (plan->symbols == TRINE_MAX_SYMBOLS) return false;
            symbol = plan->symbols++;
            plan->symbol_name[symbol] = keep(text, name);
        }
        dim->symbol = (short)symbol;
        dim->add = add;
        return true;
    }
    dim->symbol = -1;
    return trine_expr_parse(plan, text, &dim->expr);
}

static bool parse_tensor(trine_plan *plan, int index) {
    const trine_spec_tensor *spec = &plan->spec->tensors[index];
    trine_plan_tensor *tensor = &plan->tensor[index];
    tensor->spec = spec;
    for (const char *at = spec->shape; *at;) {
        const size_t length = strcspn(at, " ");
        if (tensor->rank == TRINE_MAX_RANK || !parse_dim(plan, at, length, &tensor->dim[tensor->rank++]))
            return malformed(plan, "bad dimension in shape", spec->shape);
        at += length;
        at += strspn(at, " ");
    }
    tensor->dtype = trine_dtype_parse(spec->type);
    tensor->type = -1;
    if (tensor->dtype == TRINE_NONE) {
        tensor->type = (short)find(plan->type_name, plan->types, spec->type, strlen(spec->type));
        if (tensor->type < 0) return malformed(plan, "a row of types lacks", spec->type);
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ types */

/* The variables in the order of the first row, whatever that of the tensors. */
static bool number_types(trine_plan *plan) {
    const trine_spec *spec = plan->spec;
    for (const char *at = spec->types[0]; at && *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const size_t length = strcspn(at, "=");
        for (int i = 0; i < TRINE_MAX_TENSORS && spec->tensors[i].name; i++) {
            const char *type = spec->tensors[i].type;
            if (strncmp(type, at, length) != 0 || type[length] != 0) continue;
            if (plan->types == TRINE_MAX_SYMBOLS) return malformed(plan, "too many type variables", type);
            plan->type_name[plan->types++] = type;
            break;
        }
    }
    return true;
}

/* Appends the combinations of one row, "T=f32|bf16 W=f32", from the type variable at `text` on. */
static bool expand(trine_plan *plan, const char *text, trine_dtype *chosen) {
    text += strspn(text, " ");
    if (*text == 0) {
        for (int i = 0; i < plan->types; i++)
            if (chosen[i] == TRINE_NONE) return malformed(plan, "a row of types lacks", plan->type_name[i]);
        void *grown = realloc(plan->combo, sizeof *plan->combo * (size_t)(plan->combos + 1));
        if (grown == NULL) return malformed(plan, "out of memory in", "types");
        plan->combo = grown;
        memcpy(plan->combo[plan->combos++], chosen, sizeof *plan->combo);
        return true;
    }
    const size_t name = strcspn(text, "=");
    const int type = find(plan->type_name, plan->types, text, name);
    if (type < 0 || text[name] != '=') return malformed(plan, "bad types", text);
    const char *rest = text + strcspn(text, " ");
    for (const char *at = text + name; at < rest;) {
        at++;
        const size_t length = strcspn(at, "| ");
        const char *dtype = keep(at, length);
        chosen[type] = dtype ? trine_dtype_parse(dtype) : TRINE_NONE;
        free((void *)dtype);
        if (chosen[type] == TRINE_NONE) return malformed(plan, "unknown type in", text);
        if (!expand(plan, rest, chosen)) return false;
        at += length;
    }
    chosen[type] = TRINE_NONE;
    return true;
}

/* -------------------------------------------------------------------------------------------- requirements, aliases */

/* The set of tensors in "a SEPARATOR b SEPARATOR c"; 0 if one is unknown. */
static uint32_t parse_set(const trine_plan *plan, const char *text) {
    uint32_t set = 0;
    for (const char *at = text; *at;) {
        at += strspn(at, " <->|=");
        const size_t length = strcspn(at, " <->|=");
        if (length == 0) break;
        int index = -1;
        for (int i = 0; i < plan->tensors; i++)
            if (find(&plan->tensor[i].spec->name, 1, at, length) == 0) index = i;
        if (index < 0) return 0;
        set |= 1u << index;
        at += length;
    }
    return set;
}

/* Of "with TENSOR: ...", "without TENSOR: ...", "with PARAM=NAME: ..." or "with VARIABLE=TYPE: ...", what follows; NULL
 * if that is malformed. */
static const char *parse_with(trine_plan *plan, trine_plan_require *require, const char *text) {
    require->without = strncmp(text, "without ", 8) == 0;
    text += require->without ? 8 : 5;
    const size_t length = strcspn(text, "=: "), value = text[length] == '=' ? strcspn(text + length + 1, ": ") : 0;
    const char *name = keep(text, length);
    if (name != NULL && value == 0) require->with = (short)trine_plan_find_tensor(plan, name);
    if (name != NULL && value != 0) require->when = (short)trine_plan_find_param(plan, name);
    if (name != NULL && value != 0 && require->when < 0) require->type = (short)trine_plan_find_type(plan, name);
    free((void *)name);
    if (require->type >= 0) {
        const char *dtype = keep(text + length + 1, value);
        require->dtype = dtype ? trine_dtype_parse(dtype) : TRINE_NONE;
        free((void *)dtype);
        if (require->dtype == TRINE_NONE || require->without) return NULL;
    }
    if (require->when >= 0) {
        const trine_spec_param *param = &plan->spec->params[require->when];
        require->value = (short)(param->kind == ENUM ? trine_enum_number(param, text + length + 1, value) : -1);
    }
    text += length + (value ? value + 1 : 0);
    if ((require->with < 0 && require->when < 0 && require->type < 0) || require->value < 0 || *text != ':')
        return NULL;
    return text + 1 + strspn(text + 1, " ");
}

/* "VARIABLE is TYPE" */
static bool parse_type_is(trine_plan *plan, trine_plan_require *require, const char *text) {
    if (require->type >= 0) return malformed(plan, "a type depends on another in", text);
    const char *word = strstr(text, " is "), *name = keep(text, (size_t)(word - text));
    require->kind = REQUIRE_TYPE;
    require->type = name ? (short)trine_plan_find_type(plan, name) : -1;
    require->dtype = trine_dtype_parse(word + 4);
    free((void *)name);
    return (require->type >= 0 && require->dtype != TRINE_NONE) || malformed(plan, "unknown type in", text);
}

static bool parse_require(trine_plan *plan, const char *text) {
    if (plan->requires == TRINE_MAX_STRINGS) return malformed(plan, "too many requirements", text);
    trine_plan_require *require = &plan->require[plan->requires ++];
    *require = (trine_plan_require){ .kind = REQUIRE_EXPR, .with = -1, .text = text, .when = -1, .type = -1 };
    static const struct {
        const char *word;
        trine_require_kind kind;
    } pairs[] = { { " -> ", REQUIRE_PARAM }, { " instead of ", REQUIRE_INSTEAD } };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const char *word = strstr(text, pairs[i].word);
        if (word == NULL) continue;
        const char *name = keep(text, (size_t)(word - text));
        const int tensor = name ? trine_plan_find_tensor(plan, name) : -1;
        free((void *)name);
        require->kind = pairs[i].kind;
        require->param = (short)trine_plan_find_param(plan, word + strlen(pairs[i].word));
        require->tensors = tensor < 0 ? 0 : 1u << tensor;
        if (require->kind == REQUIRE_PARAM && require->param < 0) {
            require->kind = REQUIRE_TENSOR;
            require->with = (short)trine_plan_find_tensor(plan, word + strlen(pairs[i].word));
        }
        return (require->tensors != 0 && (require->param >= 0 || require->with >= 0)) ||
               malformed(plan, "unknown tensor or parameter in", text);
    }
    if (strstr(text, "<->") != NULL || strchr(text, '|') != NULL) {
        require->kind = strchr(text, '|') != NULL ? REQUIRE_ANY : REQUIRE_BOTH;
        require->tensors = parse_set(plan, text);
        return require->tensors != 0 || malformed(plan, "unknown tensor in", text);
    }
    if (strncmp(text, "with ", 5) == 0 || strncmp(text, "without ", 8) == 0) {
        text = parse_with(plan, require, text);
        if (text == NULL) return malformed(plan, "unknown tensor or parameter in", require->text);
        if (require->with >= 0) require->text = text;
    }
    if (strstr(text, " is ") != NULL) return parse_type_is(plan, require, text);
    return trine_expr_parse(plan, text, &require->expr) || malformed(plan, "bad requirement", text);
}

static bool parse_alias(trine_plan *plan, const char *text) {
    const size_t length = strcspn(text, "=");
    const char *name = keep(text, length);
    const int output = name ? trine_plan_find_tensor(plan, name) : -1;
    free((void *)name);
    const uint32_t inputs = text[length] == '=' ? parse_set(plan, text + length + 1) : 0;
    if (output < 0 || inputs == 0) return malformed(plan, "bad alias", text);
    plan->alias[output] |= inputs;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ plans */

static bool parse_bound(trine_plan *plan, int index) {
    trine_plan_tensor *tensor = &plan->tensor[index];
    const trine_spec_tensor *spec = tensor->spec;
    if (!(spec->flags & OUT) || (spec->flags & EXACT)) return true;
    if (spec->terms == NULL) return malformed(plan, "no error terms for output", spec->name);
    if (!trine_expr_parse(plan, spec->terms, &tensor->terms)) return malformed(plan, "bad terms", spec->terms);
    if (spec->rounds == NULL) return true;
    if (find(plan->type_name, plan->types, "T", 1) < 0)
        return malformed(plan, "rounds without a type variable T", spec->name);
    return trine_expr_parse(plan, spec->rounds, &tensor->rounds) || malformed(plan, "bad rounds", spec->rounds);
}

static void find_limits(trine_plan *plan, int index) {
    const trine_spec_param *param = &plan->spec->params[index];
    plan->min[index] = param->kind == BOOL || param->kind == ENUM ? 0 : param->min;
    plan->max[index] = param->kind == BOOL ? 1 : param->kind == ENUM ? 0 : param->max;
    for (const char *at = param->values; param->kind == ENUM && *at; at++) plan->max[index] += *at == ' ';
}

static bool parse_masked(trine_plan *plan) {
    const char *text = plan->spec->masked;
    char name[2][16];
    plan->masked[0] = plan->masked[1] = -1;
    if (text == NULL) return true;
    if (sscanf(text, "%15s %15s", name[0], name[1]) != 2) return malformed(plan, "masked wants two symbols, not", text);
    for (int i = 0; i < 2; i++) plan->masked[i] = (short)trine_plan_find_symbol(plan, name[i]);
    return (plan->masked[0] >= 0 && plan->masked[1] >= 0) || malformed(plan, "unknown symbol", text);
}

/* The communicator, and that all tensors begin with `ranks` where there is one. */
static bool parse_comm(trine_plan *plan) {
    plan->comm = -1;
    plan->ranks = (short)trine_plan_find_symbol(plan, "ranks");
    for (int i = 0; i < plan->params; i++)
        if (plan->spec->params[i].kind == COMM) plan->comm = (short)i;
    if (plan->comm < 0) return plan->ranks < 0 || malformed(plan, "no communicator beside", "ranks");
    for (int i = 0; i < plan->tensors; i++) {
        const trine_plan_tensor *t = &plan->tensor[i];
        const bool leads = t->rank > 0 && t->dim[0].symbol == plan->ranks && t->dim[0].add == 0 && !t->dim[0].optional;
        if (plan->ranks < 0 || !leads || t->spec->flags & BROADCAST)
            return malformed(plan, "a tensor of a group that does not begin with ranks, or may be broadcast",
                             t->spec->name);
    }
    return true;
}

static bool parse_below(trine_plan *plan, int index) {
    const char *below = plan->spec->params[index].below;
    plan->below[index] = below != NULL ? (short)trine_plan_find_symbol(plan, below) : -1;
    return below == NULL || (plan->below[index] >= 0 && plan->spec->params[index].kind == I32) ||
           malformed(plan, "unknown symbol, or not I32", below);
}

static bool parse_plan(trine_plan *plan) {
    const trine_spec *spec = plan->spec;
    if (!number_types(plan)) return false;
    for (; plan->tensors < TRINE_MAX_TENSORS && spec->tensors[plan->tensors].name; plan->tensors++)
        if (!parse_tensor(plan, plan->tensors)) return false;
    for (; plan->params < TRINE_MAX_PARAMS && spec->params[plan->params].name; plan->params++)
        find_limits(plan, plan->params);
    if (!parse_comm(plan)) return false;
    for (int i = 0; i < plan->params; i++)
        if (!parse_below(plan, i)) return false;
    trine_dtype chosen[TRINE_MAX_SYMBOLS] = { TRINE_NONE };
    for (int i = 0; i < TRINE_MAX_TYPES && spec->types[i]; i++)
        if (!expand(plan, spec->types[i], chosen)) return false;
    if (plan->combos == 0) return malformed(plan, "no types in", spec->name);
    for (int i = 0; i < TRINE_MAX_STRINGS && spec->require[i]; i++)
        if (!parse_require(plan, spec->require[i])) return false;
    for (int i = 0; i < TRINE_MAX_STRINGS && spec->alias[i]; i++)
        if (!parse_alias(plan, spec->alias[i])) return false;
    for (int i = 0; i < plan->tensors; i++)
        if (!parse_bound(plan, i)) return false;
    if (spec->flops == NULL || !trine_expr_parse(plan, spec->flops, &plan->flops))
        return malformed(plan, "bad flops", spec->name);
    plan->independent = spec->independent ? (short)trine_plan_find_symbol(plan, spec->independent) : -1;
    if (spec->independent && plan->independent < 0) return malformed(plan, "unknown symbol", spec->independent);
    if (!parse_masked(plan)) return false;
    if (spec->tensors[TRINE_MAX_TENSORS - 1].name || spec->params[TRINE_MAX_PARAMS - 1].name ||
        spec->types[TRINE_MAX_TYPES - 1] || spec->require[TRINE_MAX_STRINGS - 1] ||
        spec->alias[TRINE_MAX_STRINGS - 1] || spec->sizes[TRINE_MAX_STRINGS - 1] || spec->cases[TRINE_MAX_STRINGS - 1])
        return malformed(plan, "a list has no room left (spec.h)", spec->name);
    return spec->args_size <= TRINE_MAX_ARGS || malformed(plan, "arguments are too large", spec->name);
}

static void parse_all(void) {
    for (int op = 1; op < TRINE_OP_COUNT; op++) {
        plans[op].op = (trine_op)op;
        plans[op].spec = trine_specs[op];
        if (!parse_plan(&plans[op])) return;
    }
}

const trine_plan *trine_plan_get(int op) {
    pthread_once(&once, parse_all);
    return plan_error[0] == 0 && op > TRINE_OP_NONE && op < TRINE_OP_COUNT ? &plans[op] : NULL;
}

const char *trine_plan_error(void) {
    pthread_once(&once, parse_all);
    return plan_error[0] ? plan_error : NULL;
}

int trine_plan_find_tensor(const trine_plan *plan, const char *name) {
    for (int i = 0; i < plan->tensors; i++)
        if (strcmp(plan->tensor[i].spec->name, name) == 0) return i;
    return -1;
}

int trine_plan_find_param(const trine_plan *plan, const char *name) {
    for (int i = 0; i < plan->params; i++)
        if (strcmp(plan->spec->params[i].name, name) == 0) return i;
    return -1;
}

int trine_plan_find_symbol(const trine_plan *plan, const char *name) {
    return find(plan->symbol_name, plan->symbols, name, strlen(name));
}

int trine_plan_find_type(const trine_plan *plan, const char *name) {
    return find(plan->type_name, plan->types, name, strlen(name));
}

/* ------------------------------------------------------------------------------------------- what a plan can answer */

const char *trine_param_text(const trine_spec_param *param, const void *args) {
    const char *text;
    memcpy(&text, (const char *)args + param->offset, sizeof text);
    return text;
}

double trine_param_get(const trine_plan *plan, int index, const void *args) {
    const trine_spec_param *param = &plan->spec->params[index];
    const char *field = (const char *)args + param->offset;
    switch (param->kind) {
    case F32: return *(const float *)field;
    case TEXT:
    case COMM: return trine_param_text(param, args) != NULL;
    case I64: return (double)*(const int64_t *)field;
    case U64: return (double)*(const uint64_t *)field;
    default: return *(const int32_t *)field;
    }
}

void trine_param_set(const trine_plan *plan, int index, void *args, double value) {
    const trine_spec_param *param = &plan->spec->params[index];
    char *field = (char *)args + param->offset;
    switch (param->kind) {
    case F32: *(float *)field = (float)value; break;
    case TEXT:
    case COMM: *(void **)(void *)field = NULL; break;
    case I64: *(int64_t *)field = (int64_t)value; break;
    case U64: *(uint64_t *)field = (uint64_t)value; break;
    default: *(int32_t *)field = (int32_t)value;
    }
}

bool trine_param_unset(const trine_plan *plan, int index, const void *args) {
    const trine_spec_param *param = &plan->spec->params[index];
    uint64_t bits = 0;
    memcpy(&bits, (const char *)args + param->offset,
           param->kind == I64 || param->kind == U64 || param->kind == TEXT || param->kind == COMM ? 8 : 4);
    return bits == 0;
}

bool trine_param_told(const trine_plan *plan, int index, uint32_t present) {
    for (int i = 0; i < plan->requires; i++)
        if (plan->require[i].kind == REQUIRE_INSTEAD && plan->require[i].param == index &&
            plan->require[i].tensors & present)
            return true;
    return false;
}

bool trine_require_holds(const trine_plan_require *require, const int64_t *dim, const trine_dtype *type) {
    if (require->kind == REQUIRE_TYPE) return type[require->type] == require->dtype;
    if (require->type >= 0 && type[require->type] != require->dtype) return true;
    return require->kind != REQUIRE_EXPR || trine_expr_eval(&require->expr, dim) == 1;
}

int trine_enum_number(const trine_spec_param *param, const char *value, size_t length) {
    int number = 0;
    for (const char *at = param->values; at && *at; number++) {
        const size_t other = strcspn(at, " ");
        if (other == length && memcmp(at, value, length) == 0) return number;
        at += other;
        at += strspn(at, " ");
    }
    return -1;
}

int64_t trine_plan_size(const trine_dim *d, const int64_t *dim) {
    int64_t size;
    if (d->symbol >= 0) return __builtin_add_overflow(dim[d->symbol], d->add, &size) ? INT64_MAX : size;
    const double value = trine_expr_eval(&d->expr, dim);
    return !(value < 0x1p63) ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

void trine_plan_shape(const trine_plan *plan, int index, const int64_t *dim, int64_t *shape_out) {
    const trine_plan_tensor *tensor = &plan->tensor[index];
    for (int i = 0; i < tensor->rank; i++) shape_out[i] = trine_plan_size(&tensor->dim[i], dim);
}

double trine_plan_bytes(const trine_plan *plan, const int64_t *dim, const trine_dtype *type, uint32_t present) {
    double bytes = 0;
    for (int i = 0; i < plan->tensors; i++) {
        if (!(present >> i & 1)) continue;
        int64_t shape[TRINE_MAX_RANK];
        trine_plan_shape(plan, i, dim, shape);
        double size = (double)trine_dtype_size(trine_plan_dtype(plan, i, type));
        for (int k = 0; k < plan->tensor[i].rank; k++) size *= (double)shape[k];
        bytes += (plan->tensor[i].spec->flags & (IN | OUT)) == (IN | OUT) ? 2 * size : size;
    }
    return bytes;
}

double trine_plan_flops(const trine_plan *plan, const int64_t *dim) { return trine_expr_eval(&plan->flops, dim); }

trine_dtype trine_plan_accumulator(const trine_plan *plan, int index, const trine_dtype *type) {
    const char *named = plan->tensor[index].spec->accumulate;
    return named ? trine_dtype_parse(named) : trine_plan_dtype(plan, index, type) == TRINE_F64 ? TRINE_F64 : TRINE_F32;
}

double trine_plan_coefficient(const trine_plan *plan, int index, const int64_t *dim, const trine_dtype *type) {
    const trine_plan_tensor *tensor = &plan->tensor[index];
    if (tensor->spec->flags & EXACT) return 0;
    double c = trine_expr_eval(&tensor->terms, dim) * trine_unit_roundoff(trine_plan_accumulator(plan, index, type));
    if (tensor->rounds.length)
        c += trine_expr_eval(&tensor->rounds, dim) * trine_unit_roundoff(type[trine_plan_find_type(plan, "T")]);
    return c;
}

/* ------------------------------------------------------------------------------------------------------------- hash */

static void hash_bytes(uint64_t *hash, const void *data, size_t size) { /* FNV-1a */
    for (size_t i = 0; i < size; i++) *hash = (*hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
}

static void hash_text(uint64_t *hash, const char *text) {
    if (text) hash_bytes(hash, text, strlen(text));
    hash_bytes(hash, "", 1);
}

/* The lowest byte first, on every machine: the header of modules may be made on another. */
static void hash_bits(uint64_t *hash, uint64_t bits) {
    for (int i = 0; i < 8; i++) hash_bytes(hash, &(unsigned char){ (unsigned char)(bits >> 8 * i) }, 1);
}

static void hash_number(uint64_t *hash, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    hash_bits(hash, bits);
}

static void hash_strings(uint64_t *hash, const char *const *strings, int count) {
    for (int i = 0; i < count; i++) hash_text(hash, strings[i]);
}

/* A list that ends with NULL. */
static void hash_list(uint64_t *hash, const char *const *strings) {
    for (; *strings; strings++) hash_text(hash, *strings);
    hash_text(hash, NULL);
}

uint64_t trine_op_hash(int op) {
    const trine_spec *spec = trine_specs[op];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash_text(&hash, spec->name);
    hash_text(&hash, spec->formula);
    hash_number(&hash, (double)spec->args_size);
    for (int i = 0; i < TRINE_MAX_TENSORS && spec->tensors[i].name; i++) {
        const trine_spec_tensor *t = &spec->tensors[i];
        const char *texts[] = { t->name, t->type, t->shape, t->fill, t->terms, t->rounds, t->accumulate };
        hash_strings(&hash, texts, (int)(sizeof texts / sizeof texts[0]));
        hash_number(&hash, t->flags);
        hash_number(&hash, t->offset);
    }
    for (int i = 0; i < TRINE_MAX_PARAMS && spec->params[i].name; i++) {
        const trine_spec_param *p = &spec->params[i];
        hash_text(&hash, p->name);
        hash_text(&hash, p->kind == ENUM ? p->values : NULL);
        hash_number(&hash, p->fallback);
        if (p->unset) hash_text(&hash, p->unset);
        hash_number(&hash, p->min);
        hash_number(&hash, p->max);
        if (p->below) hash_text(&hash, p->below);
        hash_number(&hash, p->kind);
        hash_number(&hash, p->offset);
    }
    hash_list(&hash, spec->types);
    hash_list(&hash, spec->require);
    hash_list(&hash, spec->alias);
    hash_text(&hash, spec->flops);
    hash_text(&hash, spec->masked);
    return hash;
}

uint64_t trine_spec_hash(void) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int op = 1; op < TRINE_OP_COUNT; op++) hash_bits(&hash, trine_op_hash((trine_op)op));
    return hash;
}
