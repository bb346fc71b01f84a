/* SPDX-License-Identifier: Apache-2.0 */
/* Cases as text and as args structures, entirely from the plan. */
#include "case.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

#define SPACES " \t\r\n"

__attribute__((format(printf, 3, 4))) static bool wrong(char *error, size_t size, const char *format, ...) {
    if (error == NULL || size == 0) return false;
    va_list list;
    va_start(list, format);
    trine_vsnprintf(error, size, format, list);
    va_end(list);
    return false;
}

void trine_case_init(trine_case *c, int op) {
    memset(c, 0, sizeof *c);
    c->plan = trine_plan_get(op);
    for (int i = 0; i < TRINE_MAX_SYMBOLS; i++) c->dim[i] = -1;
    for (int i = 0; i < c->plan->tensors; i++)
        if (!(c->plan->tensor[i].spec->flags & OPTIONAL)) c->present |= 1u << i;
}

/* ---------------------------------------------------------------------------------------------------------- setting */

static bool set_dim(trine_case *c, int symbol, const char *value, char *error, size_t size) {
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end || errno || number < 0)
        return wrong(error, size, "%s=%s: a dimension must be an integer from 0 to %" PRId64,
                     c->plan->symbol_name[symbol], value, INT64_MAX);
    c->dim[symbol] = number;
    return true;
}

static bool set_type(trine_case *c, int type, const char *value, char *error, size_t size) {
    const trine_dtype dtype = trine_dtype_parse(value);
    if (dtype == TRINE_NONE) return wrong(error, size, "%s=%s: no such element type", c->plan->type_name[type], value);
    bool admissible = false;
    for (int i = 0; i < c->plan->combos; i++) admissible |= c->plan->combo[i][type] == dtype;
    if (!admissible)
        return wrong(error, size, "%s=%s: %s does not take this type", c->plan->type_name[type], value,
                     c->plan->spec->name);
    c->type[type] = dtype;
    return true;
}

static bool set_integer(const trine_spec_param *param, void *field, const char *value, char *error, size_t size) {
    const int named = param->kind == ENUM ? trine_enum_number(param, value, strlen(value)) : -1;
    char *end = NULL;
    errno = 0;
    if (param->kind == U64) {
        const unsigned long long number = strtoull(value, &end, 0);
        if (end == value || *end || errno || strchr(value, '-'))
            return wrong(error, size, "%s=%s: not an integer from 0 to %" PRIu64, param->name, value, UINT64_MAX);
        *(uint64_t *)field = number;
        return true;
    }
    const long long number = named >= 0 ? named : strtoll(value, &end, 0);
    if (named < 0 && (end == value || *end || errno)) {
        if (param->kind == ENUM) return wrong(error, size, "%s=%s: not one of %s", param->name, value, param->values);
        return wrong(error, size, "%s=%s: not an integer", param->name, value);
    }
    if (param->kind == I64) {
        *(int64_t *)field = number;
        return true;
    }
    if (number != (int32_t)number) return wrong(error, size, "%s=%s: beyond 32 bits", param->name, value);
    *(int32_t *)field = (int32_t)number;
    return true;
}

/* Texts that are kept: beyond this many bytes no new one is taken. The tests' own are a few kilobytes. */
enum { KEPT_TEXTS = 4 << 20 };

/* A text that stays, without its spaces: cases are copied, and their arguments point to it. Each text is kept once.
 * NULL: there is no room. */
static const char *keep_text(const char *value) {
    typedef struct kept {
        struct kept *next;
        char text[];
    } kept;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static kept *all;
    static size_t bytes;
    const size_t size = sizeof(kept) + strlen(value) + 1;
    kept *one = malloc(size), *other;
    if (one == NULL) return NULL;
    char *to = one->text;
    for (; *value; value++)
        if (!strchr(SPACES, *value)) *to++ = *value;
    *to = 0;
    pthread_mutex_lock(&lock);
    for (other = all; other != NULL && strcmp(other->text, one->text) != 0; other = other->next) continue;
    const bool keeps = other == NULL && bytes + size <= KEPT_TEXTS;
    if (keeps) {
        one->next = all;
        all = one;
        bytes += size;
    }
    pthread_mutex_unlock(&lock);
    if (keeps) return one->text;
    free(one);
    return other != NULL ? other->text : NULL;
}

static bool set_param(trine_case *c, int index, const char *value, char *error, size_t size) {
    const trine_spec_param *param = &c->plan->spec->params[index];
    void *field = c->args + param->offset;
    if (param->kind == F32) {
        char *end;
        const float number = trine_strtof(value, &end);
        if (end == value || *end || !isfinite(number))
            return wrong(error, size, "%s=%s: not a finite number", param->name, value);
        /* A zero that is written is meant. */
        *(float *)field = number == 0 && (param->fallback != 0 || param->unset != NULL) ? -0.0f : number;
    } else if (param->kind == COMM) {
        return wrong(error, size, "%s=%s: a case is of all ranks", param->name, value);
    } else if (param->kind == TEXT) {
        const char *text = keep_text(value);
        if (text == NULL) return wrong(error, size, "%s: no room for another text", param->name);
        memcpy(field, &text, sizeof text);
    } else if (!set_integer(param, field, value, error, size)) {
        return false;
    }
    c->set |= 1u << index;
    return true;
}

static bool set_layout(trine_case *c, int tensor, const char *value, char *error, size_t size) {
    const trine_spec_tensor *spec = c->plan->tensor[tensor].spec;
    const bool transposed = strcmp(value, "transposed") == 0, broadcast = strcmp(value, "broadcast") == 0;
    if (!transposed && !broadcast)
        return wrong(error, size, "%s=%s: a tensor is transposed or broadcast", spec->name, value);
    if (!(spec->flags & (transposed ? TRANSPOSABLE : BROADCAST)))
        return wrong(error, size, "%s=%s: this tensor cannot be", spec->name, value);
    *(transposed ? &c->transposed : &c->broadcast) |= 1u << tensor;
    c->present |= 1u << tensor;
    return true;
}

bool trine_case_set(trine_case *c, const char *name, const char *value, char *error, size_t error_size) {
    const trine_plan *plan = c->plan;
    const int param = trine_plan_find_param(plan, name);
    if (param >= 0) return set_param(c, param, value, error, error_size);
    const int symbol = trine_plan_find_symbol(plan, name);
    if (symbol >= 0) return set_dim(c, symbol, value, error, error_size);
    const int type = trine_plan_find_type(plan, name);
    if (type >= 0) return set_type(c, type, value, error, error_size);
    const int tensor = trine_plan_find_tensor(plan, name);
    if (tensor >= 0) return set_layout(c, tensor, value, error, error_size);
    return wrong(error, error_size, "%s has no dimension, type, parameter or tensor \"%s\"", plan->spec->name, name);
}

/* One word: "+tensor", "-tensor", "name=value". */
static bool apply_word(trine_case *c, const char *word, char *error, size_t size) {
    if (*word == '+' || *word == '-') {
        const int tensor = trine_plan_find_tensor(c->plan, word + 1);
        if (tensor < 0) return wrong(error, size, "%s has no tensor \"%s\"", c->plan->spec->name, word + 1);
        if (*word == '+') {
            c->present |= 1u << tensor;
            return true;
        }
        if (!(c->plan->tensor[tensor].spec->flags & OPTIONAL))
            return wrong(error, size, "%s: the tensor is not optional", word);
        c->present &= ~(1u << tensor), c->transposed &= ~(1u << tensor), c->broadcast &= ~(1u << tensor);
        return true;
    }
    const char *equals = strchr(word, '=');
    char name[64];
    if (equals == NULL || equals == word)
        return wrong(error, size, "\"%s\" is not NAME=VALUE, +TENSOR or -TENSOR", word);
    if ((size_t)(equals - word) >= sizeof name) return wrong(error, size, "\"%.40s...\": no such name", word);
    memcpy(name, word, (size_t)(equals - word));
    name[equals - word] = 0;
    return trine_case_set(c, name, equals + 1, error, size);
}

/* Does the word at `at` set a TEXT parameter? It may have commas. */
static bool begins_text(const trine_case *c, const char *at) {
    for (int i = 0; i < c->plan->params; i++) {
        const trine_spec_param *param = &c->plan->spec->params[i];
        const size_t length = strlen(param->name);
        if (param->kind == TEXT && strncmp(at, param->name, length) == 0 && at[length] == '=') return true;
    }
    return false;
}

bool trine_case_parse(trine_case *c, const char *text, char *error, size_t error_size) {
    const char *colon = strchr(text, ':');
    for (const char *at = colon ? colon + 1 : text;;) {
        at += strspn(at, " ,\t\n");
        if (*at == 0) return true;
        char word[2048];
        const size_t length = strcspn(at, begins_text(c, at) ? " \t\n" : " ,\t\n");
        if (length >= sizeof word) return wrong(error, error_size, "\"%.40s...\" is too long", at);
        memcpy(word, at, length);
        word[length] = 0;
        if (!apply_word(c, word, error, error_size)) return false;
        at += length;
    }
}

/* ---------------------------------------------------------------------------------------------------------- writing */

typedef struct writer {
    char *at;
    size_t left;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
    va_list list;
    va_start(list, format);
    const int length = trine_vsnprintf(w->at, w->left, format, list);
    va_end(list);
    const size_t moved = length < 0 ? 0 : (size_t)length < w->left ? (size_t)length : w->left ? w->left - 1 : 0;
    w->at += moved;
    w->left -= moved;
}

/* ------------------------------------------------------------------------------------------------------- completing */

static bool choose_types(trine_case *c, char *error, size_t size) {
    const trine_plan *plan = c->plan;
    for (int i = 0; i < plan->combos; i++) {
        bool agrees = true;
        for (int t = 0; t < plan->types; t++) agrees &= c->type[t] == TRINE_NONE || c->type[t] == plan->combo[i][t];
        if (!agrees) continue;
        memcpy(c->type, plan->combo[i], sizeof c->type);
        return true;
    }
    char chosen[128] = "";
    for (int t = 0; t < plan->types; t++)
        if (c->type[t] != TRINE_NONE)
            snprintf(chosen + strlen(chosen), sizeof chosen - strlen(chosen), " %s=%s", plan->type_name[t],
                     trine_dtype_name(c->type[t]));
    return wrong(error, size, "%s does not take the types%s together", plan->spec->name, chosen);
}

static void choose_tensors(trine_case *c) {
    for (int i = 0; i < c->plan->requires; i++) {
        const trine_plan_require *require = &c->plan->require[i];
        if (require->kind == REQUIRE_ANY && !(require->tensors & c->present))
            c->present |= require->tensors & -require->tensors;
        if (require->kind == REQUIRE_BOTH && (require->tensors & c->present)) c->present |= require->tensors;
    }
}

static bool uses_symbol(const trine_dim *dim, int symbol) {
    bool found = dim->symbol == symbol;
    if (dim->symbol < 0)
        for (int i = 0; i < dim->expr.length; i++)
            found |= dim->expr.step[i].op == '$' && dim->expr.step[i].symbol == symbol;
    return found;
}

/* Is there a tensor whose shape cannot do without `symbol`? */
static bool needs_symbol(const trine_case *c, int symbol) {
    for (int i = 0; i < c->plan->tensors; i++) {
        if (!(c->present >> i & 1)) continue;
        for (int k = 0; k < c->plan->tensor[i].rank; k++)
            if (uses_symbol(&c->plan->tensor[i].dim[k], symbol) && !c->plan->tensor[i].dim[k].optional) return true;
    }
    return false;
}

static bool make_tensor(trine_case *c, int index, uint32_t open, char *error, size_t size) {
    const trine_plan_tensor *t = &c->plan->tensor[index];
    trine_tensor *tensor = &c->tensor[index];
    int64_t shape[TRINE_MAX_RANK];
    trine_plan_shape(c->plan, index, c->dim, shape);
    int first = 0;
    while (first < t->rank && t->dim[first].optional && t->dim[first].symbol >= 0 && (open >> t->dim[first].symbol & 1))
        first++;
    *tensor = (trine_tensor){ .dtype = trine_plan_dtype(c->plan, index, c->type), .rank = t->rank - first };
    const bool transposed = c->transposed >> index & 1 && tensor->rank > 1;
    int64_t stride = 1;
    for (int n = tensor->rank - 1; n >= 0; n--) { /* from the innermost on */
        const int k = transposed && n >= tensor->rank - 2 ? 2 * tensor->rank - 3 - n : n;
        tensor->shape[k] = c->broadcast >> index & 1 ? 1 : shape[first + k];
        tensor->stride[k] = stride;
        if (tensor->shape[k] < 0)
            return wrong(error, size, "%s: dimension %d is %" PRId64, t->spec->name, k, tensor->shape[k]);
        if (tensor->shape[k] > 1 && __builtin_mul_overflow(stride, tensor->shape[k], &stride))
            return wrong(error, size, "%s: the number of elements overflows", t->spec->name);
    }
    return true;
}

static bool requirements_hold(const trine_case *c) {
    for (int i = 0; i < c->plan->requires; i++) {
        const trine_plan_require *require = &c->plan->require[i];
        if (trine_require_applies(c->plan, require, c->present, c->args) &&
            !trine_require_holds(require, c->dim, c->type))
            return false;
    }
    return true;
}

/* Gives one symbol of `open`, all of which are 1, the value of a bound one if the requirements hold only so;
 * returns the symbols still open. */
static uint32_t settle(trine_case *c, uint32_t open) {
    if (requirements_hold(c)) return open;
    for (int s = 0; s < c->plan->symbols; s++) {
        for (int bound = 0; bound < c->plan->symbols && (open >> s & 1); bound++) {
            if (open >> bound & 1) continue;
            c->dim[s] = c->dim[bound];
            if (requirements_hold(c)) return open & ~(1u << s);
            c->dim[s] = 1;
        }
    }
    return open;
}

/* The value of a symbol in the first of the op's cases; 64 where that does not say. */
static int64_t example_dim(const trine_case *c, int symbol) {
    static const char marks[] = " :";
    const char *name = c->plan->symbol_name[symbol];
    const size_t length = strlen(name);
    for (const char *at = c->plan->spec->cases[0]; at != NULL && *at; at += strcspn(at, marks), at += strspn(at, marks))
        if (strncmp(at, name, length) == 0 && at[length] == '=') return strtoll(at + length + 1, NULL, 10);
    return 64;
}

/* Says all dimensions that are `missing`, and what they may look like. */
static bool wrong_missing(const trine_case *c, uint32_t missing, char *error, size_t size) {
    char names[160] = "", example[320] = "";
    writer n = { names, sizeof names }, e = { example, sizeof example };
    for (int s = 0; s < c->plan->symbols; s++) {
        if (!(missing >> s & 1)) continue;
        put(&n, "%s%s", *names ? ", " : "", c->plan->symbol_name[s]);
        put(&e, "%s%s=%" PRId64, *example ? " " : "", c->plan->symbol_name[s], example_dim(c, s));
    }
    const bool one = (missing & (missing - 1)) == 0;
    return wrong(error, size, "%s: dimension%s %s %s not given, as in --dims \"%s\"", c->plan->spec->name,
                 one ? "" : "s", names, one ? "is" : "are", example);
}

bool trine_case_finish(trine_case *c, char *error, size_t error_size) {
    if (!choose_types(c, error, error_size)) return false;
    choose_tensors(c);
    uint32_t open = 0, missing = 0;
    for (int s = 0; s < c->plan->symbols; s++) {
        if (c->dim[s] >= 0) continue;
        if (needs_symbol(c, s)) missing |= 1u << s;
        c->dim[s] = 1;
        open |= 1u << s;
    }
    if (missing) return wrong_missing(c, missing, error, error_size);
    open = settle(c, open);
    for (int i = 0; i < c->plan->tensors; i++)
        if ((c->present >> i & 1) && !make_tensor(c, i, open, error, error_size)) return false;
    trine_case_link(c);
    return true;
}

void trine_case_link(trine_case *c) {
    *(size_t *)c->args = c->plan->spec->args_size;
    for (int i = 0; i < c->plan->tensors; i++)
        *(const trine_tensor **)(c->args + c->plan->tensor[i].spec->offset) =
            c->present >> i & 1 ? &c->tensor[i] : NULL;
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void put_param(writer *w, const trine_spec_param *param, const void *field) {
    if (param->kind == F32)
        put(w, " %s=%.9g", param->name, *(const float *)field == 0 ? 0 : *(const float *)field);
    else if (param->kind == TEXT)
        put(w, " %s=%s", param->name, *(const char *const *)field);
    else if (param->kind == U64)
        put(w, " %s=%" PRIu64, param->name, *(const uint64_t *)field);
    else
        put(w, " %s=%" PRId64, param->name, param->kind == I64 ? *(const int64_t *)field : *(const int32_t *)field);
}

void trine_case_text(const trine_case *c, char *text_out, size_t size) {
    const trine_plan *plan = c->plan;
    writer w = { text_out, size };
    if (size) *text_out = 0;
    for (int i = 0; i < plan->types; i++)
        if (c->type[i] != TRINE_NONE) put(&w, " %s=%s", plan->type_name[i], trine_dtype_name(c->type[i]));
    for (int i = 0; i < plan->symbols; i++)
        if (c->dim[i] >= 0) put(&w, " %s=%" PRId64, plan->symbol_name[i], c->dim[i]);
    for (int i = 0; i < plan->params; i++)
        if (c->set >> i & 1) put_param(&w, &plan->spec->params[i], c->args + plan->spec->params[i].offset);
    for (int i = 0; i < plan->tensors; i++)
        if ((c->present >> i & 1) && (plan->tensor[i].spec->flags & OPTIONAL))
            put(&w, " +%s", plan->tensor[i].spec->name);
    for (int i = 0; i < plan->tensors; i++)
        if ((c->transposed | c->broadcast) >> i & 1)
            put(&w, " %s=%s", plan->tensor[i].spec->name, c->transposed >> i & 1 ? "transposed" : "broadcast");
    if (size && *text_out == ' ') memmove(text_out, text_out + 1, strlen(text_out));
}
